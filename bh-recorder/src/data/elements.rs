//! Access to elements: reading, writing and mapping.

use crate::data::{Data, dense_stride, element_address};
use crate::executor::Executor;
use crate::immediate::settled::Direction;
use crate::process::patience::Patience;
use crate::state::{Followup, State};
use crate::{ArrayId, Recorder, SendPtr};
use bh_bytecode::{Base, Constant, View};
use bh_core::abi::{access, status};
use bh_core::error::{Error, Result};
use bh_core::strided::Side;
use std::borrow::Cow;
use std::sync::{Arc, MutexGuard};

/// An array of this many bytes or more that gets memory waits until as much that is given up is free.
const ROOM: u64 = 1 << 20;

/// A base that is being accessed: kept alive by a handle of its own.
pub(crate) struct Held {
    pub(crate) handle: ArrayId,
    pub(crate) base: Base,
    pub(crate) view: View,
    pub(crate) executor: Arc<Executor>,
    /// Only values that are there are looked at.
    pub(crate) reads: bool,
    /// Does the access report failures of other operations first?
    pub(crate) reports: bool,
    /// The batches that come before the access.
    pub(crate) needed: u64,
    /// The base's `changes`.
    pub(crate) changes: u32,
    /// Had the base data before?
    pub(crate) known: bool,
}

impl Recorder {
    /// Copies the array's elements to user memory. `stride`: in bytes, or `None` for C order. Waits for the result, not
    /// for what was recorded after it.
    ///
    /// # Safety
    /// `stride` must be `None` or have an entry for each dimension. `data` must be valid for writing each element where
    /// the strides lead to, on any thread, until this returns, and be no part of the array's own memory.
    pub unsafe fn read(&self, array: ArrayId, data: *mut u8, stride: Option<&[i64]>) -> Result<()> {
        // SAFETY: `read_with` asks for what `# Safety` asks.
        unsafe { self.read_with(array, data, stride, &mut Patience::endless()) }
    }

    /// As [`Recorder::read`], with a wait that can be ended.
    ///
    /// # Safety
    /// As [`Recorder::read`].
    pub unsafe fn read_with(
        &self,
        array: ArrayId,
        data: *mut u8,
        stride: Option<&[i64]>,
        patience: &mut Patience<'_>,
    ) -> Result<()> {
        // SAFETY: the arguments are those of this call, of which `# Safety` asks the same.
        unsafe { self.read_by(Recorder::hold, array, data, stride, patience) }
    }

    /// Copies elements of a flat array that a tape keeps, from element `first` on. Tapes do not refuse it.
    pub fn read_kept(&self, array: ArrayId, first: i64, to: &mut [u8]) -> Result<()> {
        let count = (to.len() / self.info(array)?.dtype.size()) as i64;
        let view = View::new(first, &[count], &[1]).map_err(|error| Error::new(status::SHAPE, error.0))?;
        let part = self.window(array, &view)?;
        // SAFETY: `to` has room for the elements of the view, one after the other, and is borrowed until this returns.
        let done = unsafe { self.read_by(Recorder::hold_kept, part, to.as_mut_ptr(), None, &mut Patience::endless()) };
        self.free_later(part);
        done
    }

    /// As [`Recorder::read_with`]. `hold`: how the base is kept alive.
    ///
    /// # Safety
    /// As [`Recorder::read`].
    unsafe fn read_by(
        &self,
        hold: fn(&Recorder, ArrayId, u32) -> Result<Held>,
        array: ArrayId,
        data: *mut u8,
        stride: Option<&[i64]>,
        patience: &mut Patience<'_>,
    ) -> Result<()> {
        if let Some(value) = self.value_of(array)? {
            // SAFETY: `data` is valid for writing all elements, as `# Safety` asks: for the only one, which is where it
            // leads to.
            unsafe { std::ptr::copy_nonoverlapping(value.bytes().as_ptr(), data, value.dtype().size()) };
            return Ok(());
        }
        // SAFETY: `data` is valid for writing all elements, as `# Safety` asks, and that is the direction.
        if unsafe { self.copy_settled(array, data, stride, Direction::ToProgram)? } {
            return Ok(());
        }
        let held = hold(self, array, access::READ)?;
        if self.settle_by_access(&held, patience)? {
            self.let_go(held);
            // SAFETY: the arguments are those of this call, of which `# Safety` asks the same.
            return unsafe { self.read_by(hold, array, data, stride, patience) };
        }
        let stride = stride.map_or_else(|| Cow::Owned(dense_stride(&held.base, &held.view)), Cow::Borrowed);
        let stride = &*stride;
        let target = SendPtr(data);
        let (base, view) = (held.base, held.view);
        let result = self.with_data(&held, patience, |data| {
            // SAFETY: `data` is valid for writing all elements until this returns, and elsewhere than the base, as
            // `# Safety` asks; the view is the array's, inside of its base.
            unsafe { data.read(&base, &view, Side { data: target.get(), stride }) }
        });
        self.let_go(held);
        result
    }

    /// Overwrites the array's elements from user memory. `stride`: in bytes, or `None` for C order. Waits for operations
    /// on the array that were recorded before, not for others.
    ///
    /// # Safety
    /// `stride` must be `None` or have an entry for each dimension. `data` must be valid for reading each element where
    /// the strides lead to, on any thread, until this returns, and be no part of the array's own memory.
    pub unsafe fn write(&self, array: ArrayId, data: *const u8, stride: Option<&[i64]>) -> Result<()> {
        // SAFETY: `write_with` asks for what `# Safety` asks.
        unsafe { self.write_with(array, data, stride, &mut Patience::endless()) }
    }

    /// As [`Recorder::write`], with a wait that can be ended.
    ///
    /// # Safety
    /// As [`Recorder::write`].
    pub unsafe fn write_with(
        &self,
        array: ArrayId,
        data: *const u8,
        stride: Option<&[i64]>,
        patience: &mut Patience<'_>,
    ) -> Result<()> {
        // SAFETY: `data` is valid for reading all elements, as `# Safety` asks, and neither call writes to it.
        if unsafe {
            self.write_value(array, data.cast_mut())?
                || self.copy_settled(array, data.cast_mut(), stride, Direction::FromProgram)?
        } {
            return Ok(());
        }
        if self.writes_by_operations() {
            // SAFETY: `write_traced` asks for what `# Safety` asks.
            return unsafe { self.write_traced(array, data, stride) };
        }
        let held = self.hold(array, access::WRITE)?;
        if self.settle_by_access(&held, patience)? {
            self.let_go(held);
            // SAFETY: the arguments are those of this call, of which `# Safety` asks the same.
            return unsafe { self.write_with(array, data, stride, patience) };
        }
        let stride = stride.map_or_else(|| Cow::Owned(dense_stride(&held.base, &held.view)), Cow::Borrowed);
        let stride = &*stride;
        let source = SendPtr(data.cast_mut());
        let (base, view) = (held.base, held.view);
        let result = if view.is_injective() {
            self.with_data(&held, patience, |data| {
                // SAFETY: `data` is valid for reading all elements until this returns, and elsewhere than the base, as
                // `# Safety` asks; the view is the array's, inside of its base.
                unsafe { data.write(&base, &view, Side { data: source.get(), stride }) }
            })
        } else {
            Err(Error::new(status::ARGUMENT, "write: the view maps several elements to one place"))
        };
        self.let_go(held);
        result
    }

    /// The one element of an array of one element. Waits for the result.
    pub fn read_scalar(&self, array: ArrayId) -> Result<Constant> {
        if let Some(value) = self.value_of(array)? {
            return Ok(value);
        }
        let info = self.info(array)?;
        if info.view.len() != 1 {
            let text = format!("read: the array has shape {:?}, not one element", info.view.shape());
            return Err(Error::new(status::SHAPE, text));
        }
        let mut bytes = [0u8; 16];
        // SAFETY: an element has at most 16 bytes.
        unsafe { self.read(array, bytes.as_mut_ptr(), None)? };
        let value = Constant::from_bytes(info.dtype, &bytes);
        let mut state = self.state();
        if let Ok(handle) = state.find(array) {
            state.note_value(handle, value);
        }
        Ok(value)
    }

    /// The value of an array of one element, if it is known without a batch.
    #[inline]
    pub fn value_of(&self, array: ArrayId) -> Result<Option<Constant>> {
        let state = self.state();
        let handle = state.find(array)?;
        if state.traces_here() {
            return Ok(None);
        }
        Ok(state.known_value(handle).or_else(|| state.element(handle)))
    }

    /// Gives direct access to the array's memory until [`Recorder::unmap`]: the address of element (0, …, 0). Operations
    /// on a base that is mapped for writing are refused. `mode`: bits of [`access`].
    pub fn map(&self, array: ArrayId, mode: u32) -> Result<*mut u8> {
        if mode == 0 || mode & !(access::READ | access::WRITE | access::DISCARD) != 0 {
            return Err(Error::new(status::ARGUMENT, format!("map: {mode} is no combination of access modes")));
        }
        if let Some(data) = self.map_settled(array, mode)? {
            return Ok(data);
        }
        let writes = mode & (access::WRITE | access::DISCARD) != 0;
        let held = self.hold(array, if writes { access::WRITE } else { access::READ })?;
        if writes && !held.view.is_injective() {
            self.let_go(held);
            return Err(Error::new(
                status::ARGUMENT,
                "map: the view has several elements at one place; it can only be read",
            ));
        }
        let mode = if held.view.len() == held.base.len { mode } else { mode & !access::DISCARD | access::READ };
        let (base, view) = (held.base, held.view);
        let mapped =
            self.with_data(&held, &mut Patience::endless(), |data| data.map(&base, Some(&view), mode).map(SendPtr));
        match mapped {
            Err(error) => {
                self.let_go(held);
                Err(error)
            }
            Ok(data) => {
                let address = element_address(data.get(), &held.base, &held.view);
                let mut state = self.state();
                let handle = state.find(held.handle)?;
                let base = state.handles.at(handle).base;
                let entry = state.bases.at_mut(base);
                entry.maps += 1;
                entry.mapped_for_writing |= writes;
                // The map keeps its own reference to the base until `unmap`.
                entry.references += 1;
                state.release(handle);
                Ok(address)
            }
        }
    }

    /// Ends a [`Recorder::map`] of an array on this base.
    pub fn unmap(&self, array: ArrayId) -> Result<()> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let executor = state.executor()?;
        let place = state.handles.at(handle).base;
        let entry = state.bases.at_mut(place);
        if entry.maps == 0 {
            return Err(Error::new(status::ARGUMENT, "unmap: the array is not mapped"));
        }
        entry.maps -= 1;
        entry.references -= 1;
        let written = entry.mapped_for_writing;
        entry.mapped_for_writing &= entry.maps > 0;
        let (base, settled) = (entry.base, entry.settled.is_some());
        if settled {
            if written {
                state.note_change(place);
            }
            return Ok(());
        }
        executor.note_access(base.id);
        drop(state);
        executor.access(base.id, |data| data.unmap(&base))
    }

    /// Hands over what the access needs, and keeps the base alive meanwhile.
    pub(crate) fn hold(&self, array: ArrayId, mode: u32) -> Result<Held> {
        self.check_tapes(array, mode == access::READ)?;
        self.hold_kept(array, mode)
    }

    /// As [`Recorder::hold`], whatever tapes refuse.
    fn hold_kept(&self, array: ArrayId, mode: u32) -> Result<Held> {
        self.end_settled_map(array)?;
        let mut state = self.state();
        let handle = state.find(array)?;
        let entry = state.handles.at(handle);
        let (place, small) = (entry.base, entry.view.clone());
        let view = small.view();
        let reads = mode == access::READ;
        state.check_access_in_trace(place, reads)?;
        state.settle(place);
        let entry = state.bases.at(place);
        if entry.mapped_for_writing || (!reads && entry.maps > 0) {
            return Err(Error::new(status::ARGUMENT, "the array is mapped; unmap it first"));
        }
        if state.bases.at(place).watched != 0 {
            state.note_asked(place);
        }
        if !reads {
            if state.bases.at(place).readers > 0 {
                state.make_readers(place);
            }
            state.forget_value(place);
            state.bases.at_mut(place).changes += 1;
        }
        let entry = state.bases.at(place);
        // A reader waits for the last writer, a writer for every user.
        let needed = if reads { entry.written } else { entry.epoch };
        // New data may take the memory of arrays that are given up, unless that would mean to wait.
        let (bytes, fresh) = (entry.base.bytes(), !entry.known);
        let makes_room = fresh && bytes >= ROOM && state.builder.freed_bytes >= bytes;
        let makes_room = makes_room && state.executor()?.is_idle();
        let needed = if makes_room { state.builder.epoch } else { needed };
        let pending = needed == state.builder.epoch;
        let waits = !pending && needed >= state.first_pending();
        // A batch that only gives the stack settled data needs an instruction: this one.
        if pending && (reads || state.builder.is_empty()) {
            state.push_sync(handle);
        }
        if fresh {
            state.hint_rows(handle);
        }
        let own = state.new_handle(place, small)?;
        let own = state.name(own);
        // A batch that the access does not need stays where it is.
        let (executor, needed) = match pending {
            true => {
                // Results made because a writer comes must not become recipes again, which would read the array.
                let submitted = if reads { state.submit_part() } else { state.submit() };
                submitted.map(|submitted| (submitted.executor, submitted.epoch))?
            }
            false if waits => state.submit_waiting().map(|submitted| (submitted.executor, submitted.epoch))?,
            false => (state.executor()?, needed),
        };
        let entry = state.bases.at(place);
        let (base, changes) = (entry.base, entry.changes);
        Ok(Held { handle: own, base, view, executor, reads, reports: true, needed, changes, known: !fresh })
    }

    /// Calls the stack about the data of a held base, once what the access needs is done and its failures are reported.
    pub(crate) fn with_data<R: Send>(
        &self,
        held: &Held,
        patience: &mut Patience<'_>,
        mut f: impl FnMut(&mut dyn Data) -> Result<R> + Send,
    ) -> Result<R> {
        let executor = &held.executor;
        let mut needed = held.needed;
        let mut f = |data: &mut dyn Data| {
            if !held.reads {
                executor.note_change(held.base.id);
            }
            f(data)
        };
        if executor.is_affine() {
            note_known(&mut self.state(), held)?;
            let result = executor.access_on_thread((held.base.id, needed), held.reports, patience, f);
            if result.is_ok() {
                note_needed(&mut self.state(), held, needed);
            }
            return result.map_err(|error| self.resolve(error));
        }
        let mut tried = false;
        loop {
            executor.complete(needed, patience)?;
            if let Some(error) = held.reports.then(|| executor.take_error()).flatten() {
                return Err(self.resolve(error));
            }
            if let Some(more) = self.begin_access(held, needed)? {
                needed = more;
                continue;
            }
            let result = executor.access(held.base.id, &mut f);
            let Err(error) = result else { return result };
            if error.status != status::MEMORY || tried || executor.is_idle() && self.statistics().pending == 0 {
                return Err(self.resolve(error));
            }
            // Batches that have not run yet may release enough memory.
            tried = true;
            let submitted = self.state().submit()?;
            submitted.executor.complete(submitted.epoch, patience)?;
        }
    }

    /// Begins an access if the batches that it needs are done, else returns the last of them. Other threads may have
    /// recorded more with the base; batches are handed over under the same lock, so that none comes in between.
    pub(crate) fn begin_access(&self, held: &Held, needed: u64) -> Result<Option<u64>> {
        let mut state = self.state();
        let last = note_known(&mut state, held)?;
        let submitted = state.first_pending() - 1;
        let needed = if last > held.needed { last.min(submitted) } else { needed };
        if !held.executor.begin_access(held.base.id, needed) {
            return Ok(Some(needed));
        }
        note_needed(&mut state, held, needed);
        Ok(None)
    }

    /// Submits the pending batch, waits for everything, and reports a deferred error.
    fn finish(&self, mut state: MutexGuard<'_, State>, patience: &mut Patience<'_>) -> Result<()> {
        state.refuse_in_trace("waits for its operations")?;
        let submitted = state.submit_all()?;
        drop(state);
        submitted.executor.complete(submitted.epoch, patience)?;
        self.state().note_waited(submitted.epoch);
        submitted.executor.take_error().map_or(Ok(()), |error| Err(self.resolve(error)))
    }

    /// Submits the pending batch and waits for everything; what failed is reported where it is looked at.
    #[cold]
    fn wait_for_all(&self, mut state: MutexGuard<'_, State>) -> Result<()> {
        let submitted = state.submit_part()?;
        drop(state);
        submitted.executor.complete(submitted.epoch, &mut Patience::endless())?;
        self.state().note_waited(submitted.epoch);
        Ok(())
    }

    pub(crate) fn let_go(&self, held: Held) {
        let mut state = self.state();
        if let Ok(handle) = state.find(held.handle) {
            state.release(handle);
        }
    }

    /// Waits for everything recorded so far and reports the first failure since the last report.
    pub fn sync(&self) -> Result<()> {
        self.sync_with(&mut Patience::endless())
    }

    /// As [`Recorder::sync`], with a wait that can be ended.
    pub fn sync_with(&self, patience: &mut Patience<'_>) -> Result<()> {
        self.finish(self.state(), patience)
    }

    /// Is there nothing to wait for, and no failure to report?
    pub fn is_idle(&self) -> Result<bool> {
        let state = self.state();
        let done = state.trace.is_none() && state.builder.is_empty() && state.waited + 1 >= state.builder.epoch;
        Ok(done && !state.running()?.executor.has_error())
    }

    /// Hands everything recorded so far to the executor, and reports the first failure since the last report.
    pub fn flush(&self) -> Result<()> {
        let mut state = self.state();
        state.refuse_in_trace("hands its operations over")?;
        let submitted = state.submit_all()?;
        drop(state);
        submitted.drive()?;
        submitted.executor.take_error().map_or(Ok(()), |error| Err(self.resolve(error)))
    }

    /// Completes everything recorded so far before it returns, as operations on pinned memory and eager mode ask.
    pub(crate) fn follow(&self, state: MutexGuard<'_, State>, followup: Followup) -> Result<()> {
        let mut state = state;
        let eager = state.running.as_ref().is_some_and(|running| running.options.eager);
        if followup == Followup::Nothing && !eager {
            if state.little.is_due() && state.trace.is_none() && state.waits_for_little() {
                return self.wait_for_all(state);
            }
            let submitted = state.check_limits();
            let errands = std::mem::take(&mut state.tapes.errands);
            drop(state);
            let driven = submitted.map_or(Ok(()), |submitted| submitted.drive());
            return driven.and(self.run(errands));
        }
        self.finish(state, &mut Patience::endless())
    }
}

/// Notes that the program has waited for the batches that an access needs. The wait for a new array's data depends on the
/// progress of the executor, on which nothing else may depend.
fn note_needed(state: &mut State, held: &Held, needed: u64) {
    if held.reads || held.known {
        state.note_waited(needed);
    }
}

/// Notes that the stack hears of the base through the access that follows. Returns the last batch that the access needs.
fn note_known(state: &mut State, held: &Held) -> Result<u64> {
    // After a shutdown meanwhile, the handle is gone.
    let handle = state.find(held.handle)?;
    let place = state.handles.at(handle).base;
    let entry = state.bases.at_mut(place);
    entry.known = true;
    Ok(if held.reads { entry.written } else { entry.epoch })
}

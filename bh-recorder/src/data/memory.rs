//! Memory of the program that becomes an array's, and memory of arrays that the program uses.

use crate::data::elements::Held;
use crate::data::{element_address, refresh};
use crate::process::patience::Patience;
use crate::{ArrayId, Recorder, SendPtr};
use bh_bytecode::view::element_count;
use bh_bytecode::{Base, DType, base_flags};
use bh_core::abi::{Adoption, Export, ExportRequest, ReleaseFn, access, adopt, export, memory, status};
use bh_core::error::{Error, Result};
use std::ffi::c_void;

/// Elements that are lent: see [`Recorder::lend_as`].
pub struct Lent {
    /// The address of element (0, …, 0).
    pub data: *mut u8,
    base: Base,
    /// The base's place, and its generation.
    place: (u32, u32),
    token: u64,
    /// Keeps an array that is lent to be written to.
    kept: Option<ArrayId>,
}

// SAFETY: the address is only carried along; who looks at the elements does so between the two calls that lend them.
unsafe impl Send for Lent {}

impl Recorder {
    /// Makes an array of the caller's memory, without a copy. `release` is called when bh no longer uses the memory; it must
    /// not call bh. While it is adopted, the caller looks at the memory only between `map` and `unmap`.
    ///
    /// # Safety
    /// `data` must hold the elements of `shape` in C order, and stay valid until `release` is called, or for ever if it
    /// is `None`. `release` must work with `argument` and `data` on any thread.
    pub unsafe fn adopt(
        &self,
        dtype: DType,
        shape: &[i64],
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<ArrayId> {
        // SAFETY: `adopt_as` asks for what `# Safety` asks; the mode is that in which the caller looks at the memory
        // between `map` and `unmap`.
        unsafe { self.adopt_as(dtype, shape, adopt::SHARED, data, release, argument) }
    }

    /// As [`Recorder::adopt`], for memory that the caller gives up until `release` is called: nobody else looks at it, so
    /// operations on the array stay lazy, and its data may move elsewhere.
    ///
    /// # Safety
    /// As [`Recorder::adopt`], and nobody else may use the memory until `release` is called.
    pub unsafe fn donate(
        &self,
        dtype: DType,
        shape: &[i64],
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<ArrayId> {
        // SAFETY: `adopt_as` asks for what `# Safety` asks, as the mode is that of memory that nobody else uses.
        unsafe { self.adopt_as(dtype, shape, adopt::DONATED, data, release, argument) }
    }

    /// As [`Recorder::adopt`], in a mode of [`bh_core::abi::adopt`].
    ///
    /// # Safety
    /// As [`Recorder::adopt`], and the memory must be used as the mode says.
    #[allow(clippy::too_many_arguments, reason = "what is adopted, and how it is given back")]
    pub unsafe fn adopt_as(
        &self,
        dtype: DType,
        shape: &[i64],
        mode: u32,
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<ArrayId> {
        // SAFETY: `data` holds the elements of `shape` until `release` is called, which works with `argument`, and is
        // used as the mode says, as `# Safety` asks.
        unsafe { self.adopt_memory(dtype, shape, &Adoption::new(data.cast(), mode, memory::HOST, release, argument)) }
    }

    /// Makes an array of memory of the host or of a device, without a copy. If it fails, the memory stays its owner's.
    ///
    /// # Safety
    /// The adoption's memory must hold the elements of `shape` in C order and stay valid, as its mode says, until its
    /// `release` is called, which must work with its argument on any thread.
    pub unsafe fn adopt_memory(&self, dtype: DType, shape: &[i64], adoption: &Adoption) -> Result<ArrayId> {
        let (data, mode) = (adoption.data(), adoption.mode());
        if data.is_null() {
            return Err(Error::new(status::ARGUMENT, "adopt: the data pointer is null"));
        }
        if adoption.memory() == memory::HOST && !data.addr().is_multiple_of(dtype.size().min(8)) {
            let text = format!("adopt: address {data:p} is not aligned for elements of type {}", dtype.name());
            return Err(Error::new(status::ARGUMENT, text));
        }
        if element_count(shape) == Some(0) {
            return Err(Error::new(status::ARGUMENT, "adopt: an array without elements has no memory to adopt"));
        }
        if mode == adopt::SHARED {
            self.state().refuse_in_trace("shares memory with the program")?;
        }
        let array = self.empty(dtype, shape)?;
        // SAFETY: the memory holds all elements of `shape`, which are those of the new base, and stays valid, as
        // `# Safety` asks.
        unsafe { self.adopt_as_data(array, adoption) }?;
        Ok(array)
    }

    /// Has the stack adopt memory as the data of a new array, which is freed if that fails.
    ///
    /// # Safety
    /// As [`Recorder::adopt_memory`]; the array has a base of its own that nothing was recorded on.
    pub(crate) unsafe fn adopt_as_data(&self, array: ArrayId, adoption: &Adoption) -> Result<()> {
        let mode = adoption.mode();
        let mut state = self.state();
        let handle = state.find(array)?;
        let executor = state.executor()?;
        let place = state.handles.at(handle).base;
        let entry = state.bases.at_mut(place);
        entry.relied_on = u32::from(mode == adopt::IMMUTABLE);
        if mode == adopt::SHARED {
            entry.base.flags |= base_flags::PINNED;
            entry.pins = 1;
        }
        state.hint_rows(handle);
        let base = state.bases.at(place).base;
        executor.note_access(base.id);
        drop(state);
        // SAFETY: the memory holds all elements of the base, and stays valid, as `# Safety` asks.
        let adopted = executor.access(base.id, |stack| unsafe { stack.adopt(&base, adoption) });
        let mut state = self.state();
        let handle = state.find(array)?;
        if let Err(error) = adopted {
            state.release(handle);
            return Err(error);
        }
        let place = state.handles.at(handle).base;
        state.bases.at_mut(place).known = true;
        if state.traces_here() {
            let view = state.handles.at(handle).view.clone();
            let kept = state.new_handle(place, view)?;
            let kept = state.name(kept);
            state.keep(kept);
        }
        Ok(())
    }

    /// Lends the array's elements for reading, without a copy, until [`Recorder::end_lending`]: what is written to the array
    /// meanwhile goes elsewhere. Operations on it stay lazy. Waits for the elements.
    pub fn lend_with(&self, array: ArrayId, patience: &mut Patience<'_>) -> Result<Lent> {
        self.lend_as(array, export::READ_ONLY, patience)
    }

    /// As [`Recorder::lend_as`], in memory of a device, of a kind of [`memory`]. The array must be all of its base, in C order.
    /// `data` is the device's own handle.
    pub fn lend_device(&self, array: ArrayId, mode: u32, kind: u32) -> Result<Lent> {
        let info = self.info(array)?;
        if info.view.len() != info.base_len || !info.view.is_contiguous() {
            return Err(Error::new(status::ARGUMENT, "lend: the array is only a part of its memory"));
        }
        self.lend_in(array, (mode, kind), &mut Patience::endless())
    }

    /// Lends the array's elements in a mode of [`bh_core::abi::export`], until [`Recorder::end_lending`]. Waits for them. Of what
    /// is shared, each operation completes before it returns.
    pub fn lend_as(&self, array: ArrayId, mode: u32, patience: &mut Patience<'_>) -> Result<Lent> {
        self.lend_in(array, (mode, memory::HOST), patience)
    }

    fn lend_in(&self, array: ArrayId, (mode, kind): (u32, u32), patience: &mut Patience<'_>) -> Result<Lent> {
        let place = {
            let mut state = self.state();
            let handle = state.find(array)?;
            let place = state.handles.at(handle).base;
            state.bases.at_mut(place).relied_on += 1;
            (place, state.bases.generation(place))
        };
        let lent = self.lend_base(array, (mode, kind), place, patience);
        // A base that is gone relies on nothing.
        lent.inspect_err(|_| self.end_reliance(place))
    }

    /// Notes that nobody relies on a base's data any more by one lending.
    fn end_reliance(&self, (place, generation): (u32, u32)) {
        let mut state = self.state();
        if state.bases.find(place, generation).is_some() {
            state.bases.at_mut(place).relied_on -= 1;
        }
    }

    fn lend_base(
        &self,
        array: ArrayId,
        (mode, kind): (u32, u32),
        place: (u32, u32),
        patience: &mut Patience<'_>,
    ) -> Result<Lent> {
        let shared = mode == export::SHARED;
        let held = self.hold(array, if shared { access::WRITE } else { access::READ })?;
        let (base, view) = (held.base, held.view);
        let pinned = if shared { self.pin(held.handle, true, true) } else { Ok(()) };
        let exported = pinned.and_then(|()| {
            let exported = self.with_data(&held, patience, |data| {
                let Export { data, token, .. } = data.export(&base, &ExportRequest::new(mode, kind))?;
                Ok((SendPtr(data.cast()), token))
            });
            if shared && exported.is_err() {
                self.pin(held.handle, false, true)?;
            }
            exported
        });
        let kept = (shared && exported.is_ok()).then_some(held.handle);
        if kept.is_none() {
            self.let_go(held);
        }
        let (data, token) = exported?;
        let data = match kind {
            memory::HOST => element_address(data.get(), &base, &view),
            _ => data.get(),
        };
        Ok(Lent { data, base, place, token, kept })
    }

    /// Ends a lending. Runs nothing that was recorded.
    pub fn end_lending(&self, lent: &Lent) -> Result<()> {
        let executor = self.state().executor()?;
        let (base, token) = (lent.base, lent.token);
        executor.note_access(base.id);
        executor.access(base.id, |data| data.end_export(&base, token))?;
        self.end_reliance(lent.place);
        let Some(kept) = lent.kept else { return Ok(()) };
        let unpinned = self.pin(kept, false, true);
        let mut state = self.state();
        if let Ok(handle) = state.find(kept) {
            state.release(handle);
        }
        unpinned
    }

    /// Forbids (or allows again) that the array's memory moves. `exported`: the user may look at it and change it between
    /// any two calls. Counted. From now on, each operation on it completes before it returns.
    pub fn pin(&self, array: ArrayId, pinned: bool, exported: bool) -> Result<()> {
        let held = self.hold(array, access::WRITE)?;
        self.set_pinned(held, (pinned, exported), &mut Patience::endless()).map(|_| ())
    }

    /// Pins an exported array that nothing was recorded on. Failures of other operations stay for the next call that reports them.
    pub fn pin_new(&self, array: ArrayId) -> Result<()> {
        let held = Held { reports: false, ..self.hold(array, access::WRITE)? };
        self.set_pinned(held, (true, true), &mut Patience::endless()).map(|_| ())
    }

    /// Pins an exported array as [`Recorder::pin`] does, and returns the address of element (0, …, 0). Other threads may
    /// use the array meanwhile, which they could not while it is mapped.
    pub fn pin_exported(&self, array: ArrayId, patience: &mut Patience<'_>) -> Result<*mut u8> {
        self.state().refuse_in_trace("waits for its operations")?;
        self.set_pinned(self.hold(array, access::WRITE)?, (true, true), patience)
    }

    /// May the program change the array's memory between any two calls?
    fn is_exported(&self, array: ArrayId) -> Result<bool> {
        let state = self.state();
        let handle = state.find(array)?;
        Ok(state.bases.at(state.handles.at(handle).base).exported)
    }

    /// The address counts only if the array is exported.
    fn set_pinned(&self, held: Held, (pinned, exported): (bool, bool), patience: &mut Patience<'_>) -> Result<*mut u8> {
        let (base, known) = (held.base, held.known);
        let ends = !pinned && self.is_exported(held.handle)?;
        let result = self.with_data(&held, patience, |data| {
            if ends {
                // The stack may have copies from before the program's last write. A lost array has none, and stays lost.
                let _ = refresh(data, &base);
            }
            // A pinned array needs an address.
            if pinned && !known {
                data.map(&base, None, access::WRITE)?;
                data.unmap(&base)?;
            }
            data.pin(&base, pinned)?;
            if !(pinned && exported) {
                return Ok(SendPtr(std::ptr::null_mut()));
            }
            // Only now: a pinned array comes to one place as a whole, and stays there.
            let mapped = data.map(&base, None, access::READ);
            let address = mapped.and_then(|address| data.unmap(&base).map(|()| SendPtr(address)));
            address.inspect_err(|_| _ = data.pin(&base, false))
        });
        let mut state = self.state();
        let handle = state.find(held.handle)?;
        let place = state.handles.at(handle).base;
        let entry = state.bases.at_mut(place);
        let result = match result {
            Ok(address) if pinned => {
                entry.pins += 1;
                entry.known = true;
                entry.exported |= exported;
                Ok(element_address(address.get(), &base, &held.view))
            }
            Ok(_) if entry.pins == 0 => Err(Error::new(status::ARGUMENT, "unpin: the array is not pinned")),
            Ok(none) => {
                entry.pins -= 1;
                entry.exported &= entry.pins > 0;
                Ok(none.get())
            }
            Err(error) => Err(error),
        };
        let flag = if entry.pins > 0 { base_flags::PINNED } else { 0 };
        entry.base.flags = entry.base.flags & !base_flags::PINNED | flag;
        state.release(handle);
        result
    }
}

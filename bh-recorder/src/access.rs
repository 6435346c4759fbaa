//! Access to data: reading, writing, mapping, adopting and pinning.

use super::executor::{Executor, Runner};
use super::state::{Followup, State};
use super::transfer::{self, Side};
use super::{ArrayId, Recorder, SendPtr, lock};
use bh_bytecode::view::element_count;
use bh_bytecode::{Base, Constant, DType, View, base_flags};
use bh_core::abi::{ReleaseFn, access, status};
use bh_core::error::{Error, Result};
use std::ffi::c_void;
use std::sync::{Arc, MutexGuard};

/// An array of so many bytes that gets memory waits until as much that is given up is free.
const ROOM: u64 = 1 << 20;

/// A base that is being accessed: kept alive by a handle of its own.
struct Held {
    handle: ArrayId,
    base: Base,
    view: View,
    executor: Arc<Executor>,
}

impl Recorder {
    /// Copies the array's elements to user memory. `stride`: in bytes, or `None` for C order. Waits for the result.
    ///
    /// # Safety
    /// `data` must be valid for writing all elements.
    pub unsafe fn read(&self, array: ArrayId, data: *mut u8, stride: Option<&[i64]>) -> Result<()> {
        let held = self.hold(array, access::READ)?;
        let result = check_stride(&held, stride).and_then(|stride| {
            let target = SendPtr(data);
            held.executor.with_backend(|backend| {
                let mapped = backend.map(&held.base, Some(&held.view), access::READ)?;
                let from = byte_stride(&held);
                let dtype = held.base.dtype();
                let source = element_address(mapped, &held);
                // SAFETY: the stack maps the view; the caller vouches for its own memory.
                unsafe {
                    let to = Side { data: target.get(), stride: &stride };
                    transfer::copy(dtype, held.view.shape(), to, Side { data: source, stride: &from }, false);
                }
                backend.unmap(&held.base)
            })
        });
        self.let_go(held);
        result
    }

    /// Overwrites the array's elements from user memory. `stride`: in bytes, or `None` for C order.
    ///
    /// # Safety
    /// `data` must be valid for reading all elements.
    pub unsafe fn write(&self, array: ArrayId, data: *const u8, stride: Option<&[i64]>) -> Result<()> {
        let held = self.hold(array, access::WRITE)?;
        let result = check_stride(&held, stride).and_then(|stride| {
            if !held.view.is_injective() {
                return Err(Error::new(status::ARGUMENT, "write: the view maps several elements to one place"));
            }
            let whole = held.view.len() == held.base.len;
            let mode = if whole { access::WRITE | access::DISCARD } else { access::WRITE };
            let source = SendPtr(data.cast_mut());
            held.executor.with_backend(|backend| {
                let mapped = backend.map(&held.base, Some(&held.view), mode)?;
                let to = byte_stride(&held);
                let dtype = held.base.dtype();
                let target = element_address(mapped, &held);
                // SAFETY: the stack maps the view; the caller vouches for its own memory.
                unsafe {
                    let from = Side { data: source.get(), stride: &stride };
                    transfer::copy(dtype, held.view.shape(), Side { data: target, stride: &to }, from, true);
                }
                backend.unmap(&held.base)
            })
        });
        self.let_go(held);
        result
    }

    /// The one element of an array of one element. Waits for the result.
    pub fn read_scalar(&self, array: ArrayId) -> Result<Constant> {
        let info = self.info(array)?;
        if info.view.len() != 1 {
            let text = format!("read: the array has shape {:?}, not one element", info.view.shape());
            return Err(Error::new(status::SHAPE, text));
        }
        let mut bytes = [0u8; 16];
        // SAFETY: an element has at most 16 bytes.
        unsafe { self.read(array, bytes.as_mut_ptr(), None)? };
        Ok(Constant::from_bytes(info.dtype, &bytes))
    }

    /// Gives direct access to the array's memory until [`Recorder::unmap`]: the address of element (0, …, 0). Operations
    /// on a base that is mapped for writing are refused. `mode`: bits of [`access`].
    pub fn map(&self, array: ArrayId, mode: u32) -> Result<*mut u8> {
        if mode == 0 || mode & !(access::READ | access::WRITE | access::DISCARD) != 0 {
            return Err(Error::new(status::ARGUMENT, format!("map: {mode} is no combination of access modes")));
        }
        let writes = mode & (access::WRITE | access::DISCARD) != 0;
        let held = self.hold(array, if writes { access::WRITE } else { access::READ })?;
        let mapped = held.executor.with_backend(|backend| {
            let mode = if held.view.len() == held.base.len { mode } else { mode & !access::DISCARD | access::READ };
            backend.map(&held.base, Some(&held.view), mode).map(SendPtr)
        });
        match mapped {
            Err(error) => {
                self.let_go(held);
                Err(error)
            }
            Ok(data) => {
                let address = element_address(data.get(), &held);
                let mut state = lock(&self.state);
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
        let mut state = lock(&self.state);
        let handle = state.find(array)?;
        let executor = state.executor()?;
        let place = state.handles.at(handle).base;
        let entry = state.bases.at_mut(place);
        if entry.maps == 0 {
            return Err(Error::new(status::ARGUMENT, "unmap: the array is not mapped"));
        }
        entry.maps -= 1;
        entry.references -= 1;
        if entry.maps == 0 {
            entry.mapped_for_writing = false;
        }
        let base = entry.base;
        executor.with_backend(|backend| backend.unmap(&base))
    }

    /// Makes an array of the caller's memory, without a copy. `release` is called when bh no longer uses the memory; it must
    /// not call bh. While it is adopted, the caller looks at the memory only between `map` and `unmap`.
    ///
    /// # Safety
    /// `data` must hold the elements of `shape` in C order and stay valid until `release` is called.
    pub unsafe fn adopt(
        &self,
        dtype: DType,
        shape: &[i64],
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<ArrayId> {
        if data.is_null() {
            return Err(Error::new(status::ARGUMENT, "adopt: the data pointer is null"));
        }
        if !data.addr().is_multiple_of(dtype.size().min(8)) {
            let text = format!("adopt: address {data:p} is not aligned for elements of type {}", dtype.name());
            return Err(Error::new(status::ARGUMENT, text));
        }
        if element_count(shape) == Some(0) {
            return Err(Error::new(status::ARGUMENT, "adopt: an array without elements has no memory to adopt"));
        }
        let array = self.empty(dtype, shape)?;
        let mut state = lock(&self.state);
        let handle = state.find(array)?;
        let executor = state.executor()?;
        let place = state.handles.at(handle).base;
        let entry = state.bases.at_mut(place);
        entry.base.flags |= base_flags::PINNED;
        entry.pins = 1;
        let base = entry.base;
        let (data, argument) = (SendPtr(data), SendPtr(argument.cast()));
        let adopted = executor.with_backend(|backend| {
            // SAFETY: promised by the caller.
            unsafe { backend.adopt(&base, data.get(), release, argument.get().cast()) }
        });
        match adopted {
            Ok(()) => {
                state.bases.at_mut(place).known = true;
                Ok(array)
            }
            Err(error) => {
                state.release(handle);
                Err(error)
            }
        }
    }

    /// Forbids (or allows again) that the array's memory moves. `exported`: the user may look at it and change it between
    /// any two calls. Counted. From now on, each operation on it completes before it returns.
    pub fn pin(&self, array: ArrayId, pinned: bool, exported: bool) -> Result<()> {
        let held = self.hold(array, access::WRITE)?;
        let result = held.executor.with_backend(|backend| backend.pin(&held.base, pinned));
        let mut state = lock(&self.state);
        let handle = state.find(held.handle)?;
        let place = state.handles.at(handle).base;
        let entry = state.bases.at_mut(place);
        let result = match result {
            Ok(()) if pinned => {
                entry.pins += 1;
                entry.known = true;
                entry.exported |= exported;
                Ok(())
            }
            Ok(()) if entry.pins == 0 => Err(Error::new(status::ARGUMENT, "unpin: the array is not pinned")),
            Ok(()) => {
                entry.pins -= 1;
                entry.exported &= entry.pins > 0;
                Ok(())
            }
            error => error,
        };
        let flag = if entry.pins > 0 { base_flags::PINNED } else { 0 };
        entry.base.flags = entry.base.flags & !base_flags::PINNED | flag;
        state.release(handle);
        result
    }

    /// Completes what the access needs, reports deferred errors, and keeps the base alive meanwhile.
    fn hold(&self, array: ArrayId, mode: u32) -> Result<Held> {
        let mut state = lock(&self.state);
        let handle = state.find(array)?;
        let entry = state.handles.at(handle);
        let (place, small) = (entry.base, entry.view.clone());
        let view = small.view();
        let entry = state.bases.at(place);
        if entry.mapped_for_writing || (mode == access::WRITE && entry.maps > 0) {
            return Err(Error::new(status::ARGUMENT, "the array is mapped; unmap it first"));
        }
        // A reader waits for the last writer, a writer for every user.
        let needed = if mode == access::READ { entry.written } else { entry.epoch };
        // What gets memory now may have that of arrays that are given up.
        let bytes = entry.base.bytes();
        let makes_room = !entry.known && bytes >= ROOM && state.builder.freed_bytes >= bytes;
        let needed = if makes_room { state.builder.epoch } else { needed };
        let pending = needed == state.builder.epoch;
        if pending && mode == access::READ {
            state.push_sync(handle);
        }
        let own = state.new_handle(place, small)?;
        let own = state.name(own);
        let finished = self.finish(state, pending, needed);
        let mut state = lock(&self.state);
        // After a shutdown meanwhile, the handle is gone.
        let handle = state.find(own)?;
        match finished {
            Err(error) => {
                state.release(handle);
                Err(error)
            }
            Ok(executor) => {
                let place = state.handles.at(handle).base;
                let entry = state.bases.at_mut(place);
                // The stack hears of the base through the access that follows.
                entry.known = true;
                Ok(Held { handle: own, base: entry.base, view, executor })
            }
        }
    }

    /// Submits the pending batch if asked to, waits for `epoch`, and reports a deferred error.
    fn finish(&self, mut state: MutexGuard<'_, State>, submit: bool, epoch: u64) -> Result<Arc<Executor>> {
        let executor = state.executor()?;
        if submit {
            state.submit(Runner::Waiter)?;
        }
        let epoch = epoch.min(state.builder.epoch - 1);
        drop(state);
        executor.complete(epoch);
        match executor.take_error() {
            Some(error) => Err(error),
            None => Ok(executor),
        }
    }

    fn let_go(&self, held: Held) {
        let mut state = lock(&self.state);
        if let Ok(handle) = state.find(held.handle) {
            state.release(handle);
        }
    }

    /// Waits for everything recorded so far and reports the first failure since the last report.
    pub fn sync(&self) -> Result<()> {
        self.finish(lock(&self.state), true, u64::MAX).map(drop)
    }

    /// Hands everything recorded so far to the executor, and reports the first failure since the last report.
    pub fn flush(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let executor = state.executor()?;
        state.submit_asynchronously()?;
        drop(state);
        executor.take_error().map_or(Ok(()), Err)
    }

    /// Completes everything recorded so far before it returns, as operations on pinned memory and eager mode ask.
    pub(super) fn follow(&self, state: MutexGuard<'_, State>, followup: Followup) -> Result<()> {
        let mut state = state;
        let eager = state.running.as_ref().is_some_and(|running| running.options.eager);
        if followup == Followup::Nothing && !eager {
            state.check_limits();
            return Ok(());
        }
        self.finish(state, true, u64::MAX).map(drop)
    }
}

/// The user's byte strides, or those of C order.
fn check_stride(held: &Held, stride: Option<&[i64]>) -> Result<Vec<i64>> {
    let size = held.base.dtype().size() as i64;
    match stride {
        Some(stride) => Ok(stride.to_vec()),
        None => {
            let mut step = size;
            let mut all: Vec<i64> = Vec::with_capacity(held.view.rank());
            for &extent in held.view.shape().iter().rev() {
                all.push(step);
                step = step.saturating_mul(extent.max(1));
            }
            all.reverse();
            Ok(all)
        }
    }
}

/// The view's strides in bytes.
fn byte_stride(held: &Held) -> Vec<i64> {
    let size = held.base.dtype().size() as i64;
    held.view.stride().iter().map(|stride| stride * size).collect()
}

/// The address of the view's element (0, …, 0).
fn element_address(data: *mut u8, held: &Held) -> *mut u8 {
    data.wrapping_offset((held.view.start() * held.base.dtype().size() as i64) as isize)
}

//! Making, viewing and freeing arrays.

use crate::array::small_view::SmallView;
use crate::record::{Input, Operation, Source};
use crate::state::State;
use crate::sync::try_lock;
use crate::{ArrayId, ArrayInfo, ArrayRef, Location, Recorder};
use bh_bytecode::{Constant, DType, Opcode, View, ViewError};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

impl Recorder {
    /// A new array whose elements are undefined until they are written.
    pub fn empty(&self, dtype: DType, shape: &[i64]) -> Result<ArrayId> {
        let view = View::contiguous(shape).map_err(shape_error)?;
        let len = view.len();
        let mut state = self.state();
        let handle = state.new_contiguous(dtype, shape, len)?;
        Ok(state.name(handle))
    }

    /// A new array with all elements equal.
    pub fn full(&self, value: Constant, shape: &[i64], location: Location<'_>) -> Result<ArrayId> {
        let array = self.empty(value.dtype(), shape)?;
        match self.operate(Opcode::Copy, 0, array, &[Input::Constant(value)], location) {
            Ok(()) => Ok(array),
            Err(error) => {
                // The caller gets no handle, so this one must go; it fails only if a shutdown came first.
                let _ = self.free(array);
                Err(error)
            }
        }
    }

    /// Another view on the array's base, as a new handle. `derive` gets the array's view.
    pub fn derive(
        &self,
        array: ArrayId,
        derive: impl FnOnce(&View) -> std::result::Result<View, ViewError>,
    ) -> Result<ArrayId> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let view = derive(&state.handles.at(handle).view.view());
        let window = state.window(handle, &view.map_err(|error| Error::new(status::ARGUMENT, error.0))?)?;
        Ok(state.name(window))
    }

    /// As [`Recorder::derive`], of a view that the caller knows.
    pub fn window(&self, array: ArrayId, view: &View) -> Result<ArrayId> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let window = state.window(handle, view)?;
        Ok(state.name(window))
    }

    /// A second handle on the same view.
    pub fn duplicate(&self, array: ArrayId) -> Result<ArrayId> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let entry = state.handles.at(handle);
        let (base, view) = (entry.base, entry.view.clone());
        let second = state.new_handle(base, view)?;
        Ok(state.name(second))
    }

    /// The elements in C order under another shape: a view where strides allow it, else a copy.
    pub fn reshape(&self, array: ArrayId, shape: &[i64], location: Location<'_>) -> Result<ArrayId> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let entry = state.handles.at(handle);
        let base = entry.base;
        match entry.view.view().reshape(shape).map_err(shape_error)? {
            Some(view) => {
                let reshaped = state.new_handle(base, SmallView::new(&view))?;
                Ok(state.name(reshaped))
            }
            None => {
                let operation = Operation { opcode: Opcode::Copy, param: 0, location };
                let dtype = state.dtype(handle);
                let (copy, followup) = state.record_new(operation, Some(dtype), &[Source::Handle(handle)])?;
                let flat = state.handles.at(copy).base;
                let reshaped = state.new_handle(flat, SmallView::contiguous(shape));
                state.release(copy);
                let array = state.name(reshaped?);
                self.follow(state, followup)?;
                Ok(array)
            }
        }
    }

    /// Type and view of an array.
    pub fn info(&self, array: ArrayId) -> Result<ArrayInfo> {
        let state = self.state();
        state.find(array).map(|handle| state.info(handle))
    }

    /// Answers a question about an array, which must not take long. Cheaper than [`Recorder::info`].
    #[inline]
    pub fn ask<R>(&self, array: ArrayId, question: impl FnOnce(ArrayRef<'_>) -> R) -> Result<R> {
        let state = self.state();
        let handle = state.find(array)?;
        let view = &state.handles.at(handle).view;
        Ok(question(ArrayRef { dtype: state.dtype(handle), view: view.into(), len: view.len }))
    }

    /// Frees a handle. The base goes with its last handle, after the operations recorded so far. Never waits for a batch,
    /// but may run a small one.
    pub fn free(&self, array: ArrayId) -> Result<()> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let base = state.bases.at(state.handles.at(handle).base);
        let pinned = base.pins > 0 && base.references == 1;
        state.give_up(handle);
        // The owner of adopted memory wants it back now, not at some later flush.
        let submitted = if pinned { Some(state.submit()?) } else { state.check_limits() };
        drop(state);
        if let Some(submitted) = submitted {
            submitted.start();
        }
        Ok(())
    }

    /// Frees a handle, at the latest when something is recorded or waited for next. Waits for no lock, runs nothing and cannot
    /// fail, so that garbage collectors and destructors may call it at any time.
    pub fn free_later(&self, array: ArrayId) {
        // Usually nobody else is at it, and then it can be done here and now.
        let Some(mut state) = try_lock(&self.state) else { return self.later.push(array) };
        self.free_waiting(&mut state);
        state.free_now(array);
    }
}

impl State {
    /// A view on the base of an array, as a new handle.
    pub(crate) fn window(&mut self, handle: u32, view: &View) -> Result<u32> {
        let base = self.handles.at(handle).base;
        let len = self.bases.at(base).base.len;
        if !view.fits(len) {
            let text = format!("{view:?} leaves the base of {len} elements");
            return Err(Error::new(status::BOUNDS, text));
        }
        self.new_handle(base, SmallView::new(view))
    }
}

pub(crate) fn shape_error(error: ViewError) -> Error {
    Error::new(status::SHAPE, error.0)
}

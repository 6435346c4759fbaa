//! The scope of a composition: its temporaries are freed at the end.

use bh_bytecode::{DType, Opcode, View, ViewError};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Location, Recorder};
use std::cell::RefCell;

/// Records the operations of one composition.
pub(crate) struct Scope<'a> {
    pub(crate) recorder: &'a Recorder,
    pub(crate) place: Location<'a>,
    temporaries: RefCell<Vec<ArrayId>>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(recorder: &'a Recorder, place: Location<'a>) -> Scope<'a> {
        Scope { recorder, place, temporaries: RefCell::default() }
    }

    /// Registers an array to be freed at the end.
    pub(crate) fn note(&self, array: ArrayId) -> ArrayId {
        self.temporaries.borrow_mut().push(array);
        array
    }

    /// An operation into a new array. `param`: the axes of a reduction.
    pub(crate) fn operate(&self, opcode: Opcode, param: u16, inputs: &[Input]) -> Result<ArrayId> {
        self.recorder.operate_new(opcode, param, None, inputs, self.place).map(|array| self.note(array))
    }

    /// An operation into an array.
    pub(crate) fn operate_into(&self, opcode: Opcode, out: ArrayId, inputs: &[Input]) -> Result<()> {
        self.recorder.operate(opcode, 0, out, inputs, self.place)
    }

    /// Another view of an array.
    pub(crate) fn view(
        &self,
        array: ArrayId,
        derive: impl FnOnce(&View) -> std::result::Result<View, ViewError>,
    ) -> Result<ArrayId> {
        self.recorder.derive(array, derive).map(|view| self.note(view))
    }

    /// A new array with undefined elements.
    pub(crate) fn empty(&self, dtype: DType, shape: &[i64]) -> Result<ArrayId> {
        self.recorder.empty(dtype, shape).map(|array| self.note(array))
    }

    /// A new array with these elements and another type.
    pub(crate) fn cast(&self, dtype: DType, array: ArrayId) -> Result<ArrayId> {
        let inputs = [Input::Array(array)];
        self.recorder.operate_new(Opcode::Copy, 0, Some(dtype), &inputs, self.place).map(|array| self.note(array))
    }

    /// A new array of 0, 1, …
    pub(crate) fn numbers(&self, dtype: DType, shape: &[i64]) -> Result<ArrayId> {
        let array = self.empty(dtype, shape)?;
        self.recorder.range(array, 0, 1, self.place).map(|()| array)
    }

    /// Keeps one of the arrays as the result.
    pub(crate) fn keep(self, array: ArrayId) -> ArrayId {
        self.temporaries.borrow_mut().retain(|&other| other != array);
        array
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.temporaries.take().into_iter().for_each(|array| self.recorder.free_later(array));
    }
}

/// Checks that a dimension exists.
pub(crate) fn check_axis(name: &str, axis: usize, rank: usize) -> Result<()> {
    if axis < rank {
        return Ok(());
    }
    Err(Error::new(status::ARGUMENT, format!("{name}: there is no axis {axis} in an array of {rank} dimensions")))
}

//! Real and imaginary parts of complex arrays as views: each use reads the array as it is now, and what is written to them
//! goes on to the array.

use crate::array::{Array, Link};
use crate::error::{exception, value_error};
use crate::location::with_location;
use crate::shared_view::made;
use bh_bytecode::{Opcode, View};
use bh_recorder::{ArrayId, Input};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};

/// `f(array, values, imaginary)`: overwrites a part of an array.
static STORE: OnceLock<Py<PyAny>> = OnceLock::new();

/// Tells the function that overwrites parts.
#[pyfunction]
fn set_part_store(store: Py<PyAny>) {
    // A second call, of a reloaded package, changes nothing.
    let _ = STORE.set(store);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_part_store, module)?)?;
    module.add_function(wrap_pyfunction!(part, module)?)
}

impl Link {
    fn opcode(&self) -> Opcode {
        if self.imaginary { Opcode::Imag } else { Opcode::Real }
    }

    /// Records that the part's memory gets the elements as they are now.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let (whole, elements) = (self.whole.borrow(py), self.elements.borrow(py));
        let from = [Input::Array(whole.id())];
        with_location(py, |place| whole.context.recorder.operate(self.opcode(), 0, elements.id(), &from, place))
            .map_err(exception)
    }
}

impl Link {
    /// The element at a place of the part's memory, as it is now; the others are left alone.
    pub fn element(&self, py: Python<'_>, place: i64) -> PyResult<Array> {
        let (whole, elements) = (self.whole.get(), self.elements.get());
        let (mut start, mut rest) = (whole.view.start(), place);
        for (extent, stride) in whole.view.shape().iter().zip(whole.view.stride()).rev() {
            start += rest % extent * stride;
            rest /= extent;
        }
        let view = made(start, &[], &[]).map_err(value_error)?;
        let recorder = &whole.context.recorder;
        let id = with_location(py, |place| {
            let number = recorder.copy_of((whole.anchor(), &view), place)?;
            let part = recorder.operate_new(self.opcode(), 0, Some(elements.dtype), &[Input::Array(number)], place);
            recorder.free_later(number);
            part
        });
        Ok(Array::result(whole.context, id.map_err(exception)?, elements.dtype, View::default()))
    }
}

impl Array {
    /// The handle of the elements as they are now, which an operation reads or changes.
    #[inline]
    pub fn current(&self, py: Python<'_>) -> PyResult<ArrayId> {
        self.refresh(py)?;
        Ok(self.id())
    }

    /// Sees to it that the memory of a part has the elements as they are now.
    #[inline]
    pub fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.link.as_ref().map_or(Ok(()), |link| link.refresh(py))
    }

    /// Passes on what was written.
    pub fn written(&self, py: Python<'_>) -> PyResult<()> {
        let Some(link) = &self.link else { return Ok(()) };
        let store = STORE.get().ok_or_else(|| PyRuntimeError::new_err("the package bh is not imported"))?;
        store.bind(py).call1((&link.whole, &link.elements, link.imaginary)).map(drop)
    }
}

/// The real or imaginary part of a complex array, as a view of it.
#[pyfunction]
fn part(array: &Bound<'_, Array>, imaginary: bool) -> PyResult<Array> {
    let (py, this) = (array.py(), array.borrow());
    let dtype = this.dtype.real_part();
    let elements = Array::empty(this.context, dtype, this.view.shape())?;
    let id = this.context.recorder.window(elements.id(), &elements.view).map_err(exception)?;
    let mut result = Array::new(this.context, id, dtype, elements.view.shared());
    result.base = Some(this.base.as_ref().map_or_else(|| array.clone().unbind(), |base| base.clone_ref(py)));
    result.set_writeable(this.is_writeable());
    let link = Link { whole: array.clone().unbind(), elements: Py::new(py, elements)?, imaginary };
    result.link = Some(Arc::new(link));
    Ok(result)
}

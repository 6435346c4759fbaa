//! Elements, rows and columns of arrays whose data is computed.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::error::waiting;
use crate::operand::{Number, Operand, classify, code};
use crate::scalar::{asked_by_program, numpy_scalar};
use crate::strided::is_plain;
use crate::transfer::python_number;
use bh_bytecode::{Constant, DType, View};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};

/// The place in the base that a key of whole numbers names, one for each dimension. `None` for other keys, and for numbers
/// that are out of bounds.
#[inline]
fn place(view: &View, key: &Bound<'_, PyAny>) -> Option<i64> {
    let (shape, stride) = (view.shape(), view.stride());
    let step = |axis: usize, object: &Bound<'_, PyAny>| {
        let given = match object.is_exact_instance_of::<PyInt>() {
            true => object.extract::<i64>().ok()?,
            false if object.is_exact_instance_of::<PySlice>() => return None,
            false => match classify(object)? {
                (code, Operand::Number(Number::Int(value))) if code < code::INT => i64::try_from(value).ok()?,
                (_, Operand::Array(array))
                    if array.view.rank() == 0 && array.dtype.is_int() && array.dtype != DType::U64 =>
                {
                    array.context.recorder.value_of(array.id()).ok()??.to::<i64>()
                }
                _ => return None,
            },
        };
        let index = if given < 0 { given + shape[axis] } else { given };
        (0..shape[axis]).contains(&index).then(|| index * stride[axis])
    };
    if shape.len() == 1 {
        return Some(view.start() + step(0, key)?);
    }
    let key = key.cast_exact::<PyTuple>().ok().filter(|key| key.len() == shape.len() && !shape.is_empty())?;
    let mut place = view.start();
    for (axis, object) in key.iter_borrowed().enumerate() {
        place += step(axis, &object)?;
    }
    Some(place)
}

/// The element that a key of whole numbers names, if the program asks and it is computed.
#[inline]
pub fn at_hand(array: &Bound<'_, Array>, key: &Bound<'_, PyAny>) -> Option<Constant> {
    let this = array.get();
    let place = place(&this.view, key).filter(|_| this.link.is_none() && crate::shortcut::taken())?;
    if !asked_by_program(array.py()) {
        return None;
    }
    read(this, place)
}

/// An element of an array's base, if it is computed, or becomes so without waiting.
#[inline]
fn read(array: &Array, place: i64) -> Option<Constant> {
    let recorder = &array.context.recorder;
    if let Some(here) = array.here() {
        return recorder.element_here(here, place);
    }
    let found = recorder.hand()?.element(array.store(), place);
    if found.is_some() || !recorder.settle_part(array.anchor(), 1) {
        found
    } else {
        recorder.hand()?.element(array.store(), place)
    }
}

/// Overwrites the element that a key of whole numbers names, if it is computed. False if that has to be recorded.
#[inline]
pub fn set_at_hand(array: &Array, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> bool {
    let set = || {
        let place = place(&array.view, key).filter(|_| array.link.is_none() && crate::shortcut::taken())?;
        let (_, value) = classify(value)?;
        let recorder = &array.context.recorder;
        let value = match value {
            Operand::Number(number) => number.assigned(array.dtype)?,
            Operand::Array(value) if value.dtype == array.dtype && std::ptr::eq(value.context, array.context) => {
                let value = (value.view.rank() == 0).then_some((value.store(), value.view.start()))?;
                recorder.hand()?.value(value.0, value.1)?
            }
            Operand::Array(_) => return None,
        };
        if let Some(here) = array.here() {
            return recorder.set_element_here(here, place, value);
        }
        if recorder.hand()?.set_element(array.store(), place, value).is_some() {
            return Some(());
        }
        recorder.settle_part_to_write(array.anchor(), 1);
        recorder.hand()?.set_element(array.store(), place, value)
    };
    set().is_some()
}

/// The only element, or that with an index for each dimension, as a number of Python, if it is computed.
pub fn item<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let item = || {
        let (array, indices) = call.unnamed()?.split_first()?;
        let array = array.bind(call.py()).cast_exact::<Array>().ok()?.get();
        let view = &*array.view;
        if !is_plain(array) || !(indices.len() == view.rank() || indices.is_empty() && view.len() == 1) {
            return None;
        }
        let mut place = view.start();
        for ((index, extent), stride) in indices.iter().zip(view.shape()).zip(view.stride()) {
            let index = index.bind(call.py());
            let given = index.is_exact_instance_of::<PyInt>().then(|| index.extract::<i64>().ok())??;
            let index = if given < 0 { given.saturating_add(*extent) } else { given };
            place += (0..*extent).contains(&index).then_some(index * stride)?;
        }
        array.context.recorder.hand()?.element(array.store(), place)
    };
    item().map(|value| Ok(python_number(call.py(), value)?.into_bound(call.py()))).transpose()
}

/// As many elements or rows may be recorded one by one: programs unpack vectors of a few numbers, and compute with them.
const FEW: i64 = 8;

/// Waits for an array of many elements or rows before the program iterates over it. Else each of the first ones is recorded, and
/// keeps the array from being settled while the program holds it.
pub fn await_rows(array: &Bound<'_, Array>) -> PyResult<()> {
    let (py, this) = (array.py(), array.get());
    let many = this.view.shape().first().is_some_and(|&extent| extent > FEW);
    if !many || this.link.is_some() || !crate::shortcut::taken() || !asked_by_program(py) {
        return Ok(());
    }
    let recorder = &this.context.recorder;
    let at_hand = recorder.hand().map(|hand| hand.data(this.store(), this.view.start()).is_some());
    // Nothing to wait for: elements are computed, become so without waiting, or never do as immediate operations are off.
    if at_hand != Some(false) || recorder.settle_part(this.anchor(), 1) {
        return Ok(());
    }
    waiting(py, |patience| recorder.sync_with(patience))
}

/// The elements of a vector, or the rows of an array, one after the other.
#[pyclass(module = "bh._native")]
pub struct Rows {
    pub array: Py<Array>,
    pub next: i64,
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Rows>) -> Py<Rows> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let array = self.array.bind(py);
        if array.borrow().view.shape().first().is_none_or(|extent| self.next >= *extent) {
            return Ok(None);
        }
        self.next += 1;
        let view = &array.get().view;
        if let (&[step], true) = (view.stride(), crate::shortcut::taken())
            && array.get().link.is_none()
            && asked_by_program(py)
            && let Some(value) = read(array.get(), view.start() + (self.next - 1) * step)
        {
            return numpy_scalar(py, &value).map(Some);
        }
        Array::__getitem__(array, PyInt::new(py, self.next - 1).as_any()).map(Some)
    }
}

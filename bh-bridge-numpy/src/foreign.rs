//! Small arrays of NumPy, and lists of numbers, where arrays of bh are meant: what they hold is copied when they are given, as NumPy
//! would read it then.

use crate::array::Array;
use crate::context::Shared;
use crate::create::filled;
use crate::from_lists::numbers;
use crate::numpy_api::HostArray;
use crate::operand::number;
use crate::shared_view::contiguous;
use crate::transfer::byte_stride;
use bh_bytecode::{DType, MAX_RANK};
use bh_core::strided::{self, Side};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A copy of an array of NumPy's own class that is small enough to be settled; `None` for all other objects. Its elements
/// follow each other in C order, or it is a vector.
pub fn copied<'py>(context: Shared, object: &Bound<'py, PyAny>) -> Option<Bound<'py, Array>> {
    let host = HostArray::of(object).filter(|_| crate::shortcut::taken())?;
    let dtype = host.dtype()?;
    let rank = host.shape().len();
    if rank == 0 || rank > MAX_RANK || rank > 1 && !host.is_plain() {
        return None;
    }
    let shape: Vec<i64> = host.shape().iter().map(|&extent| extent as i64).collect();
    let view = contiguous(&shape).ok()?;
    let mut hand = context.recorder.hand()?;
    let (made, to) = hand.make(dtype, &shape, &[])?;
    // Truth values of others may have any byte, bh's are 0 and 1.
    if host.is_plain() && dtype != DType::Bool {
        // SAFETY: both have this many bytes, and the new array is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(host.data(), to, view.len() as usize * dtype.size()) };
    } else {
        let stride: Vec<i64> = host.strides().iter().map(|&stride| stride as i64).collect();
        let (to, from) =
            (Side { data: to, stride: &byte_stride(&view, dtype) }, Side { data: host.data(), stride: &stride });
        // SAFETY: as above; the elements are at these strides, wherever they lie.
        unsafe { strided::copy(dtype, &shape, to, from) };
    }
    drop(hand);
    Bound::new(object.py(), Array::new(context, made, dtype, view)).ok()
}

/// As [`copied`], for an operand, which may have no dimensions, or be a list.
fn operand<'py>(context: Shared, object: &Bound<'py, PyAny>) -> Option<Bound<'py, Array>> {
    let Some(host) = HostArray::of(object) else { return numbers(context, object, None) };
    match host.shape() {
        // An element of NumPy's has the type of its array, as the scalar has.
        [] => {
            let value = number(&object.get_item(PyTuple::empty(object.py())).ok()?)?;
            let value = value.constant(host.dtype()?)?;
            filled(object.py(), context, Arc::default(), value).ok()??.cast_into().ok()
        }
        _ => copied(context, object),
    }
}

/// Arguments with copies in the places of lists of numbers among the first `count`; `None` if there are none.
pub fn of_lists(py: Python<'_>, context: Shared, all: &[Py<PyAny>], count: usize) -> Option<Vec<Py<PyAny>>> {
    replaced(py, all, |place, object| if place < count { numbers(context, object, None) } else { None })
}

/// Arguments with the copies that there are in their places; `None` if there are none.
fn replaced<'py>(
    py: Python<'py>,
    all: &[Py<PyAny>],
    copy: impl Fn(usize, &Bound<'py, PyAny>) -> Option<Bound<'py, Array>>,
) -> Option<Vec<Py<PyAny>>> {
    let mut found = false;
    let replaced = all.iter().enumerate().map(|(place, object)| {
        let copy = copy(place, object.bind(py));
        found |= copy.is_some();
        copy.map_or_else(|| object.clone_ref(py), |copy| copy.into_any().unbind())
    });
    let replaced: Vec<Py<PyAny>> = replaced.collect();
    found.then_some(replaced)
}

/// The context of the first array of bh's among some objects.
fn context_of<'a, 'py: 'a>(mut objects: impl Iterator<Item = &'a Bound<'py, PyAny>>) -> Option<Shared> {
    objects.find_map(|object| Some(object.cast_exact::<Array>().ok()?.get().context))
}

/// Two operands, of which one is an array of bh's and the other one of NumPy's or a list, as two of bh's.
pub fn pair<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> Option<[Bound<'py, PyAny>; 2]> {
    let context = context_of([a, b].into_iter())?;
    // A number repeats a list, or does not.
    let is_number =
        |object: &Bound<'py, PyAny>| object.cast_exact::<Array>().is_ok_and(|array| array.get().is_scalar());
    let operand = |object: &Bound<'py, PyAny>, other| match HostArray::of(object) {
        None if is_number(other) => None,
        _ => operand(context, object),
    };
    match (operand(a, b), operand(b, a)) {
        (Some(a), None) => Some([a.into_any(), b.clone()]),
        (None, Some(b)) => Some([a.clone(), b.into_any()]),
        _ => None,
    }
}

/// Arguments with copies in the places of NumPy's arrays and of lists; `None` if there are none. Without an array of bh's among them, the
/// copies belong to `context`.
pub fn arguments(py: Python<'_>, all: &[Py<PyAny>], context: Option<Shared>) -> Option<Vec<Py<PyAny>>> {
    let context = context_of(all.iter().map(|object| object.bind(py))).or(context)?;
    replaced(py, all, |_, object| operand(context, object))
}

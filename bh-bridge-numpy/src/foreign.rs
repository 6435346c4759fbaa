//! Small arrays of NumPy where arrays of bh are meant: what they hold is copied when they are given, as NumPy would read it then.

use crate::array::Array;
use crate::context::Shared;
use crate::create::filled;
use crate::numpy_api::HostArray;
use crate::operand::number;
use crate::shared_view::contiguous;
use crate::transfer::byte_stride;
use bh_bytecode::{DType, MAX_RANK};
use bh_core::strided::{self, Side};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A copy of an array of NumPy's own class that is small enough to be at hand; `None` for all other objects. Its elements follow
/// each other in C order, or it is a vector.
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

/// As [`copied`], for an operand, which may have no dimensions.
fn operand<'py>(context: Shared, object: &Bound<'py, PyAny>) -> Option<Bound<'py, Array>> {
    match HostArray::of(object)?.shape() {
        // An element of NumPy's has the type of its array, as the scalar has.
        [] => {
            let value = number(&object.get_item(PyTuple::empty(object.py())).ok()?)?;
            let value = value.constant(HostArray::of(object)?.dtype()?)?;
            filled(object.py(), context, Arc::default(), value).ok()??.cast_into().ok()
        }
        _ => copied(context, object),
    }
}

/// The context of the first array of bh's among some objects.
fn context_of<'a, 'py: 'a>(mut objects: impl Iterator<Item = &'a Bound<'py, PyAny>>) -> Option<Shared> {
    objects.find_map(|object| Some(object.cast_exact::<Array>().ok()?.get().context))
}

/// Two operands, of which one is an array of bh's and the other one of NumPy's, as two of bh's.
pub fn pair<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> Option<[Bound<'py, PyAny>; 2]> {
    let context = context_of([a, b].into_iter())?;
    match (operand(context, a), operand(context, b)) {
        (Some(a), None) => Some([a.into_any(), b.clone()]),
        (None, Some(b)) => Some([a.clone(), b.into_any()]),
        _ => None,
    }
}

/// Arguments with copies in the places of NumPy's arrays; `None` if there are none. Without an array of bh's among them, the
/// copies belong to `context`.
pub fn arguments(py: Python<'_>, all: &[Py<PyAny>], context: Option<Shared>) -> Option<Vec<Py<PyAny>>> {
    let context = context_of(all.iter().map(|object| object.bind(py))).or(context)?;
    let mut found = false;
    let replaced = all.iter().map(|object| match operand(context, object.bind(py)) {
        Some(copy) => {
            found = true;
            copy.into_any().unbind()
        }
        None => object.clone_ref(py),
    });
    let replaced: Vec<Py<PyAny>> = replaced.collect();
    found.then_some(replaced)
}

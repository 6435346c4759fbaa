//! Small arrays of NumPy where arrays of bh are meant: what they hold is copied when they are given, as NumPy would read it then.

use crate::array::Array;
use crate::context::Shared;
use crate::numpy_types::numpy_array;
use crate::shared_view::contiguous;
use bh_bytecode::DType;
use bh_core::strided::{self, Side};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use std::ffi::CStr;

/// The element type of a buffer's format; `None` for those that bh lacks.
fn element_type(format: &CStr, size: usize) -> Option<DType> {
    // C has two types of 64-bit integers, of which bh writes one.
    let known = match format.to_bytes() {
        b"q" => c"l",
        b"Q" => c"L",
        _ => format,
    };
    DType::ALL.into_iter().find(|&dtype| crate::buffer::format(dtype) == known && dtype.size() == size)
}

/// A copy of an array of NumPy's own class that is small enough to be at hand; `None` for all other objects. Its elements follow
/// each other in C order, or it is a vector.
pub fn copied<'py>(context: Shared, object: &Bound<'py, PyAny>) -> Option<Bound<'py, Array>> {
    let py = object.py();
    if !crate::shortcut::taken() || !object.get_type().is(numpy_array(py).ok()?) {
        return None;
    }
    let buffer = PyUntypedBuffer::get(object).ok()?;
    let rank = buffer.dimensions();
    if rank == 0 || rank > 1 && !buffer.is_c_contiguous() {
        return None;
    }
    let dtype = element_type(buffer.format(), buffer.item_size())?;
    let shape: Vec<i64> = buffer.shape().iter().map(|&extent| extent as i64).collect();
    let stride: Vec<i64> = buffer.strides().iter().map(|&stride| stride as i64).collect();
    let view = contiguous(&shape).ok()?;
    let own: Vec<i64> = view.stride().iter().map(|stride| stride * dtype.size() as i64).collect();
    let mut hand = context.recorder.hand()?;
    let (id, to) = hand.make(dtype, &shape, &[])?;
    if !view.is_empty() {
        let from = Side { data: buffer.buf_ptr().cast(), stride: &stride };
        // SAFETY: both hold the elements; the buffer's lives while it is held, and of bh's the lock is.
        unsafe { strided::copy(dtype, &shape, Side { data: to, stride: &own }, from) };
    }
    drop(hand);
    Bound::new(py, Array::new(context, id, dtype, view)).ok()
}

/// The context of the first array of bh's among some objects.
fn context_of<'a, 'py: 'a>(mut objects: impl Iterator<Item = &'a Bound<'py, PyAny>>) -> Option<Shared> {
    objects.find_map(|object| Some(object.cast_exact::<Array>().ok()?.get().context))
}

/// Two operands, of which one is an array of bh's and the other one of NumPy's, as two of bh's.
pub fn pair<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> Option<[Bound<'py, PyAny>; 2]> {
    let context = context_of([a, b].into_iter())?;
    match (copied(context, a), copied(context, b)) {
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
    let replaced = all.iter().map(|object| match copied(context, object.bind(py)) {
        Some(copy) => {
            found = true;
            copy.into_any().unbind()
        }
        None => object.clone_ref(py),
    });
    let replaced: Vec<Py<PyAny>> = replaced.collect();
    found.then_some(replaced)
}

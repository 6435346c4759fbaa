//! Arrays of one type put together, of data that is at hand.

use crate::array::Array;
use crate::function::{Call, Served};
use crate::strided::{Strided, is_plain, sized};
use bh_bytecode::View;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

fn copy_into<T: Copy>(from: Strided<'_>, to: *mut u8, first: usize) {
    for (place, at) in from.addresses::<T>().enumerate() {
        // SAFETY: there is room for all elements of all arrays.
        unsafe { to.cast::<T>().add(first + place).write_unaligned(at.read_unaligned()) };
    }
}

/// The arrays of a list or a tuple, if all are such.
fn arrays<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<PyRef<'py, Array>>> {
    let array = |object: Bound<'py, PyAny>| object.cast_into_exact::<Array>().ok()?.try_borrow().ok();
    match object.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(array).collect(),
        Err(_) => object.cast_exact::<PyList>().ok()?.iter().map(array).collect(),
    }
}

/// The elements of all arrays, one array after the other, in a new array of a shape.
fn joined(all: &[PyRef<'_, Array>], shape: &[i64]) -> Option<Array> {
    let first = all.first()?;
    let fits = |array: &PyRef<'_, Array>| {
        is_plain(array) && array.dtype == first.dtype && Arc::ptr_eq(&array.context, &first.context)
    };
    let mut hand = first.context.recorder.hand().filter(|_| all.iter().all(fits))?;
    let parts: Option<Vec<Strided<'_>>> = all.iter().map(|array| Strided::of(&hand, array)).collect();
    let view = View::contiguous(shape).ok()?;
    let (id, to) = hand.make(first.dtype, shape, &[])?;
    let mut place = 0;
    for part in parts? {
        sized!(first.dtype, copy_into(part, to, place));
        place += part.view.len() as usize;
    }
    Some(Array::new(Arc::clone(&first.context), id, first.dtype, view))
}

/// Along the first dimension, of vectors or arrays of more dimensions that else have the same shape.
pub fn concatenate<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let joined = || {
        let [list] = call.plain()?;
        let all = arrays(&list)?;
        let (rows, rest) = all.first()?.view.shape().split_first()?;
        let same = |array: &PyRef<'_, Array>| array.view.shape().split_first().is_some_and(|(_, other)| other == rest);
        let rows: i64 =
            all.iter().all(same).then(|| all[1..].iter().map(|array| array.view.shape()[0]).sum::<i64>() + rows)?;
        let shape: Vec<i64> = std::iter::once(rows).chain(rest.iter().copied()).collect();
        joined(&all, &shape)
    };
    joined().map(|joined| Ok(Bound::new(call.py(), joined)?.into_any())).transpose()
}

/// Along a new first dimension, of arrays of one shape.
pub fn stack<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let joined = || {
        let [list] = call.plain()?;
        let all = arrays(&list)?;
        let rest = all.first()?.view.shape();
        let shape: Vec<i64> = std::iter::once(all.len() as i64).chain(rest.iter().copied()).collect();
        all.iter().all(|array| array.view.shape() == rest).then(|| joined(&all, &shape))?
    };
    joined().map(|joined| Ok(Bound::new(call.py(), joined)?.into_any())).transpose()
}

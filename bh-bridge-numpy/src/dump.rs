//! The elements of arrays whose data has been computed, as bytes and as lists of Python's numbers.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::create::copy_into;
use crate::strided::{Strided, sized};
use bh_bytecode::DType;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// The most elements that are copied under the recorder's lock.
const MOST: i64 = 1 << 14;

/// Calls `f` with the elements of an array. `None` if they are many, or have to be waited for, and for truth values, of which any byte
/// but 0 is true.
fn with_elements<R>(array: &Array, f: impl FnOnce(Strided<'_>) -> R) -> Option<R> {
    if array.dtype == DType::Bool || array.is_scalar() || array.view.is_empty() || array.len() > MOST {
        return None;
    }
    let hand = array.context.recorder.hand()?;
    // SAFETY: the hand is held as long as they are used, and nothing is written meanwhile.
    Some(f(unsafe { Strided::of(&hand, array) }?))
}

/// The bytes of the elements in C order.
pub fn tobytes<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(array) = call.array().map(Bound::get) else { return Ok(None) };
    let (size, mut found) = (array.len() as usize * array.dtype.size(), None);
    if array.len() > MOST {
        return Ok(None);
    }
    let bytes = PyBytes::new_with(call.py(), size, |to| {
        found = with_elements(array, |from| sized!(array.dtype, copy_into(from, to.as_mut_ptr())));
        Ok(())
    })?;
    Ok(found.map(|()| bytes.into_any()))
}

/// A vector of floats or of whole numbers of 64 bits as a list.
pub fn tolist<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, Some(array)) = (call.py(), call.array().map(Bound::get)) else { return Ok(None) };
    if array.view.rank() != 1 || !matches!(array.dtype, DType::F64 | DType::I64) {
        return Ok(None);
    }
    // SAFETY: they are addresses of elements of eight bytes.
    let words =
        |from: Strided<'_>| from.addresses::<u64>().map(|at| unsafe { at.read_unaligned() }).collect::<Vec<u64>>();
    let Some(words) = with_elements(array, words) else { return Ok(None) };
    let list = match array.dtype {
        DType::F64 => PyList::new(py, words.into_iter().map(f64::from_bits)),
        _ => PyList::new(py, words.into_iter().map(u64::cast_signed)),
    };
    list.map(|list| Some(list.into_any()))
}

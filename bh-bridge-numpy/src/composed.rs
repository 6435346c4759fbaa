//! Universal functions that the package composes of several operations, on little computed data: the same arithmetic,
//! element by element. Elements that are not finite are left to the operations.

use crate::array::Array;
use crate::shared_view::contiguous;
use crate::strided::{Strided, is_plain};
use bh_bytecode::DType;
use pyo3::prelude::*;

/// Calls `f` for the pairs of elements of two vectors, or arrays without gaps, of equal lengths. False if it is for one.
fn pairs<T: Copy>(a: &[T], b: &[T], to: *mut u8, f: impl Fn(T, T) -> Option<T>) -> bool {
    a.iter().zip(b).enumerate().all(|(place, (&a, &b))| {
        // SAFETY: there is room for as many elements.
        f(a, b).map(|value| unsafe { to.cast::<T>().add(place).write_unaligned(value) }).is_some()
    })
}

macro_rules! hypot {
    ($type:ty) => {
        |a: $type, b: $type| {
            let (a, b) = (a.abs(), b.abs());
            let (large, small) = if a > b { (a, b) } else { (b, a) };
            let ratio = small / if large == 0.0 { 1.0 } else { large };
            let size = large * (ratio * ratio + 1.0).sqrt();
            (a.is_finite() && b.is_finite() && size.is_finite()).then_some(size)
        }
    };
}

/// The lengths of vectors of two components, given in two arrays of floats of one shape.
pub fn hypot(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Option<Array> {
    let (a, b) = (a.cast_exact::<Array>().ok()?.get(), b.cast_exact::<Array>().ok()?.get());
    let fits = a.dtype == b.dtype && a.view.rank() > 0 && a.view.shape() == b.view.shape();
    if !fits || !is_plain(a) || !is_plain(b) || !std::ptr::eq(a.context, b.context) {
        return None;
    }
    let mut hand = a.context.recorder.hand()?;
    for array in [a, b] {
        hand.is_in_c_order(array.store(), &array.view).filter(|in_order| *in_order)?;
    }
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let (x, y) = (unsafe { Strided::of(&hand, a) }?, unsafe { Strided::of(&hand, b) }?);
    let view = contiguous(a.view.shape()).ok()?;
    let (id, to) = hand.make(a.dtype, view.shape(), &[])?;
    let done = match a.dtype {
        DType::F64 => x.slice().zip(y.slice()).is_some_and(|(x, y)| pairs(x, y, to, hypot!(f64))),
        DType::F32 => x.slice().zip(y.slice()).is_some_and(|(x, y)| pairs(x, y, to, hypot!(f32))),
        _ => false,
    };
    drop(hand);
    // From here on it owns the handle.
    let result = Array::new(a.context, id, a.dtype, view);
    done.then_some(result)
}

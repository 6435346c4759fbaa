//! Folds that leave out NaN, of little arrays that have none: these are the plain folds, with the same bits.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::strided::{Strided, hand_for, is_plain};
use crate::{array_functions, statistics};
use bh_bytecode::DType;

/// Is the first argument an array without NaN, which is known without waiting?
fn has_none(call: &Call<'_, '_>) -> bool {
    let array = call.arguments.unnamed().first().and_then(|object| object.bind(call.py()).cast_exact::<Array>().ok());
    let Some(array) = array
        .map(|array| array.get())
        .filter(|array| is_plain(array) && array.view.is_contiguous() && !array.view.is_empty())
    else {
        return false;
    };
    if array.dtype.is_int() || array.dtype == DType::Bool {
        return true;
    }
    if array.len() as u64 * array.dtype.size() as u64 > array.context.little {
        return false;
    }
    let Some(hand) = hand_for(std::iter::once(array)) else { return false };
    // Of other orders, folds go through a copy.
    if hand.is_in_c_order(array.store(), &array.view) != Some(true) {
        return false;
    }
    // SAFETY: the hand is held as long as the elements are used, which nothing writes to.
    let Some(elements) = (unsafe { Strided::of(&hand, array) }) else { return false };
    // SAFETY: they are the addresses of elements of this type.
    unsafe {
        match array.dtype {
            DType::F32 => !elements.addresses::<f32>().any(|at| at.read_unaligned().is_nan()),
            DType::F64 => !elements.addresses::<f64>().any(|at| at.read_unaligned().is_nan()),
            _ => false,
        }
    }
}

macro_rules! plain {
    ($($(#[$text:meta])* $name:ident: $plain:path,)*) => {$(
        $(#[$text])*
        pub fn $name<'py>(call: &Call<'_, 'py>) -> Served<'py> {
            if has_none(call) { $plain(call) } else { Ok(None) }
        }
    )*};
}
plain! {
    /// Sums and products.
    folded: array_functions::folded,
    cumsum: array_functions::cumsum,
    mean: statistics::mean,
    var: statistics::var,
    std: statistics::std,
}

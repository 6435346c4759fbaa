//! Vectors in order, and the places of extremes, of data that is at hand.

use crate::array::Array;
use crate::function::{Call, Served};
use crate::scalar::{follows_array_api, numpy_scalar};
use crate::strided::{Strided, hand_for};
use bh_bytecode::{Constant, DType, View};
use pyo3::prelude::*;
use std::cmp::Ordering;

/// Elements with an order.
trait Ordered: Copy {
    /// As arrays are sorted: NaN last, then by value, then by sign.
    fn order(&self, other: &Self) -> Ordering;

    /// Is it greater than another one, which is a number?
    fn exceeds(&self, other: &Self) -> bool;

    fn is_no_number(&self) -> bool;

    /// Puts elements in order.
    fn sort(all: &mut [Self]);
}

macro_rules! ordered {
    ($($type:ty),*) => {$(
        impl Ordered for $type {
            fn order(&self, other: &$type) -> Ordering {
                self.cmp(other)
            }

            fn exceeds(&self, other: &$type) -> bool {
                self > other
            }

            fn is_no_number(&self) -> bool {
                false
            }

            fn sort(all: &mut [$type]) {
                all.sort_unstable();
            }
        }
    )*};
    (floats $($type:ty, $bits:ty),*) => {$(
        impl Ordered for $type {
            fn order(&self, other: &$type) -> Ordering {
                self.is_nan().cmp(&other.is_nan()).then(self.total_cmp(other))
            }

            fn exceeds(&self, other: &$type) -> bool {
                self > other
            }

            fn is_no_number(&self) -> bool {
                self.is_nan()
            }

            /// By whole numbers in the same order, which are compared faster.
            fn sort(all: &mut [$type]) {
                if all.iter().any(|value| value.is_nan()) {
                    return all.sort_unstable_by(<$type>::order);
                }
                // Of negative numbers, the bits below the sign grow the other way. That undoes itself.
                let flip = |bits: $bits| bits ^ ((bits >> (<$bits>::BITS - 1)) & <$bits>::MAX);
                // SAFETY: both types have the same size and alignment, and no bits that are no value.
                let keys = unsafe { std::slice::from_raw_parts_mut(all.as_mut_ptr().cast::<$bits>(), all.len()) };
                keys.iter_mut().for_each(|key| *key = flip(*key));
                keys.sort_unstable();
                keys.iter_mut().for_each(|key| *key = flip(*key));
            }
        }
    )*};
}
ordered!(u8, i8, i16, i32, i64, u16, u32, u64);
ordered!(floats f32, i32, f64, i64);

/// Calls a function for the type of elements; `None` for complex ones.
macro_rules! typed {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype {
            DType::Bool | DType::U8 => Some($function::<u8>($($argument),*)),
            DType::I8 => Some($function::<i8>($($argument),*)),
            DType::I16 => Some($function::<i16>($($argument),*)),
            DType::I32 => Some($function::<i32>($($argument),*)),
            DType::I64 => Some($function::<i64>($($argument),*)),
            DType::U16 => Some($function::<u16>($($argument),*)),
            DType::U32 => Some($function::<u32>($($argument),*)),
            DType::U64 => Some($function::<u64>($($argument),*)),
            DType::F32 => Some($function::<f32>($($argument),*)),
            DType::F64 => Some($function::<f64>($($argument),*)),
            DType::C64 | DType::C128 => None,
        }
    };
}

fn sort_into<T: Ordered>(from: Strided<'_>, to: *mut u8) {
    let count = from.view.len() as usize;
    // SAFETY: there is room for as many elements, aligned as their type asks, and each is written before it is read.
    let all = unsafe {
        for (place, at) in from.addresses::<T>().enumerate() {
            to.cast::<T>().add(place).write(at.read_unaligned());
        }
        std::slice::from_raw_parts_mut(to.cast::<T>(), count)
    };
    T::sort(all);
}

fn sorted(array: &Array) -> Option<Array> {
    let mut hand = (array.view.rank() == 1 && !array.dtype.is_complex()).then(|| hand_for([array].into_iter()))??;
    let from = Strided::of(&hand, array)?;
    let view = View::contiguous(array.view.shape()).ok()?;
    let (id, to) = hand.make_moved(array.dtype, view.shape())?;
    typed!(array.dtype, sort_into(from, to))?;
    Some(Array::new(array.context, id, array.dtype, view))
}

/// A vector in ascending order.
pub fn sort<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let sorted = call.array().and_then(|array| sorted(&array));
    sorted.map(|sorted| Ok(Bound::new(call.py(), sorted)?.into_any())).transpose()
}

/// The place of the first element that no other one is beyond, or of the first NaN.
fn extreme<T: Ordered>(all: Strided<'_>, greatest: bool) -> i64 {
    let mut best: Option<(T, i64)> = None;
    for (place, at) in all.addresses::<T>().enumerate() {
        // SAFETY: it is an element of this type.
        let value = unsafe { at.read_unaligned() };
        let better = match &best {
            None => true,
            Some((best, _)) => {
                if greatest {
                    value.exceeds(best)
                } else {
                    best.exceeds(&value)
                }
            }
        };
        if value.is_no_number() {
            return place as i64;
        }
        if better {
            best = Some((value, place as i64));
        }
    }
    best.map_or(0, |(_, place)| place)
}

fn place<'py>(call: &Call<'_, 'py>, greatest: bool) -> Served<'py> {
    if follows_array_api() {
        return Ok(None);
    }
    let place = || {
        let array = call.array().filter(|array| !array.view.is_empty() && !array.is_scalar())?;
        let hand = hand_for([&*array].into_iter())?;
        typed!(array.dtype, extreme(Strided::of(&hand, &array)?, greatest))
    };
    place().map(|place| numpy_scalar(call.py(), &Constant::from_value(place))).transpose()
}

pub fn argmax<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    place(call, true)
}

pub fn argmin<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    place(call, false)
}

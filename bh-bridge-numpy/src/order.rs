//! Vectors in order, and the places of extremes, of data that is at hand.

use crate::array::Array;
use crate::array_api::follows_array_api;
use crate::call::{Call, Served};
use crate::scalar::numpy_scalar;
use crate::shared_view::contiguous;
use crate::strided::{Plain, Strided, hand_for};
use bh_bytecode::{Constant, DType, Truth};
use pyo3::prelude::*;
use std::cmp::Ordering;

/// More elements are sorted faster by NumPy, whose call takes longer.
const LITTLE: i64 = 512;

/// Elements with an order.
trait Ordered: Plain {
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
ordered!(Truth, u8, i8, i16, i32, i64, u16, u32, u64);
ordered!(floats f32, i32, f64, i64);

/// Calls a function for the type of elements; `None` for complex ones.
macro_rules! typed {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype {
            DType::Bool => Some($function::<Truth>($($argument),*)),
            DType::U8 => Some($function::<u8>($($argument),*)),
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
    let count = from.view().len() as usize;
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
    let fits = array.view.rank() == 1 && array.view.len() <= LITTLE && !array.dtype.is_complex();
    let mut hand = fits.then(|| hand_for([array].into_iter()))??;
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let from = unsafe { Strided::of(&hand, array) }?;
    let view = contiguous(array.view.shape()).ok()?;
    let (id, to) = hand.make_moved(array.dtype, view.shape())?;
    typed!(array.dtype, sort_into(from, to))?;
    Some(Array::new(array.context, id, array.dtype, view))
}

/// A vector in ascending order.
pub fn sort<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let sorted = call.array().and_then(|array| sorted(array.get()));
    sorted.map(|sorted| Ok(Bound::new(call.py(), sorted)?.into_any())).transpose()
}

/// The place of the first element that no other one is beyond, or of the first NaN.
fn extreme<T: Ordered>(all: Strided<'_>, greatest: bool) -> i64 {
    if let Some(all) = all.slice::<T>() {
        let place = if greatest { extreme_side_by_side::<T, true>(all) } else { extreme_side_by_side::<T, false>(all) };
        return place as i64;
    }
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

/// The elements that are looked at together.
const BLOCK: usize = 256;
/// The extremes of a block that are found side by side.
const LANES: usize = 32;

/// As [`extreme`], of elements side by side: the extremes of blocks, without their places, and then the place in the first block
/// that has it.
#[inline(always)]
fn extreme_of<T: Ordered, const GREATEST: bool>(all: &[T]) -> usize {
    let beyond = |a: &T, b: &T| if GREATEST { a.exceeds(b) } else { b.exceeds(a) };
    let further = |a: T, b: &T| if beyond(b, &a) { *b } else { a };
    let Some(mut best) = all.first().copied().filter(|first| !first.is_no_number()) else { return 0 };
    let mut first = 0;
    for (place, block) in all.chunks(BLOCK).enumerate() {
        if block.iter().fold(false, |found, value| found | value.is_no_number()) {
            return place * BLOCK + block.iter().position(T::is_no_number).unwrap_or(0);
        }
        let mut lanes = [best; LANES];
        let (rows, rest) = block.as_chunks::<LANES>();
        for row in rows {
            lanes.iter_mut().zip(row).for_each(|(lane, value)| *lane = further(*lane, value));
        }
        let found = lanes.iter().chain(rest).fold(best, further);
        if beyond(&found, &best) {
            (best, first) = (found, place * BLOCK);
        }
    }
    let is_best = |value: &T| !beyond(&best, value);
    first + all[first..].iter().position(is_best).unwrap_or(0)
}

/// As [`extreme_of`], with wider registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn extreme_by_avx2<T: Ordered, const GREATEST: bool>(all: &[T]) -> usize {
    extreme_of::<T, GREATEST>(all)
}

fn extreme_side_by_side<T: Ordered, const GREATEST: bool>(all: &[T]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has them.
        return unsafe { extreme_by_avx2::<T, GREATEST>(all) };
    }
    extreme_of::<T, GREATEST>(all)
}

fn place<'py>(call: &Call<'_, 'py>, greatest: bool) -> Served<'py> {
    if follows_array_api() {
        return Ok(None);
    }
    let place = || {
        let array = call.array().map(Bound::get).filter(|array| !array.view.is_empty() && !array.is_scalar())?;
        let hand = hand_for([array].into_iter())?;
        // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
        typed!(array.dtype, extreme(unsafe { Strided::of(&hand, array) }?, greatest))
    };
    place().map(|place| numpy_scalar(call.py(), &Constant::from_value(place))).transpose()
}

pub fn argmax<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    place(call, true)
}

pub fn argmin<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    place(call, false)
}

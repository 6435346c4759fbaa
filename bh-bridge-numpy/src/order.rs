//! Vectors in order, and the places of extremes, of computed data.

use crate::array::Array;
use crate::array_api::follows_array_api;
use crate::call::{Call, Served};
use crate::compose::position_of_extreme;
use crate::error::value_error;
use crate::layout::axes_in_memory;
use crate::location::with_location;
use crate::method::Method;
use crate::record::cast_plain;
use crate::scalar::{give, numpy_scalar};
use crate::sequence::{dimension, whole};
use crate::shared_view::contiguous;
use crate::strided::{Plain, Strided, hand_for, is_plain};
use crate::text::intern;
use bh_bytecode::{Constant, DType, Truth};
use bh_recorder::Input;
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

/// The elements in ascending order along a dimension, or the places that they come from, by the stack's method. `None` if no
/// component of the stack sorts.
fn by_method(array: &Bound<'_, Array>, method: Method, axis: usize) -> PyResult<Option<Array>> {
    let (py, this) = (array.py(), array.get());
    let (context, rank) = (this.context, this.view.rank());
    // Sorted elements have the array's own order in memory; places are in C's.
    let order = if method == Method::Sort { axes_in_memory(&this.view) } else { None };
    let axes = order.unwrap_or_else(|| (0..rank).collect());
    let dtype = if method == Method::Sort { this.dtype } else { DType::I64 };
    let outer: Vec<usize> = axes.iter().copied().filter(|&other| other != axis).chain([axis]).collect();
    let lines = this.seen(this.view.transpose(&outer).map_err(value_error)?);
    let extents = lines.view.shape();
    let mut result = Array::empty(context, dtype, extents)?;
    if !result.view.is_empty() {
        let copy = cast_plain(py, &lines, this.dtype)?;
        let input = [Input::Array(copy.id())];
        if !with_location(py, |place| context.call(py, method, result.id(), &input, place))? {
            return Ok(None);
        }
    }
    // The dimensions of the result in those of the array.
    let mut places = vec![0; rank];
    outer.iter().enumerate().for_each(|(place, &dim)| places[dim] = place);
    if outer != axes {
        // A copy in the wanted order shares its memory with what `reshape` makes of it, as NumPy's does.
        let back: Vec<usize> = axes.iter().map(|&dim| places[dim]).collect();
        let turned = result.seen(result.view.transpose(&back).map_err(value_error)?);
        result = cast_plain(py, &turned, dtype)?;
        axes.iter().enumerate().for_each(|(place, &dim)| places[dim] = place);
    }
    if places.is_sorted() {
        return Ok(Some(result));
    }
    let view = result.view.transpose(&places).map_err(value_error)?;
    result.renamed(view).map(Some)
}

/// Serves a sort, along the last dimension by default, of an array in a device's memory; in that of this process, NumPy sorts.
fn sorted_by_method<'py>(call: &Call<'_, 'py>, method: Method) -> Served<'py> {
    let py = call.py();
    let Some(([array], [axis])) = call.options(1, [intern!(py, "axis")]) else { return Ok(None) };
    let Ok(array) = array.bind(py).cast_exact::<Array>() else { return Ok(None) };
    let this = array.get();
    let axis = axis.map_or(Some(-1), whole).and_then(|axis| dimension(axis, this.view.rank()));
    let fits = is_plain(this) && !this.dtype.is_complex() && !is_at_numpys(this);
    let Some(axis) = axis.filter(|_| fits) else { return Ok(None) };
    if this.context.is_in_process(py)? || this.context.methods.opcode(py, &this.context.recorder, method)?.is_none() {
        return Ok(None);
    }
    by_method(array, method, axis)?.map(|made| Ok(Bound::new(py, made)?.into_any())).transpose()
}

/// May NumPy's function serve calls with an array, as that is little, and in memory that the host sees?
pub fn is_at_numpys(array: &Array) -> bool {
    array.len() <= 1 << 14 && array.context.recorder.hand().is_some()
}

/// In ascending order.
pub fn sort<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    match call.array().and_then(|array| sorted(array.get())) {
        Some(sorted) => Ok(Some(Bound::new(call.py(), sorted)?.into_any())),
        None => sorted_by_method(call, Method::Sort),
    }
}

/// The places of the elements in ascending order.
pub fn argsort<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    sorted_by_method(call, Method::Argsort)
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
    match place() {
        Some(place) => numpy_scalar(call.py(), &Constant::from_value(place)).map(Some),
        None => places_along(call, greatest),
    }
}

/// The places along a dimension of a large array, recorded.
fn places_along<'py>(call: &Call<'_, 'py>, greatest: bool) -> Served<'py> {
    let py = call.py();
    let Some(([array], [axis])) = call.options(1, [intern!(py, "axis")]) else { return Ok(None) };
    let Ok(array) = array.bind(py).cast_exact::<Array>() else { return Ok(None) };
    let this = array.get();
    let fits = is_plain(this) && !this.view.is_empty() && !this.dtype.is_complex() && !is_at_numpys(this);
    let axis = axis.and_then(whole).and_then(|axis| dimension(axis, this.view.rank()));
    let Some(axis) = axis.filter(|_| fits) else { return Ok(None) };
    give(py, position_of_extreme(py, this, axis, greatest, false)?).map(Some)
}

pub fn argmax<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    place(call, true)
}

pub fn argmin<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    place(call, false)
}

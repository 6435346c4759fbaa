//! Universal functions of two floats that the package composes of several operations, on little computed data: the same arithmetic.
//! Elements that are not finite, or so large that operations may overflow, are left to Python, which tells of errors.

use crate::array::Array;
use crate::number::{Operators, operators};
use crate::operand::{Operand, classify, code};
use crate::selection::select;
use crate::shared_view::contiguous;
use crate::strided::{Strided, hand_for, is_plain};
use bh_bytecode::{DType, View};
use pyo3::prelude::*;
use pyo3::types::PyFloat;
use std::f64::consts::LN_2;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Composition {
    Hypot,
    Fmax,
    Fmin,
    /// The logarithm of a sum of powers of e, or of 2.
    LogarithmOfSum {
        of_two: bool,
    },
}

impl Composition {
    /// The composed function of this name.
    pub fn of(name: &str) -> Option<Composition> {
        match name {
            "hypot" => Some(Composition::Hypot),
            "fmax" => Some(Composition::Fmax),
            "fmin" => Some(Composition::Fmin),
            "logaddexp" => Some(Composition::LogarithmOfSum { of_two: false }),
            "logaddexp2" => Some(Composition::LogarithmOfSum { of_two: true }),
            _ => None,
        }
    }
}

/// An operand: elements in C's order, or a number for all.
#[derive(Clone, Copy)]
enum Side<'a, T> {
    Many(&'a [T]),
    One(T),
}

impl<T: Copy> Side<'_, T> {
    fn at(&self, place: usize) -> T {
        match self {
            Side::Many(all) => all[place],
            Side::One(number) => *number,
        }
    }
}

/// Calls `f` for the pairs of elements of two operands. False if it is for one.
fn pairs<T: Copy>([a, b]: [Side<'_, T>; 2], to: *mut u8, count: usize, f: impl Fn(T, T) -> Option<T>) -> bool {
    (0..count).all(|place| {
        // SAFETY: there is room for as many elements.
        f(a.at(place), b.at(place)).map(|value| unsafe { to.cast::<T>().add(place).write_unaligned(value) }).is_some()
    })
}

macro_rules! function {
    ($type:ty, $composition:expr) => {
        |a: $type, b: $type| -> Option<$type> {
            let (x, y) = (a.abs(), b.abs());
            match $composition {
                Composition::Hypot => {
                    let (large, small) = if x > y { (x, y) } else { (y, x) };
                    let ratio = small / if large == 0.0 { 1.0 } else { large };
                    let size = large * (ratio * ratio + 1.0).sqrt();
                    (a.is_finite() && b.is_finite() && size.is_finite()).then_some(size)
                }
                _ if a.is_nan() => Some(b),
                _ if b.is_nan() => Some(a),
                // The operations choose one of two zeros of both signs.
                _ if a == b && a.is_sign_negative() != b.is_sign_negative() => None,
                Composition::Fmax => Some(if a > b { a } else { b }),
                _ => Some(if a < b { a } else { b }),
            }
        }
    };
}

/// The operands, of which one is an array of floats, as far as they are computed, and the other one is an array of its shape and type or a
/// number of Python.
struct Operands<'a> {
    arrays: [Option<&'a Array>; 2],
    numbers: [f64; 2],
}

impl<'a> Operands<'a> {
    fn of(all: [&'a Bound<'_, PyAny>; 2]) -> Option<Operands<'a>> {
        let (mut arrays, mut numbers) = ([None; 2], [0.0; 2]);
        for (place, object) in all.into_iter().enumerate() {
            match classify(object)? {
                (_, Operand::Array(array)) => arrays[place] = Some(array),
                (code::FLOAT | code::INT, Operand::Number(number)) => {
                    numbers[place] = number.constant(DType::F64)?.to::<f64>();
                }
                _ => return None,
            }
        }
        let first = arrays.into_iter().flatten().next()?;
        let fits = |array: &Array| {
            is_plain(array)
                && array.dtype == first.dtype
                && array.view.shape() == first.view.shape()
                && std::ptr::eq(array.context, first.context)
        };
        let is_float = matches!(first.dtype, DType::F32 | DType::F64) && first.view.rank() > 0;
        (is_float && arrays.into_iter().flatten().all(fits)).then_some(Operands { arrays, numbers })
    }

    fn first(&self) -> &'a Array {
        let [a, b] = self.arrays;
        a.or(b).unwrap_or_else(|| unreachable!("one operand is an array"))
    }
}

/// The elements of two operands, for a type of elements that fits.
macro_rules! sides {
    ($operands:expr, $hand:expr, $type:ty) => {{
        let side = |place: usize| match $operands.arrays[place] {
            // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
            Some(array) => unsafe { Strided::of($hand, array) }.map(|all| (Some(all), 0.0)),
            None => Some((None, $operands.numbers[place] as $type)),
        };
        (side(0), side(1))
    }};
}

/// Calls a function of elements, in C's order.
fn by_elements(operands: &Operands<'_>, composition: Composition) -> Option<Array> {
    let first = operands.first();
    let mut hand = first.context.recorder.hand()?;
    for array in operands.arrays.into_iter().flatten() {
        hand.is_in_c_order(array.store(), &array.view).filter(|in_order| *in_order)?;
    }
    let view: Arc<View> = contiguous(first.view.shape()).ok()?;
    let count = view.len() as usize;
    macro_rules! made {
        ($type:ty) => {{
            let (Some((a, x)), Some((b, y))) = sides!(operands, &hand, $type) else { return None };
            let a = match &a {
                Some(all) => Side::Many(all.slice::<$type>()?),
                None => Side::One(x),
            };
            let b = match &b {
                Some(all) => Side::Many(all.slice::<$type>()?),
                None => Side::One(y),
            };
            let (id, to) = hand.make(first.dtype, view.shape(), &[])?;
            (id, pairs([a, b], to, count, function!($type, composition)))
        }};
    }
    let (id, done) = if first.dtype == DType::F64 { made!(f64) } else { made!(f32) };
    drop(hand);
    // From here on it owns the handle.
    let result = Array::new(first.context, id, first.dtype, view);
    done.then_some(result)
}

/// Are all elements computed, and so small that sums and differences of them do not overflow?
fn are_moderate(operands: &Operands<'_>) -> bool {
    let arrays = operands.arrays.into_iter().flatten();
    let Some(hand) = hand_for(arrays.clone()) else { return false };
    let limit = if operands.first().dtype == DType::F64 { f64::MAX / 4.0 } else { f64::from(f32::MAX / 4.0) };
    operands.numbers.iter().all(|number| number.abs() < limit)
        && arrays.into_iter().all(|array| {
            // SAFETY: the hand is held as long as the elements are used, which nothing writes to, and they have these types.
            unsafe {
                Strided::of(&hand, array).is_some_and(|all| match array.dtype {
                    DType::F64 => all.addresses::<f64>().all(|at| at.read_unaligned().abs() < limit),
                    _ => all.addresses::<f32>().all(|at| f64::from(at.read_unaligned().abs()) < limit),
                })
            }
        })
}

fn logarithm_of_sum<'py>([x, y]: [&Bound<'py, PyAny>; 2], all: &Operators, of_two: bool) -> PyResult<Option<Array>> {
    let py = x.py();
    let done = |made: Option<Array>| made.map(|array| Bound::new(py, array).map(Bound::into_any)).transpose();
    let number = |value: f64| PyFloat::new(py, value).into_any();
    macro_rules! step {
        ($ufunc:expr, $($operand:expr),+) => {
            match done($ufunc.get().call(py, [$($operand),+])?)? {
                Some(made) => made,
                None => return Ok(None),
            }
        };
    }
    let (power, of_equal) = if of_two { (&all.exp2, 1.0) } else { (&all.exp, LN_2) };
    let distance = step!(all.negative, &step!(all.absolute, &step!(all.subtract, x, y)));
    let mut rest = step!(all.log1p, &step!(power, &distance));
    if of_two {
        rest = step!(all.multiply, &rest, &number(1.0 / LN_2));
    }
    let sum = step!(all.add, &step!(all.maximum, x, y), &rest);
    let array = if x.cast_exact::<Array>().is_ok() { x } else { y };
    select(py, &step!(all.equal, x, y), &step!(all.add, array, &number(of_equal)), &sum)
}

/// A function of two operands. `None` for calls that Python has to look at.
pub fn composed<'py>(composition: Composition, all: [&Bound<'py, PyAny>; 2]) -> PyResult<Option<Array>> {
    let Some(operands) = Operands::of(all) else { return Ok(None) };
    match composition {
        Composition::LogarithmOfSum { of_two } => {
            let first = operands.first();
            let is_little = first.len() as u64 * first.dtype.size() as u64 <= first.context.little;
            if is_little && are_moderate(&operands) { logarithm_of_sum(all, operators()?, of_two) } else { Ok(None) }
        }
        _ => Ok(by_elements(&operands, composition)),
    }
}

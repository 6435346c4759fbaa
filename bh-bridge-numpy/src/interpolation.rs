//! Lines through points, at little computed data, in the memory of the arrays.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::numpy_types::scalar_type;
use crate::scalar::{asked_by_program, numpy_scalar};
use crate::sequence::whole;
use crate::shared_view::contiguous;
use crate::strided::{Plain, Strided, hand_for, is_plain};
use crate::text::intern;
use bh_bytecode::{Constant, DType};
use pyo3::prelude::*;
use pyo3::types::PyFloat;
use std::borrow::Cow;
use std::sync::OnceLock;

/// The most places at which a line is evaluated here, as the recorder's lock is held meanwhile; NumPy is as fast with more.
const LITTLE: i64 = 1 << 9;
/// The most points of a line.
const POINTS: i64 = 1 << 14;

/// Where a line is evaluated.
enum Places<'a> {
    One(f64),
    Each(&'a Array),
}

/// Elements as double precision numbers, in C's order. `None` for truth values and complex numbers.
fn floats<'a>(from: &'a Strided<'_>, dtype: DType) -> Option<Cow<'a, [f64]>> {
    fn each<T: Plain>(from: Strided<'_>, value: impl Fn(T) -> f64) -> Cow<'static, [f64]> {
        // SAFETY: they are addresses of elements of this type, which are readable as long as `from` is.
        Cow::Owned(from.addresses::<T>().map(|at| value(unsafe { at.read_unaligned() })).collect())
    }
    Some(match dtype {
        DType::F64 => from.slice::<f64>().map_or_else(|| each(*from, |value: f64| value), Cow::Borrowed),
        DType::F32 => each(*from, |value: f32| value.into()),
        DType::I64 => each(*from, |value: i64| value as f64),
        DType::U64 => each(*from, |value: u64| value as f64),
        DType::I32 => each(*from, |value: i32| value.into()),
        DType::U32 => each(*from, |value: u32| value.into()),
        DType::I16 => each(*from, |value: i16| value.into()),
        DType::U16 => each(*from, |value: u16| value.into()),
        DType::I8 => each(*from, |value: i8| value.into()),
        DType::U8 => each(*from, |value: u8| value.into()),
        DType::Bool | DType::C64 | DType::C128 => return None,
    })
}

/// A line through points.
struct Line<'a> {
    abscissas: &'a [f64],
    ordinates: &'a [f64],
    left: f64,
    right: f64,
    /// The slopes between neighbours, if there are enough places to compute each slope once.
    slopes: Vec<f64>,
    /// The point where the last search ended.
    last: usize,
}

impl Line<'_> {
    fn slope(&self, point: usize) -> f64 {
        let (x, y) = (self.abscissas, self.ordinates);
        (y[point + 1] - y[point]) / (x[point + 1] - x[point])
    }

    /// The last point that is not behind a number between the outer ones, if there is one. NumPy looks at the same points in the same
    /// order, which decides where abscissas do not ascend.
    fn search(&self, number: f64) -> Option<usize> {
        // Points whose memory is probably near.
        const NEAR: usize = 8;
        let (x, count) = (self.abscissas, self.abscissas.len());
        if count <= 4 {
            return Some(x[1..].iter().take_while(|&&point| number >= point).count());
        }
        let guess = self.last.clamp(1, count - 3);
        let (mut low, mut high) = (0, count);
        if number < x[guess - 1] && number < x[guess] {
            high = guess - 1;
            if guess > NEAR && number >= x[guess - NEAR] {
                low = guess - NEAR;
            }
        } else if let Some(next) = (guess..guess + 3).find(|&point| number < x[point]) {
            return Some(next - 1);
        } else {
            low = guess + 2;
            if guess + NEAR + 1 < count && number < x[guess + NEAR] {
                high = guess + NEAR;
            }
        }
        while low < high {
            let middle = low + ((high - low) >> 1);
            if number >= x[middle] { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    /// The value at a place. `None` for NaN as the result of arithmetic: its sign and digits depend on how NumPy was compiled.
    fn at(&mut self, place: f64) -> Option<f64> {
        let (x, y, end) = (self.abscissas, self.ordinates, self.abscissas.len() - 1);
        if end == 0 {
            return Some(match () {
                () if place < x[0] => self.left,
                () if place > x[0] => self.right,
                () => y[0],
            });
        }
        if place.is_nan() {
            return Some(place);
        }
        if place > x[end] {
            self.last = end + 1;
            return Some(self.right);
        }
        let point = if place < x[0] { None } else { self.search(place) };
        self.last = point.unwrap_or(0);
        let Some(point) = point else { return Some(self.left) };
        if point == end || x[point] == place {
            return Some(y[point]);
        }
        let slope = self.slopes.get(point).map_or_else(|| self.slope(point), |slope| *slope);
        // From the other end, and then between equal ordinates, if infinite numbers make NaN.
        let from = |point: usize| slope * (place - x[point]) + y[point];
        let ends = [from(point), from(point + 1), if y[point] == y[point + 1] { y[point] } else { f64::NAN }];
        ends.into_iter().find(|value| !value.is_nan())
    }
}

/// Does NumPy's function round the product before it adds, as is done here? Compilers may join the two. NumPy is asked once.
fn rounds_twice(py: Python<'_>) -> bool {
    static ROUNDS: OnceLock<bool> = OnceLock::new();
    if let Some(rounds) = ROUNDS.get() {
        return *rounds;
    }
    // The slope and the place are 1 + e with e² below the last digit: 0 if the square is rounded, and e² if not.
    let e = (-30f64).exp2();
    let points = ((0.0, 2.0), (-(1.0 + 2.0 * e), 1.0));
    let value = py.import("numpy").and_then(|numpy| numpy.getattr("interp")?.call1((1.0 + e, points.0, points.1)));
    let rounds = value.and_then(|value| value.extract::<f64>()).is_ok_and(|value| value == 0.0);
    *ROUNDS.get_or_init(|| rounds)
}

/// A number as double precision.
fn number(object: &Bound<'_, PyAny>) -> Option<f64> {
    if let Some(whole) = whole(object) {
        return Some(whole as f64);
    }
    let is_real = |dtype: DType| dtype.is_float() || dtype.is_int();
    let fits = object.is_exact_instance_of::<PyFloat>() || scalar_type(object).is_some_and(is_real);
    fits.then(|| object.extract().ok())?
}

/// The values at little computed places of the line through computed points, with the bits of NumPy's. `None` for other calls.
pub fn interp<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let py = call.py();
    let Some(([x, abscissas, ordinates], [left, right])) = call.options(3, [intern!(py, "left"), intern!(py, "right")])
    else {
        return Ok(None);
    };
    let [x, abscissas, ordinates] = [x, abscissas, ordinates].map(|object| object.bind(py));
    let (Ok(abscissas), Ok(ordinates)) = (abscissas.cast_exact::<Array>(), ordinates.cast_exact::<Array>()) else {
        return Ok(None);
    };
    let places = match x.cast_exact::<Array>() {
        Ok(array) => Places::Each(array.get()),
        Err(_) => match number(x) {
            Some(place) => Places::One(place),
            None => return Ok(None),
        },
    };
    let beyond = |given: Option<&Bound<'py, PyAny>>| match given.filter(|given| !given.is_none()) {
        Some(given) => number(given).map(Some),
        None => Some(None),
    };
    let (Some(left), Some(right)) = (beyond(left), beyond(right)) else { return Ok(None) };
    if !asked_by_program(py) || !rounds_twice(py) {
        return Ok(None);
    }
    match evaluated(places, [abscissas.get(), ordinates.get()], [left, right]) {
        None => Ok(None),
        Some(Values::One(value)) => numpy_scalar(py, &Constant::from_value(value)).map(Some),
        Some(Values::Each(values)) => Ok(Some(Bound::new(py, values)?.into_any())),
    }
}

/// Values of lines.
enum Values {
    One(f64),
    Each(Array),
}

/// The values of a line, given the abscissas and ordinates of its points, and its values beyond them. `None` for what is not little, not
/// computed, or not as simple.
fn evaluated(places: Places<'_>, points: [&Array; 2], beyond: [Option<f64>; 2]) -> Option<Values> {
    let [abscissas, ordinates] = points;
    let count = abscissas.view.len();
    let fits = |array: &Array| {
        is_plain(array)
            && array.view.rank() == 1
            && array.view.len() == count
            && std::ptr::eq(array.context, abscissas.context)
    };
    if !(1..=POINTS).contains(&count) || !points.into_iter().all(fits) {
        return None;
    }
    let each = match places {
        Places::Each(array) => {
            let is_little = (1..=LITTLE).contains(&array.view.len()) && array.view.rank() > 0;
            let fits = is_little && is_plain(array) && std::ptr::eq(array.context, abscissas.context);
            Some(fits.then_some(array)?)
        }
        Places::One(_) => None,
    };
    let mut hand = hand_for(points.into_iter().chain(each))?;
    // SAFETY: the hand is held as long as they are used, and only the new array is written to meanwhile.
    let elements = |array| unsafe { Strided::of(&hand, array) };
    let (x, y) = (elements(abscissas)?, elements(ordinates)?);
    let from = each.map(elements);
    let (x, y) = (floats(&x, abscissas.dtype)?, floats(&y, ordinates.dtype)?);
    let [left, right] = [beyond[0].unwrap_or(y[0]), beyond[1].unwrap_or(y[y.len() - 1])];
    let mut line = Line { abscissas: &x, ordinates: &y, left, right, slopes: Vec::new(), last: 0 };
    let array = match places {
        Places::One(place) => return line.at(place).map(Values::One),
        Places::Each(array) => array,
    };
    let from = from??;
    let from = floats(&from, array.dtype)?;
    if x.len() <= from.len() {
        line.slopes = (0..x.len() - 1).map(|point| line.slope(point)).collect();
    }
    let view = contiguous(array.view.shape()).ok()?;
    let (made, to) = hand.make_moved(DType::F64, view.shape())?;
    let is_done = from.iter().enumerate().all(|(place, &at)| {
        let value = line.at(at);
        // SAFETY: there is room for as many elements.
        unsafe { to.cast::<f64>().add(place).write(value.unwrap_or_default()) };
        value.is_some()
    });
    // An array ends without the hand, which it might wait for.
    drop(hand);
    let made = Array::new(array.context, made, DType::F64, view);
    is_done.then_some(Values::Each(made))
}

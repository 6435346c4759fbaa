//! New arrays whose data is at hand at once.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::context::{self, Shared};
use crate::error::value_error;
use crate::numpy_types::element_type;
use crate::operand::number;
use crate::shared_view::contiguous;
use crate::strided::{Plain, Strided, is_plain, sized};
use crate::text::intern;
use bh_bytecode::{Constant, DType, MAX_RANK, View};
use bh_compose::Spacing;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple};
use std::sync::Arc;

fn extent(object: &Bound<'_, PyAny>) -> Option<i64> {
    object.is_exact_instance_of::<PyInt>().then(|| object.extract::<i64>().ok())?.filter(|&extent| extent >= 0)
}

/// The view of a new array of a shape of whole numbers.
fn new_view(shape: &Bound<'_, PyAny>) -> Option<Arc<View>> {
    let Ok(tuple) = shape.cast_exact::<PyTuple>() else { return contiguous(&[extent(shape)?]).ok() };
    let (mut extents, rank) = ([0; MAX_RANK], tuple.len());
    let extents = extents.get_mut(..rank)?;
    for (place, object) in extents.iter_mut().zip(tuple.iter_borrowed()) {
        *place = extent(&object)?;
    }
    contiguous(extents).ok()
}

fn fill<T: Copy>(to: *mut u8, count: usize, value: Constant) {
    // SAFETY: a constant has as many bytes as any element; there is room for all elements.
    unsafe {
        let value = value.bits.as_ptr().cast::<T>().read_unaligned();
        (0..count).for_each(|place| to.cast::<T>().add(place).write_unaligned(value));
    }
}

/// A new array with all elements equal.
pub fn filled<'py>(py: Python<'py>, context: Shared, view: Arc<View>, value: Constant) -> Served<'py> {
    let dtype = value.dtype();
    let id = {
        let Some(mut hand) = context.recorder.hand() else { return Ok(None) };
        let Some((id, to)) = hand.make(dtype, view.shape(), &[]) else { return Ok(None) };
        sized!(dtype, fill(to, view.len() as usize, value));
        id
    };
    given(py, Array::new(context, id, dtype, view))
}

fn given(py: Python<'_>, array: Array) -> Served<'_> {
    Ok(Some(Bound::new(py, array)?.into_any()))
}

/// An array of a shape and a type, with all elements equal to a number of the type.
fn made<'py>(call: &Call<'_, 'py>, value: u8) -> Served<'py> {
    let Some((shape, dtype)) = call.pair(intern!(call.py(), "dtype")) else { return Ok(None) };
    let dtype = dtype.map_or(Some(DType::F64), element_type);
    let (Some(view), Some(dtype)) = (new_view(shape), dtype) else { return Ok(None) };
    let value = Constant::from_value(value).cast(dtype);
    filled(call.py(), context::current(call.py())?, view, value)
}

pub fn zeros<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made(call, 0)
}

/// Ones on the diagonal of a square matrix, zeros elsewhere.
pub fn eye<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(extent) = call.plain().and_then(|[given]| extent(given)).filter(|&extent| extent < 1 << 20) else {
        return Ok(None);
    };
    let context = context::current(call.py())?;
    let view = contiguous(&[extent, extent]).map_err(value_error)?;
    let id = {
        let Some(mut hand) = context.recorder.hand() else { return Ok(None) };
        let Some((id, to)) = hand.make(DType::F64, view.shape(), &[]) else { return Ok(None) };
        fill::<u64>(to, view.len() as usize, Constant::from_value(0.0f64));
        for place in 0..extent as usize {
            // SAFETY: the diagonal lies in the matrix.
            unsafe { *to.cast::<f64>().add(place * (extent as usize + 1)) = 1.0 };
        }
        id
    };
    given(call.py(), Array::new(context, id, DType::F64, view))
}

pub fn ones<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made(call, 1)
}

/// Of a number of Python, whose type is the array's.
pub fn full<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([shape, value]) = call.plain() else { return Ok(None) };
    let dtype = match value.get_type() {
        kind if kind.is(call.py().get_type::<PyFloat>()) => DType::F64,
        kind if kind.is(call.py().get_type::<PyInt>()) => DType::I64,
        _ => return Ok(None),
    };
    let (Some(view), Some(value)) = (new_view(shape), number(value).and_then(|value| value.constant(dtype))) else {
        return Ok(None);
    };
    filled(call.py(), context::current(call.py())?, view, value)
}

/// A little array whose elements, which may be any, are zeros; the memory of a larger one is allocated when something uses it.
pub fn empty<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((shape, dtype)) = call.pair(intern!(call.py(), "dtype")) else { return Ok(None) };
    let dtype = dtype.map_or(Some(DType::F64), element_type);
    let (Some(view), Some(dtype)) = (new_view(shape), dtype) else { return Ok(None) };
    empty_of(call.py(), context::current(call.py())?, dtype, view)
}

fn empty_of(py: Python<'_>, context: Shared, dtype: DType, view: Arc<View>) -> Served<'_> {
    match filled(py, context, Arc::clone(&view), Constant::from_value(0u8).cast(dtype))? {
        None => given(py, Array::new_empty(context, dtype, view)?),
        made => Ok(made),
    }
}

/// The type and a new view of an array whose dimensions are in C's order.
fn like(array: &Array) -> Option<(Shared, DType, Arc<View>)> {
    let plain = array.view.rank() < 2 || array.view.is_contiguous();
    Some((array.context, array.dtype, plain.then(|| contiguous(array.view.shape()).ok())??))
}

fn made_like<'py>(call: &Call<'_, 'py>, value: u8) -> Served<'py> {
    let Some((context, dtype, view)) = call.array().and_then(|array| like(array.get())) else { return Ok(None) };
    filled(call.py(), context, view, Constant::from_value(value).cast(dtype))
}

pub fn zeros_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made_like(call, 0)
}

pub fn ones_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made_like(call, 1)
}

/// Of a number that the array's type holds.
pub fn full_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let like = || {
        let [array, value] = call.plain()?;
        let array = array.cast_exact::<Array>().ok().filter(|array| is_plain(array.get()))?;
        let (context, dtype, view) = like(array.get())?;
        Some((context, view, number(value)?.assigned(dtype)?))
    };
    like().map_or(Ok(None), |(context, view, value)| filled(call.py(), context, view, value))
}

pub fn empty_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((context, dtype, view)) = call.array().and_then(|array| like(array.get())) else { return Ok(None) };
    empty_of(call.py(), context, dtype, view)
}

/// A number of Python, if it is a float, or an integer that is also a float.
fn spaced(object: &Bound<'_, PyAny>) -> Option<f64> {
    if object.is_exact_instance_of::<PyInt>() {
        return object.extract::<i64>().ok().filter(|whole| whole.unsigned_abs() < 1 << 53).map(|whole| whole as f64);
    }
    object.is_exact_instance_of::<PyFloat>().then(|| object.extract().ok())?
}

/// The most numbers that are made at once.
const MOST: f64 = 1e9;

/// Evenly spaced numbers before a limit, as integers or, where one of those given is a float, as floats.
pub fn arange<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, mut given) = (call.py(), [0.0, 0.0, 1.0]);
    let places: &[usize] = match call.unnamed() {
        Some([_]) => &[1],
        Some([_, _]) => &[0, 1],
        Some([_, _, _]) => &[0, 1, 2],
        _ => return Ok(None),
    };
    let mut whole = true;
    for (object, &place) in call.unnamed().unwrap_or_default().iter().zip(places) {
        let Some(number) = spaced(object.bind(py)) else { return Ok(None) };
        given[place] = number;
        whole &= object.bind(py).is_exact_instance_of::<PyInt>();
    }
    let [start, stop, step] = given;
    let quotient = (stop - start) / step;
    // A quotient that underflows is one number.
    let count = if quotient == 0.0 && stop != start {
        f64::from(!quotient.is_sign_negative())
    } else {
        quotient.ceil().max(0.0)
    };
    if !given.iter().all(|number| number.is_finite()) || step == 0.0 || !(0.0..MOST).contains(&count) {
        return Ok(None);
    }
    let count = count as i64;
    if whole {
        let (start, step) = (start as i64, step as i64);
        return numbered(py, DType::I64, count, (0..count).map(|place| (start + place * step).cast_unsigned()));
    }
    // As NumPy: the second number tells the distance of the others.
    let second = start + step;
    let number = |place: i64| match place {
        0 => start,
        1 => second,
        _ => start + place as f64 * (second - start),
    };
    numbered(py, DType::F64, count, (0..count).map(|place| number(place).to_bits()))
}

/// Numbers at equal distances between two limits, both included.
pub fn linspace<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (start, stop, count) = match call.unnamed() {
        Some([start, stop]) => (start, stop, Some(50)),
        Some([start, stop, count]) => (start, stop, extent(count.bind(call.py()))),
        _ => return Ok(None),
    };
    let (start, stop) = (spaced(start.bind(call.py())), spaced(stop.bind(call.py())));
    let (Some(start), Some(stop), Some(count)) = (start, stop, count.filter(|&count| (count as f64) < MOST)) else {
        return Ok(None);
    };
    let spacing = Spacing { start, stop, count, endpoint: true };
    numbered(call.py(), DType::F64, count, spacing.numbers().map(f64::to_bits))
}

/// A new array of these elements, of eight bytes each.
pub fn numbered(py: Python<'_>, dtype: DType, count: i64, bits: impl Iterator<Item = u64>) -> Served<'_> {
    let Ok(view) = contiguous(&[count]) else { return Ok(None) };
    let context = context::current(py)?;
    let id = {
        let Some(mut hand) = context.recorder.hand() else { return Ok(None) };
        let Some((id, to)) = hand.make(dtype, view.shape(), &[]) else { return Ok(None) };
        for (place, bits) in bits.take(view.len() as usize).enumerate() {
            // SAFETY: there is room for all elements, of eight bytes.
            unsafe { to.cast::<u64>().add(place).write(bits) };
        }
        id
    };
    given(py, Array::new(context, id, dtype, view))
}

/// Copies elements in C order to `to`, which has room for all of them.
pub fn copy_into<T: Plain>(from: Strided<'_>, to: *mut u8) {
    let to = to.cast::<T>();
    match from.slice::<T>() {
        // SAFETY: there is room for as many elements.
        Some(all) => unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), to, all.len()) },
        None => {
            for (place, at) in from.addresses::<T>().enumerate() {
                // SAFETY: as above; the element is one of the array.
                unsafe { to.add(place).write_unaligned(at.read_unaligned()) };
            }
        }
    }
}

/// A copy in C's order, which is that of the array's dimensions.
pub fn copied(array: &Array) -> Option<Array> {
    if !is_plain(array) || array.is_scalar() || array.view.rank() > 1 && !array.view.is_contiguous() {
        return None;
    }
    // Elements of a little array are in the order of its memory.
    let id = if array.here().is_some() && array.view.is_contiguous() { None } else { Some(array.id()) };
    let mut hand = array.context.recorder.hand()?;
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let from = unsafe { Strided::of(&hand, array) }?;
    let view = contiguous(array.view.shape()).ok()?;
    let (id, to) = hand.make(array.dtype, view.shape(), id.as_slice())?;
    sized!(array.dtype, copy_into(from, to));
    let copy = Array::new(array.context, id, array.dtype, view);
    copy.set_long_long(array.is_long_long());
    Some(copy)
}

pub fn copy<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let copied = call.array().and_then(|array| copied(array.get()));
    copied.map_or(Ok(None), |copy| given(call.py(), copy))
}

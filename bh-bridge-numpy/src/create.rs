//! New arrays whose data is at hand at once.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::context::{self, Shared};
use crate::numpy_types::element_type;
use crate::operand::number;
use crate::shared_view::contiguous;
use crate::strided::{Strided, is_plain, sized};
use bh_bytecode::{Constant, DType, MAX_RANK, View};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};
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
fn filled<'py>(py: Python<'py>, context: Shared, view: Arc<View>, value: Constant) -> Served<'py> {
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
    let view = contiguous(&[extent, extent]).map_err(|error| PyValueError::new_err(error.0))?;
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

/// Nothing is at hand, as nothing is known of the elements.
pub fn empty<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((shape, dtype)) = call.pair(intern!(call.py(), "dtype")) else { return Ok(None) };
    let dtype = dtype.map_or(Some(DType::F64), element_type);
    let (Some(view), Some(dtype)) = (new_view(shape), dtype) else { return Ok(None) };
    given(call.py(), Array::new_empty(context::current(call.py())?, dtype, view)?)
}

/// The type and a new view of the one argument, an array whose dimensions are in C's order.
fn like(call: &Call<'_, '_>) -> Option<(Shared, DType, Arc<View>)> {
    let array = call.array()?.get();
    let plain = array.view.rank() < 2 || array.view.is_contiguous();
    Some((array.context, array.dtype, plain.then(|| contiguous(array.view.shape()).ok())??))
}

fn made_like<'py>(call: &Call<'_, 'py>, value: u8) -> Served<'py> {
    let Some((context, dtype, view)) = like(call) else { return Ok(None) };
    filled(call.py(), context, view, Constant::from_value(value).cast(dtype))
}

pub fn zeros_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made_like(call, 0)
}

pub fn ones_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made_like(call, 1)
}

pub fn empty_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((context, dtype, view)) = like(call) else { return Ok(None) };
    given(call.py(), Array::new_empty(context, dtype, view)?)
}

/// The whole numbers before one of them, as integers or, where that one is a float, as floats.
pub fn arange<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([stop]) = call.plain() else { return Ok(None) };
    let (dtype, stop) = match stop.cast_exact::<PyFloat>() {
        Ok(stop) => (DType::F64, stop.extract::<f64>()?.ceil()),
        Err(_) => match extent(stop) {
            Some(stop) => (DType::I64, stop as f64),
            None => return Ok(None),
        },
    };
    // Larger ones, and such that are no numbers, are not made at once.
    if !(0.0..1e9).contains(&stop) {
        return Ok(None);
    }
    let Ok(view) = contiguous(&[stop as i64]) else { return Ok(None) };
    numbered(call.py(), dtype, view)
}

fn numbered(py: Python<'_>, dtype: DType, view: Arc<View>) -> Served<'_> {
    let context = context::current(py)?;
    let id = {
        let Some(mut hand) = context.recorder.hand() else { return Ok(None) };
        let Some((id, to)) = hand.make(dtype, view.shape(), &[]) else { return Ok(None) };
        for place in 0..view.len() {
            // SAFETY: there is room for all elements, of eight bytes, aligned.
            unsafe {
                match dtype {
                    DType::F64 => *to.cast::<f64>().add(place as usize) = place as f64,
                    _ => *to.cast::<i64>().add(place as usize) = place,
                }
            }
        }
        id
    };
    given(py, Array::new(context, id, dtype, view))
}

fn copy_into<T: Copy>(from: Strided<'_>, to: *mut u8) {
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
    let id = array.id();
    let mut hand = array.context.recorder.hand()?;
    let from = Strided::of(&hand, array)?;
    let view = contiguous(array.view.shape()).ok()?;
    let (id, to) = hand.make(array.dtype, view.shape(), &[id])?;
    sized!(array.dtype, copy_into(from, to));
    Some(Array::new(array.context, id, array.dtype, view))
}

pub fn copy<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let copied = call.array().and_then(|array| copied(array.get()));
    copied.map_or(Ok(None), |copy| given(call.py(), copy))
}

/// A copy of an array, or an array of the numbers in a list.
pub fn array<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([source]) = call.plain() else { return Ok(None) };
    match source.cast_exact::<PyList>() {
        Ok(list) => listed(call.py(), list),
        Err(_) => copy(call),
    }
}

/// An array of numbers of Python that are all of one type.
fn listed<'py>(py: Python<'py>, list: &Bound<'py, PyList>) -> Served<'py> {
    let Ok(first) = list.get_item(0) else { return Ok(None) };
    let kind = first.get_type();
    let dtype = match () {
        () if kind.is(py.get_type::<PyFloat>()) => DType::F64,
        () if kind.is(py.get_type::<PyInt>()) => DType::I64,
        () => return Ok(None),
    };
    let bits = |object: Bound<'py, PyAny>| {
        if !object.get_type().is(&kind) {
            return None;
        }
        match dtype {
            DType::F64 => object.extract::<f64>().ok().map(f64::to_bits),
            _ => object.extract::<i64>().ok().map(i64::cast_unsigned),
        }
    };
    let values: Option<Vec<u64>> = list.iter().map(bits).collect();
    let (Some(values), Ok(view)) = (values, contiguous(&[list.len() as i64])) else { return Ok(None) };
    let context = context::current(py)?;
    let id = {
        let Some(mut hand) = context.recorder.hand() else { return Ok(None) };
        let Some((id, to)) = hand.make(dtype, view.shape(), &[]) else { return Ok(None) };
        for (place, value) in values.iter().enumerate() {
            // SAFETY: there is room for all elements, of eight bytes.
            unsafe { to.cast::<u64>().add(place).write(*value) };
        }
        id
    };
    given(py, Array::new(context, id, dtype, view))
}

/// An array as it is.
pub fn asarray<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([source]) = call.plain() else { return Ok(None) };
    let is_array = source.cast_exact::<Array>().is_ok_and(|array| !array.borrow().is_scalar());
    Ok(is_array.then(|| source.clone()))
}

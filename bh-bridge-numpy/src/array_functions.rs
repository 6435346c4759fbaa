//! Functions of whole arrays: folds, products, and what counts and chooses elements.

use crate::array::{Array, derive};
use crate::array_api::follows_array_api;
use crate::call::{Call, Served};
use crate::computed_selection;
use crate::error::value_error;
use crate::fold::{Given, fold};
use crate::number::extremes;
use crate::numpy_types::element_type;
use crate::record::{cast_at_hand, cast_without_loss};
use crate::scalar::give;
use crate::shape::diagonal_of;
use crate::strided::is_plain;
use crate::text::intern;
use crate::ufunc::Ufunc;
use crate::warning;
use bh_bytecode::{DType, Opcode, View};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple};

fn given(py: Python<'_>, array: Option<Array>) -> Served<'_> {
    array.map(|array| Ok(Bound::new(py, array)?.into_any())).transpose()
}

/// Folds with the call's universal function along all axes, or along `axis`.
pub fn folded<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    folded_beside(call, 0)
}

/// As [`folded`]; `others` counts further options of the call, all of them None.
fn folded_beside<'py>(call: &Call<'_, 'py>, others: usize) -> Served<'py> {
    let (Some((array, axis, keepdims)), Some(ufunc)) = (call.fold_beside(others), call.ufunc) else { return Ok(None) };
    let Ok(array) = array.cast_exact::<Array>() else { return Ok(None) };
    let folded = ufunc.folded(call.py(), array.get(), &axis, &keepdims)?;
    folded.map(|folded| give(call.py(), folded)).transpose()
}

/// As [`folded`]; the option `dtype` names the type of the sums or products, to which little elements are converted at once.
pub fn folded_as<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let named = call.arguments.get(intern!(call.py(), "dtype"));
    let asked = named.filter(|dtype| !dtype.is_none());
    let Some(dtype) = asked else { return folded_beside(call, usize::from(named.is_some())) };
    let (Some((array, axis, keepdims)), Some(ufunc)) = (call.fold_beside(1), call.ufunc) else { return Ok(None) };
    let (Ok(array), Some(dtype)) = (array.cast_exact::<Array>(), element_type(dtype)) else { return Ok(None) };
    let this = array.get();
    // A copy is in the order of C, on which the order of the additions depends.
    let cast = if this.view.is_contiguous() { cast_without_loss(this, dtype) } else { None };
    if !is_own(dtype) || cast.is_none() && this.dtype != dtype {
        return Ok(None);
    }
    let folded = ufunc.folded(call.py(), cast.as_ref().unwrap_or(this), &axis, &keepdims)?;
    folded.map(|folded| give(call.py(), folded)).transpose()
}

/// Are numbers of this type folded in it?
fn is_own(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128 | DType::I64 | DType::U64)
}

/// The sum of the diagonal of the first two dimensions, or of two given after an offset, by the call's universal function.
pub fn trace<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (Some(all), Some(add)) = (call.unnamed(), call.ufunc) else { return Ok(None) };
    let Some(diagonal) = diagonal_of(all, call.py())? else { return Ok(None) };
    let last = Given::new(PyInt::new(call.py(), -1).into_any());
    let sum = add.folded(call.py(), diagonal.get(), &last, &Given::default())?;
    sum.map(|sum| give(call.py(), sum)).transpose()
}

/// The sums up to each element, of a vector, or along `axis`.
pub fn cumsum<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    running(call, Opcode::AddAccumulate)
}

/// The products up to each element, of a vector, or along `axis`.
pub fn cumprod<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    running(call, Opcode::MultiplyAccumulate)
}

/// A running fold of numbers that are folded in their own type: of a vector, or along `axis`.
fn running<'py>(call: &Call<'_, 'py>, opcode: Opcode) -> Served<'py> {
    let Some((array, axis)) = call.pair(intern!(call.py(), "axis")) else { return Ok(None) };
    let Some(array) = array.cast_exact::<Array>().ok().map(Bound::get).filter(|array| is_plain(array)) else {
        return Ok(None);
    };
    let Some(axis) = running_axis(array, axis) else { return Ok(None) };
    // Errors of floating point are Python's to tell.
    if array.is_scalar() || !is_own(array.dtype) || warning::flags() != 0 {
        return Ok(None);
    }
    let folded = fold(call.py(), array, opcode, array.dtype, 1 << axis, false, None)?;
    given(call.py(), (warning::flags() == 0).then_some(folded))
}

/// The dimension of a running fold; without one, that of a vector.
fn running_axis(array: &Array, axis: Option<&Bound<'_, PyAny>>) -> Option<usize> {
    let rank = array.view.rank() as i64;
    let axis = match axis {
        Some(axis) if axis.is_exact_instance_of::<PyInt>() => axis.extract::<i64>().ok()?,
        Some(axis) if !axis.is_none() => return None,
        _ => (rank == 1).then_some(0)?,
    };
    let axis = if axis < 0 { axis + rank } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < array.view.rank())
}

/// The elements, but not below and not above two numbers of Python.
pub fn clip<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([array, least, most]) = call.plain() else { return Ok(None) };
    let is_weak =
        |limit: &Bound<'_, PyAny>| limit.is_exact_instance_of::<PyFloat>() || limit.is_exact_instance_of::<PyInt>();
    let is_number = array.cast_exact::<Array>().is_ok_and(|array| array.get().dtype != DType::Bool);
    if !is_number || !is_weak(least) || !is_weak(most) {
        return Ok(None);
    }
    let (py, [maximum, minimum]) = (call.py(), extremes()?);
    let Some(raised) = maximum.call(py, [array, least])? else { return Ok(None) };
    let raised = Bound::new(py, raised)?;
    minimum.call(py, [raised.as_any(), most])?.map(|clipped| give(py, clipped)).transpose()
}

/// The sum of the products of the elements of two arrays of real numbers, in C's order.
pub fn vdot<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([a, b]) = call.plain() else { return Ok(None) };
    let (Some(a), Some(b)) = (real_vector(a)?, real_vector(b)?) else { return Ok(None) };
    let product = crate::product::product(call.py(), "vdot", a.as_any(), b.as_any())?;
    product.map(|product| give(call.py(), product)).transpose()
}

/// The elements of an array of real numbers as a vector, without a copy.
fn real_vector<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Array>>> {
    let Ok(array) = object.cast_exact::<Array>() else { return Ok(None) };
    let this = array.get();
    if this.dtype.is_complex() || this.view.rank() == 0 || !is_plain(this) {
        return Ok(None);
    }
    if this.view.rank() == 1 {
        return Ok(Some(array.clone()));
    }
    let flat = this.view.reshape(&[this.len()]).map_err(value_error)?;
    flat.map(|flat| Bound::new(object.py(), derive(array, flat)?)).transpose()
}

pub fn dot<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    product(call, "dot")
}

pub fn matmul<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    product(call, "matmul")
}

/// The product of vectors and matrices.
fn product<'py>(call: &Call<'_, 'py>, name: &str) -> Served<'py> {
    let Some([a, b]) = call.plain() else { return Ok(None) };
    let product = crate::product::product(call.py(), name, a, b)?;
    product.map(|product| give(call.py(), product)).transpose()
}

/// The number of true elements, as a scalar; of a mask that is not computed yet, the sum by the call's universal function.
pub fn count_nonzero<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(array) = call.array().map(Bound::get).filter(|_| !follows_array_api()) else { return Ok(None) };
    match truths(array, computed_selection::count) {
        None if array.dtype == DType::Bool => folded(call),
        None => Ok(None),
        Some(count) => crate::scalar::numpy_scalar(call.py(), &bh_bytecode::Constant::from_value(count)).map(Some),
    }
}

/// Calls `f` with a mask of the elements that are not zero. `None` if they are not computed yet, or not little.
fn truths<R>(array: &Array, f: impl FnOnce(&Array) -> Option<R>) -> Option<R> {
    if array.dtype == DType::Bool { f(array) } else { f(&cast_at_hand(array, DType::Bool)?) }
}

/// The places of the elements of a vector that are not zero.
pub fn flatnonzero<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let places = call.array().and_then(|array| truths(array.get(), computed_selection::places));
    given(call.py(), places)
}

/// The same in each dimension.
pub fn nonzero<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let py = call.py();
    let Some(array) = call.array().map(Bound::get) else { return Ok(None) };
    if array.view.rank() > 1 {
        let places = truths(array, |mask| computed_selection::places_in_all(py, mask).transpose()).transpose()?;
        return places.map(|places| Ok(PyTuple::new(py, places)?.into_any())).transpose();
    }
    let places = flatnonzero(call)?;
    places.map(|places| Ok(PyTuple::new(py, [places])?.into_any())).transpose()
}

/// The products of all pairs of elements of two vectors of one type, by the call's universal function.
pub fn outer<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (Some([a, b]), Some(multiply)) = (call.plain(), call.ufunc) else { return Ok(None) };
    of_all_pairs(multiply, [a, b])
}

/// The same by the universal function that comes first.
pub fn outer_of<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([function, a, b]) = call.plain() else { return Ok(None) };
    function.cast::<Ufunc>().map_or(Ok(None), |function| of_all_pairs(function.get(), [a, b]))
}

fn of_all_pairs<'py>(ufunc: &Ufunc, [a, b]: [&Bound<'py, PyAny>; 2]) -> Served<'py> {
    let py = a.py();
    if !ufunc.takes_two() {
        return Ok(None);
    }
    let (Ok(a), Ok(b)) = (a.cast_exact::<Array>(), b.cast_exact::<Array>()) else { return Ok(None) };
    let fits = a.get().dtype == b.get().dtype && a.get().dtype != DType::Bool;
    let (&[rows], &[columns]) = (a.get().view.shape(), b.get().view.shape()) else { return Ok(None) };
    if !fits {
        return Ok(None);
    }
    let view = |array: &Array, shape: [i64; 2], along: usize| {
        let (start, mut stride) = (array.view.start(), [0; 2]);
        stride[along] = array.view.stride()[0];
        View::new(start, &shape, &stride).map_err(value_error)
    };
    let a = Bound::new(py, derive(a, view(a.get(), [rows, 1], 0)?)?)?;
    let b = Bound::new(py, derive(b, view(b.get(), [1, columns], 1)?)?)?;
    given(py, ufunc.call(py, [a.as_any(), b.as_any()])?)
}

/// The complex conjugates; of real numbers, the array itself.
pub fn conjugate<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (Some([array]), Some(conjugate)) = (call.plain(), call.ufunc) else { return Ok(None) };
    match array.cast_exact::<Array>() {
        Ok(own) if !own.get().dtype.is_complex() => Ok(Some(array.clone())),
        Ok(_) => conjugate.call(call.py(), [array])?.map(|made| give(call.py(), made)).transpose(),
        Err(_) => Ok(None),
    }
}

/// The product of two vectors.
pub fn inner<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let vector = |object: &Bound<'_, PyAny>| object.cast_exact::<Array>().is_ok_and(|a| a.borrow().view.rank() == 1);
    match call.plain() {
        Some([a, b]) if vector(a) && vector(b) => product(call, "dot"),
        _ => Ok(None),
    }
}

/// Elements of one array or another one, as a mask says; of a mask alone, the places of its true elements.
pub fn choice<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    if call.plain::<1>().is_some() {
        return nonzero(call);
    }
    let Some([mask, x, y]) = call.plain() else { return Ok(None) };
    given(call.py(), crate::selection::select(call.py(), mask, x, y)?)
}

/// The elements of a vector at the places in an index array, or slices at a few places.
pub fn take<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let key = call.plain().and_then(|[array, key]| Some((array, key.cast_exact::<Array>().ok()?)));
    let Some((array, key)) = key else { return crate::few::take(call) };
    let Ok(array) = array.cast_exact::<Array>() else { return Ok(None) };
    given(call.py(), crate::selection::taken(array.get(), key))
}

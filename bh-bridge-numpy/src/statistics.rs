//! Means, norms, variances and standard deviations, by the operations that the package composes them of.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::fold::Given;
use crate::number::{Operators, operators};
use crate::numpy_types::element_type;
use crate::record::cast_in_order;
use crate::scalar::give;
use crate::strided::is_plain;
use crate::text::intern;
use bh_bytecode::DType;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

/// The sum along axes divided by the number of elements in it, less `freedom`; `None` if that leaves none.
fn mean_along<'py>(
    array: &Bound<'py, Array>,
    axis: &Given<'py>,
    keepdims: &Given<'py>,
    functions: &Operators,
    freedom: i64,
) -> PyResult<Option<Array>> {
    let (py, this) = (array.py(), array.get());
    let Some(total) = functions.add.get().folded(py, this, axis, keepdims)? else { return Ok(None) };
    let count = this.len() / total.len() - freedom;
    if count <= 0 {
        return Ok(None);
    }
    let count = PyInt::new(py, count);
    let total = Bound::new(py, total)?;
    functions.divide.get().call(py, [total.as_any(), count.as_any()])
}

/// The sum of squared distances from the mean, divided by the number of elements less `ddof`. `None` for calls that Python serves.
fn variance<'py>(call: &Call<'_, 'py>, functions: &Operators) -> PyResult<Option<Array>> {
    let (py, ddof) = (call.py(), call.arguments.get(intern!(call.py(), "ddof")));
    let freedom = match ddof {
        None => 0,
        Some(ddof) => match ddof.is_exact_instance_of::<PyInt>().then(|| ddof.extract::<i64>().ok()).flatten() {
            Some(freedom) if (0..1 << 32).contains(&freedom) => freedom,
            _ => return Ok(None),
        },
    };
    let Some((array, axis, keepdims)) = floats(call, usize::from(ddof.is_some()))? else { return Ok(None) };
    // Too few elements are Python's to warn of, before anything is recorded.
    if array.get().view.shape().iter().any(|&extent| extent <= freedom) {
        return Ok(None);
    }
    if array.get().dtype.is_complex() || array.get().view.stride().iter().any(|&stride| stride < 0) {
        return Ok(None);
    }
    let new = |result: Option<Array>| result.map(|result| Bound::new(py, result)).transpose();
    let stays = Given::new(PyBool::new(py, true).to_owned().into_any());
    let Some(center) = new(mean_along(&array, &axis, &stays, functions, 0)?)? else { return Ok(None) };
    let distance = new(functions.subtract.get().call(py, [array.as_any(), center.as_any()])?)?;
    let Some(distance) = distance else { return Ok(None) };
    let square = new(functions.multiply.get().call(py, [distance.as_any(); 2])?)?;
    square.map_or(Ok(None), |square| mean_along(&square, &axis, &keepdims, functions, freedom))
}

/// The sum of all elements, or along `axis`, divided by their number.
pub fn mean<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let named = call.arguments.get(intern!(call.py(), "dtype"));
    let others = usize::from(named.is_some());
    // Means in another type than that of the elements are Python's.
    if let Some(dtype) = named.filter(|dtype| !dtype.is_none()) {
        let array = call.fold_beside(others).and_then(|(array, ..)| array.cast_exact::<Array>().ok());
        let own = array.map(|array| array.get().dtype);
        let own = own.map(|own| if own.is_float() || own.is_complex() { own } else { DType::F64 });
        if own.is_none() || element_type(dtype) != own {
            return Ok(None);
        }
    }
    let Some((array, axis, keepdims)) = floats(call, others)? else { return Ok(None) };
    let mean = mean_along(&array, &axis, &keepdims, operators()?, 0)?;
    mean.map(|mean| give(call.py(), mean)).transpose()
}

/// The root of the sum of the squares of all real elements, or along `axis`, by the call's universal function.
pub fn norm<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, functions) = (call.py(), operators()?);
    let is_one = |axis: &Bound<'_, PyAny>| axis.is_none() || axis.is_exact_instance_of::<PyInt>();
    let fits = call.arguments.unnamed().len() == 1 && call.arguments.get(intern!(py, "axis")).is_none_or(is_one);
    let Some(sqrt) = call.ufunc.filter(|_| fits) else { return Ok(None) };
    let Some((array, axis, keepdims)) = floats(call, 0)? else { return Ok(None) };
    if array.get().dtype.is_complex() {
        return Ok(None);
    }
    let Some(squares) = functions.multiply.get().call(py, [array.as_any(); 2])? else { return Ok(None) };
    let Some(total) = functions.add.get().folded(py, &squares, &axis, &keepdims)? else { return Ok(None) };
    let total = Bound::new(py, total)?;
    let root = sqrt.call(py, [total.as_any()])?;
    root.map(|root| give(py, root)).transpose()
}

/// The arguments of a fold, beside `others` with names: floating-point numbers, or others as those, the axes, and whether these stay.
/// `None` for calls that Python serves.
fn floats<'py>(call: &Call<'_, 'py>, others: usize) -> PyResult<Option<(Bound<'py, Array>, Given<'py>, Given<'py>)>> {
    let Some((array, axis, keepdims)) = call.fold_beside(others) else { return Ok(None) };
    let Ok(array) = array.cast_exact::<Array>() else { return Ok(None) };
    let this = array.get();
    if !is_plain(this) || this.view.is_empty() || this.is_scalar() || this.view.rank() == 0 {
        return Ok(None);
    }
    let array = match this.dtype.is_float() || this.dtype.is_complex() {
        true => array.clone(),
        false => Bound::new(call.py(), cast_in_order(call.py(), array, DType::F64 as u8)?)?,
    };
    Ok(Some((array, axis, keepdims)))
}

pub fn var<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let variance = variance(call, operators()?)?;
    variance.map(|variance| give(call.py(), variance)).transpose()
}

/// The root of the variance, by the call's universal function.
pub fn std<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (Some(variance), Some(sqrt)) = (variance(call, operators()?)?, call.ufunc) else { return Ok(None) };
    let variance = Bound::new(call.py(), variance)?;
    let root = sqrt.call(call.py(), [variance.as_any()])?;
    root.map(|root| give(call.py(), root)).transpose()
}

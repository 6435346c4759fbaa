//! Means, norms, variances and standard deviations, by the operations that the package composes them of.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::fold::Given;
use crate::number::{Moments, moments};
use crate::scalar::give;
use crate::strided::is_plain;
use crate::text::intern;
use bh_bytecode::DType;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// The mean of squared distances from the mean. `None` for what Python has to look at.
fn variance<'py>(call: &Call<'_, 'py>, functions: &Moments<'_>) -> PyResult<Option<Bound<'py, Array>>> {
    let (py, Some(array)) = (call.py(), call.array()) else { return Ok(None) };
    let this = array.get();
    let fits = matches!(this.dtype, DType::F32 | DType::F64) && this.len() > 0 && this.view.rank() == 1;
    if !fits || this.is_scalar() || this.view.stride()[0] < 0 {
        return Ok(None);
    }
    let count = PyInt::new(py, array.get().len());
    let axes = || Given::new(py.None().into_bound(py));
    let new = |result: Option<Array>| result.map(|result| Bound::new(py, result)).transpose();
    let mean = |array: &Array| -> PyResult<Option<Bound<'py, Array>>> {
        let Some(total) = new(functions.add.folded(py, array, &axes())?)? else { return Ok(None) };
        new(functions.divide.call(py, [total.as_any(), count.as_any()])?)
    };
    let Some(center) = mean(array.get())? else { return Ok(None) };
    let distance = new(functions.subtract.call(py, [array.as_any(), center.as_any()])?)?;
    let Some(distance) = distance else { return Ok(None) };
    let square = new(functions.multiply.call(py, [distance.as_any(); 2])?)?;
    square.map_or(Ok(None), |square| mean(square.get()))
}

/// The sum of all elements, or along `axis`, divided by their number.
pub fn mean<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, functions) = (call.py(), moments()?);
    let Some((array, axis)) = floats(call) else { return Ok(None) };
    let Some(total) = functions.add.folded(py, array, &Given::new(axis))? else { return Ok(None) };
    let count = PyInt::new(py, array.len() / total.len());
    let total = Bound::new(py, total)?;
    let mean = functions.divide.call(py, [total.as_any(), count.as_any()])?;
    mean.map(|mean| give(py, mean)).transpose()
}

/// The root of the sum of the squares of all real elements, or along `axis`, by the call's universal function.
pub fn norm<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, functions) = (call.py(), moments()?);
    let arguments = call.arguments;
    let axis = match (arguments.unnamed().len(), arguments.named()) {
        (1, 0) => Some(py.None().into_bound(py)),
        (1, 1) => arguments.get(intern!(py, "axis")).filter(|axis| axis.is_exact_instance_of::<PyInt>()).cloned(),
        _ => None,
    };
    let (Some(axis), Some(sqrt)) = (axis, call.ufunc) else { return Ok(None) };
    let Some(given) = arguments.unnamed().first().and_then(|array| array.bind(py).cast_exact::<Array>().ok()) else {
        return Ok(None);
    };
    let array = given.get();
    if !is_plain(array)
        || !array.dtype.is_float()
        || array.view.is_empty()
        || array.is_scalar()
        || array.view.rank() == 0
    {
        return Ok(None);
    }
    let Some(squares) = functions.multiply.call(py, [given.as_any(); 2])? else { return Ok(None) };
    let Some(total) = functions.add.folded(py, &squares, &Given::new(axis))? else { return Ok(None) };
    let total = Bound::new(py, total)?;
    let root = sqrt.call(py, [total.as_any()])?;
    root.map(|root| give(py, root)).transpose()
}

/// The one array of a call, of floating-point numbers, and the axis; `None` for what Python has to look at.
fn floats<'a, 'py: 'a>(call: &Call<'a, 'py>) -> Option<(&'a Array, Bound<'py, PyAny>)> {
    let (array, axis) = call.pair(intern!(call.py(), "axis"))?;
    let array = array.cast_exact::<Array>().ok()?.get();
    let fits = is_plain(array) && (array.dtype.is_float() || array.dtype.is_complex());
    let fits = fits && !array.view.is_empty() && !array.is_scalar() && array.view.rank() > 0;
    fits.then(|| (array, axis.map_or_else(|| call.py().None().into_bound(call.py()), Bound::clone)))
}

pub fn var<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let variance = variance(call, &moments()?)?;
    variance.map(|variance| crate::scalar::shown(&variance)).transpose()
}

/// The root of the variance, by the call's universal function.
pub fn std<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (Some(variance), Some(sqrt)) = (variance(call, &moments()?)?, call.ufunc) else { return Ok(None) };
    let root = sqrt.call(call.py(), [variance.as_any()])?;
    root.map(|root| give(call.py(), root)).transpose()
}

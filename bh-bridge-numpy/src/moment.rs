//! Variances and standard deviations of all elements, by the operations that the package composes them of.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::fold::Given;
use crate::number::{Moments, moments};
use crate::scalar::give;
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

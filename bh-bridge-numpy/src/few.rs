//! Slices at a few places along a dimension of recorded arrays: a copy of each, without index arrays.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::error::{exception, value_error};
use crate::layout::is_ordered_as_in_c;
use crate::location::with_location;
use crate::order::is_at_numpys;
use crate::sequence::{dimension, whole, wholes};
use crate::strided::is_plain;
use crate::text::intern;
use bh_bytecode::Opcode;
use bh_recorder::Input;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Slices at more places than this are gathered.
const FEW: usize = 8;

/// The slices of an array at a few places along a dimension, in C's order: copies. `None` if they are many, or if a place is not in
/// the array.
fn few(py: Python<'_>, array: &Array, places: &[i64], axis: usize) -> PyResult<Option<Array>> {
    let mut shape = array.view.shape().to_vec();
    let inside: Option<Vec<usize>> = places.iter().map(|&place| dimension(place, shape[axis] as usize)).collect();
    let Some(inside) = inside.filter(|inside| !inside.is_empty() && inside.len() <= FEW) else { return Ok(None) };
    shape[axis] = inside.len() as i64;
    let result = Array::empty(array.context, array.dtype, &shape)?;
    let slice = |array: &Array, place: usize| -> PyResult<Array> {
        Ok(array.seen(array.view.index(axis, place as i64).map_err(value_error)?))
    };
    for (number, &place) in inside.iter().enumerate() {
        let (to, from) = (slice(&result, number)?, slice(array, place)?);
        let (id, input) = (to.id(), [Input::Array(from.id())]);
        with_location(py, |place| array.context.recorder.operate(Opcode::Copy, 0, id, &input, place))
            .map_err(exception)?;
    }
    Ok(Some(result))
}

/// Serves `take` of a few places, given in a list or tuple, along a dimension of a recorded array.
pub fn take<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let py = call.py();
    let plan = || {
        let (given, [axis]) = call.options(2, [intern!(py, "axis")])?;
        let array = given[0].bind(py).cast_exact::<Array>().ok()?.get();
        let axis = match axis.filter(|axis| !axis.is_none()) {
            Some(axis) => dimension(whole(axis)?, array.view.rank())?,
            None => (array.view.rank() == 1).then_some(0)?,
        };
        let fits = is_plain(array) && !array.view.is_empty() && !is_at_numpys(array);
        fits.then(|| Some((array, wholes(given[1].bind(py))?, axis)))?
    };
    let Some((array, places, axis)) = plan() else { return Ok(None) };
    few(py, array, &places, axis)?.map(|made| Ok(Bound::new(py, made)?.into_any())).transpose()
}

/// The slices that a list of whole numbers chooses along the first dimension of a large array. `None` for other keys.
pub fn chosen(array: &Bound<'_, Array>, key: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let (py, this) = (array.py(), array.get());
    let fits = key.is_exact_instance_of::<PyList>() && this.view.rank() > 1 && is_plain(this) && !this.view.is_empty();
    if !fits || is_at_numpys(this) || !is_ordered_as_in_c(&this.view) {
        return Ok(None);
    }
    wholes(key).map_or(Ok(None), |places| few(py, this, &places, 0))
}

//! Slices at a few places along a dimension of recorded arrays: a copy of each, without index arrays.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::error::{exception, value_error};
use crate::layout::is_ordered_as_in_c;
use crate::location::with_location;
use crate::operand::{Operand, classify};
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

/// Assigns a number, or an array elsewhere that broadcasts to their shape, to the slices that a list of whole numbers chooses along
/// the first dimension of a recorded array: copies in the order of the list, so the last one of equal places stays. False for others.
pub fn set(array: &Array, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let plan = || {
        let fits = array.view.rank() > 1 && array.view.is_injective() && !array.view.is_empty();
        if !fits || !is_plain(array) || is_at_numpys(array) {
            return None;
        }
        let places = places(key).filter(|places| !places.is_empty())?;
        let mut shape = array.view.shape().to_vec();
        let extent = shape[0] as usize;
        let inside = places.iter().map(|&place| dimension(place, extent)).collect::<Option<Vec<usize>>>()?;
        shape[0] = inside.len() as i64;
        let values = match classify(value)?.1 {
            Operand::Number(number) => Err(number.assigned(array.dtype)?),
            Operand::Array(values) => {
                let same = values.dtype == array.dtype && std::ptr::eq(values.context, array.context);
                let apart = same && is_plain(values) && !values.shares_memory(array);
                Ok((apart.then_some(values)?, values.view.broadcast_to(&shape).ok()?))
            }
        };
        Some((inside, values))
    };
    let Some((places, values)) = plan() else { return Ok(false) };
    for (number, place) in places.into_iter().enumerate() {
        let to = array.seen(array.view.index(0, place as i64).map_err(value_error)?);
        let from;
        let input = match &values {
            Err(constant) => Input::Constant(*constant),
            Ok((values, view)) => {
                // A handle that stays until the copy is recorded.
                from = values.seen(view.index(0, number as i64).map_err(value_error)?);
                Input::Array(from.id())
            }
        };
        let id = to.id();
        with_location(key.py(), |place| array.context.recorder.operate(Opcode::Copy, 0, id, &[input], place))
            .map_err(exception)?;
    }
    Ok(true)
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

/// The whole numbers of Python and NumPy in a list. `None` for other keys.
fn places(key: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
    let list = key.cast_exact::<PyList>().ok().filter(|list| list.len() <= FEW)?;
    list.iter().map(|object| crate::advanced::whole(&object)).collect()
}

/// The slices that a list of whole numbers chooses along the first dimension of a large array. `None` for other keys.
pub fn chosen(array: &Bound<'_, Array>, key: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let (py, this) = (array.py(), array.get());
    if this.view.rank() < 2
        || !is_plain(this)
        || this.view.is_empty()
        || is_at_numpys(this)
        || !is_ordered_as_in_c(&this.view)
    {
        return Ok(None);
    }
    places(key).map_or(Ok(None), |places| few(py, this, &places, 0))
}

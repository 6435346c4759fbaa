//! Shapes and axes as NumPy's callers write them.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyTuple};

/// A whole number of Python; `None` for anything else.
pub fn whole(object: &Bound<'_, PyAny>) -> Option<i64> {
    object.is_exact_instance_of::<PyInt>().then(|| object.extract().ok())?
}

/// The whole numbers in a tuple or a list; `None` if there is anything else.
pub fn wholes(object: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return tuple.iter_borrowed().map(|object| whole(&object)).collect();
    }
    object.cast_exact::<PyList>().ok()?.iter().map(|object| whole(&object)).collect()
}

/// A dimension, which may be counted from the last one.
pub fn dimension(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

/// A shape: a whole number or a sequence of them.
pub fn shape(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let py = object.py();
    let number = |object: &Bound<'_, PyAny>| -> PyResult<i64> {
        if object.is_exact_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err("an integer is required"));
        }
        object.extract::<i64>().map_err(|error| match error.is_instance_of::<PyOverflowError>(py) {
            true => PyValueError::new_err("Maximum allowed dimension exceeded"),
            false => error,
        })
    };
    let extents = if object.is_instance_of::<PyInt>() {
        vec![number(object)?]
    } else if let Ok(length) = object.len() {
        let at = |index| number(&object.get_item(index)?);
        (0..length).map(at).collect::<PyResult<_>>()?
    } else {
        let wrong = |_| match object.is_none() {
            true => PyTypeError::new_err("Use () not None as shape arguments"),
            false => {
                PyTypeError::new_err(format!("expected a sequence of integers or a single integer, got '{object}'"))
            }
        };
        vec![number(object).map_err(wrong)?]
    };
    Ok(extents)
}

/// A shape of extents that are not negative.
pub fn new_shape(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let shape = shape(object)?;
    match shape.iter().any(|&extent| extent < 0) {
        true => Err(PyValueError::new_err("negative dimensions are not allowed")),
        false => Ok(shape),
    }
}

/// A shape for `size` elements, of which one extent may be given as -1.
pub fn shape_for(object: &Bound<'_, PyAny>, size: i64) -> PyResult<Vec<i64>> {
    let mut shape = shape(object)?;
    complete(&mut shape, size)?;
    Ok(shape)
}

/// Finds the extent that is given as -1, if there is one, of a shape that has to have `size` elements.
pub fn complete(shape: &mut [i64], size: i64) -> PyResult<()> {
    let mut unknown = (0..shape.len()).filter(|&dim| shape[dim] < 0);
    match (unknown.next(), unknown.next()) {
        (None, _) => {}
        (Some(dim), None) => {
            let rest: i64 =
                shape.iter().enumerate().filter(|&(other, _)| other != dim).map(|(_, &extent)| extent).product();
            if rest == 0 || size % rest != 0 {
                return Err(no_shape(shape, size));
            }
            shape[dim] = size / rest;
        }
        _ => return Err(PyValueError::new_err("can only specify one unknown dimension")),
    }
    match bh_bytecode::view::element_count(shape) {
        Some(count) if count == size => Ok(()),
        _ => Err(no_shape(shape, size)),
    }
}

#[cold]
fn no_shape(shape: &[i64], size: i64) -> PyErr {
    let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    PyValueError::new_err(format!("cannot reshape array of size {size} into shape ({}{comma})", extents.join(",")))
}

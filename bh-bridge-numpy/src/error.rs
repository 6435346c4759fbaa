//! Failures of the recorder as Python exceptions.

use crate::interrupt::{self, patiently};
use crate::location::with_location;
use bh_bytecode::ViewError;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::Patience;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyOSError, PyRuntimeError, PyRuntimeWarning, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::ffi::CString;
use std::sync::OnceLock;

create_exception!(bh, BhError, PyRuntimeError, "A failure of the bh runtime, such as a stack that cannot be loaded.");

/// The class of errors of recorded indices: NumPy's programs catch them as `IndexError`, others as what fails later.
pub fn index_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: OnceLock<Py<PyType>> = OnceLock::new();
    if let Some(class) = CLASS.get() {
        return Ok(class.bind(py));
    }
    let bases = PyTuple::new(py, [py.get_type::<BhError>(), py.get_type::<PyIndexError>()])?;
    let members = PyDict::new(py);
    members.set_item("__module__", "bh")?;
    members.set_item("__doc__", "An index out of bounds that was met where a recorded operation ran.")?;
    let class = py.get_type::<PyType>().call1(("BoundsError", bases, members))?.cast_into::<PyType>()?.unbind();
    Ok(CLASS.get_or_init(|| class).bind(py))
}

/// The code that Python's indexing functions put into flat indices out of bounds: a bit, four with the axis, and these with
/// the extent and the index.
const NOWHERE: i64 = 1 << 62;
const EXTENT_BITS: u32 = 29;

/// An index and the extent that it is beyond, of what engines say about it.
fn beyond(text: &str) -> Option<(i64, i64)> {
    let number = |text: &str| text.split(' ').next()?.parse().ok();
    let index = text.match_indices("index ").find_map(|(at, word)| number(&text[at + word.len()..]))?;
    let (_, extent) = text.split_once(" is out of range for ").filter(|(_, rest)| rest.contains(" elements"))?;
    Some((index, number(extent)?))
}

/// NumPy's message for an index out of bounds, if that is the failure.
fn out_of_bounds(text: &str) -> Option<String> {
    let (index, extent) = beyond(text)?;
    let part = |from: u32, bits: u32| index >> from & ((1 << bits) - 1);
    let (index, axis, extent) = match index {
        i64::MAX => return Some("an index is out of bounds".into()),
        NOWHERE.. => {
            let given = part(0, EXTENT_BITS);
            let sign = given >> (EXTENT_BITS - 1) << EXTENT_BITS;
            (given - sign, part(2 * EXTENT_BITS, 4), part(EXTENT_BITS, EXTENT_BITS))
        }
        index => (index, 0, extent),
    };
    Some(format!("index {index} is out of bounds for axis {axis} with size {extent}"))
}

/// NumPy's message for an index out of bounds, and the place that recorded it, if that is the failure.
fn in_numpys_words(text: &str) -> Option<String> {
    let message = out_of_bounds(text)?;
    let place = text.split_once(": ").map(|(place, _)| place).filter(|place| place.contains(':'));
    Some(place.map_or(message.clone(), |place| format!("{message} (recorded at {place})")))
}

/// The exception for an index out of bounds.
fn index_exception(message: String) -> PyErr {
    Python::attach(|py| match index_error(py).and_then(|class| class.call1((message,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    })
}

/// The exception that NumPy would raise for such a failure, or that of a signal's handler which has ended a wait. Its text begins
/// with the file and line that recorded the failing operation, where that is known.
pub fn exception(error: Error) -> PyErr {
    if let Some(raised) = Python::attach(interrupt::taken) {
        return raised;
    }
    let text = error.to_string();
    if let Some(message) = in_numpys_words(&text) {
        return index_exception(message);
    }
    match error.status {
        status::SHAPE | status::ARGUMENT => PyValueError::new_err(text),
        status::TYPE => PyTypeError::new_err(text),
        status::BOUNDS => PyIndexError::new_err(text),
        status::MEMORY => PyMemoryError::new_err(text),
        status::FILE => PyOSError::new_err(text),
        // Unlike the data of a failed operation, the data of a bad number can be read, without a second error.
        status::CHECK => Python::attach(|py| interrupt::noted(py, BhError::new_err(text))),
        _ => BhError::new_err(text),
    }
}

/// As NumPy says that shapes do not fit.
pub fn value_error(error: ViewError) -> PyErr {
    PyValueError::new_err(error.0)
}

/// Waits for elements as [`waiting`] does. A failure of operations that the elements do not
/// depend on only warns; reads of arrays that depend on it fail.
pub fn reading<R: Send>(py: Python<'_>, f: impl FnMut(&mut Patience<'_>) -> Result<R> + Send) -> PyResult<R> {
    let (result, elsewhere) = settled(py, f)?;
    warn_of(py, elsewhere)?;
    Ok(result)
}

/// As [`reading`], with the failure of other operations for the caller to warn of.
pub fn settled<R: Send>(
    py: Python<'_>,
    mut f: impl FnMut(&mut Patience<'_>) -> Result<R> + Send,
) -> PyResult<(R, Option<Error>)> {
    let mut elsewhere = None;
    let result = waiting(py, |patience| match f(patience) {
        // Reported once, it is not in the way of a second call. Findings of checks are always raised.
        Err(failure) if failure.origin.is_some() && failure.status != status::CHECK => {
            f(patience).inspect(|_| elsewhere = Some(failure))
        }
        result => result,
    })?;
    Ok((result, elsewhere))
}

/// Warns of a failure of operations that are not asked for.
pub fn warn_of(py: Python<'_>, failure: Option<Error>) -> PyResult<()> {
    let Some(failure) = failure else { return Ok(()) };
    let failure = failure.to_string();
    let failure = in_numpys_words(&failure).unwrap_or(failure);
    let text = CString::new(format!("what depends on a failed operation is lost: {failure}"))?;
    let (file, line) = with_location(py, |place| (CString::new(place.file), place.line));
    PyErr::warn_explicit(py, &py.get_type::<PyRuntimeWarning>(), &text, &file?, line.cast_signed(), None, None)
}

/// Waits for the recorder without the interpreter's lock. Signals are looked after meanwhile: an exception that a handler
/// raises, such as KeyboardInterrupt, ends the wait, and what was recorded goes on.
pub fn waiting<R: Send>(py: Python<'_>, f: impl FnOnce(&mut Patience<'_>) -> Result<R> + Send) -> PyResult<R> {
    patiently(py, f)?.map_err(exception)
}

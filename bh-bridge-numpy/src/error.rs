//! Failures of the recorder as Python exceptions.

use crate::location::with_location;
use bh_bytecode::ViewError;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::Patience;
use pyo3::create_exception;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ffi::CString;

create_exception!(bh, BhError, PyRuntimeError, "A failure of the bh runtime, such as a stack that cannot be loaded.");

/// The exception that NumPy would raise for such a failure. Its text begins with the file and line that recorded the
/// failing operation, where that is known.
pub fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    match error.status {
        status::SHAPE | status::ARGUMENT => PyValueError::new_err(text),
        status::TYPE => PyTypeError::new_err(text),
        status::BOUNDS => PyIndexError::new_err(text),
        status::MEMORY => PyMemoryError::new_err(text),
        _ => BhError::new_err(text),
    }
}

/// As NumPy says that shapes do not fit.
pub fn value_error(error: ViewError) -> PyErr {
    PyValueError::new_err(error.0)
}

/// Waits for elements as [`waiting`] does. A failure of other operations, whose results nobody may ever look at, is warned
/// of, and strikes only who reads what depends on them.
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
        // Reported once, it is not in the way of a second call.
        Err(failure) if failure.origin.is_some() => f(patience).inspect(|_| elsewhere = Some(failure)),
        result => result,
    })?;
    Ok((result, elsewhere))
}

/// Warns of a failure of operations that are not asked for.
pub fn warn_of(py: Python<'_>, failure: Option<Error>) -> PyResult<()> {
    let Some(failure) = failure else { return Ok(()) };
    let text = CString::new(format!("what depends on a failed operation is lost: {failure}"))?;
    let (file, line) = with_location(py, |place| (CString::new(place.file), place.line));
    PyErr::warn_explicit(py, &py.get_type::<PyRuntimeWarning>(), &text, &file?, line.cast_signed(), None, None)
}

/// Waits for the recorder without the interpreter's lock. Signals are looked after meanwhile: an exception that a handler
/// raises, such as KeyboardInterrupt, ends the wait, and what was recorded goes on.
pub fn waiting<R: Send>(py: Python<'_>, f: impl FnOnce(&mut Patience<'_>) -> Result<R> + Send) -> PyResult<R> {
    let mut raised = None;
    let result = py.detach(|| {
        let mut check = || {
            let signals = Python::attach(|py| py.check_signals());
            signals.map_err(|exception| {
                raised = Some(exception);
                Error::new(status::EXECUTION, "the wait was interrupted")
            })
        };
        f(&mut Patience::until(&mut check))
    });
    match raised {
        Some(exception) => Err(exception),
        None => result.map_err(exception),
    }
}

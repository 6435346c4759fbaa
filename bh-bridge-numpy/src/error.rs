//! Failures of the recorder as Python exceptions.

use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::Patience;
use pyo3::create_exception;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

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

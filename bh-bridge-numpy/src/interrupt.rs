//! Waits of Python's threads: without the interpreter's lock, and with a look at signals now and then. The exception of a
//! handler, such as KeyboardInterrupt, ends the wait, and what was recorded goes on.

use crate::location;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{Patience, Wait};
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    /// Has a call on this thread's stack let go of the interpreter's lock?
    static DETACHED: Cell<bool> = const { Cell::new(false) };
    /// The exception that has ended a wait, on its way through the recorder.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// The last such exception, or report of a check, that was raised.
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// An exception, and the address of the frame of the program that it was raised for.
struct Last {
    exception: PyErr,
    frame: usize,
}

/// Sets [`DETACHED`] until it is dropped.
struct Detached(bool);

impl Detached {
    fn set(detached: bool) -> Detached {
        Detached(DETACHED.replace(detached))
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        DETACHED.set(self.0);
    }
}

/// Does the thread run without the interpreter's lock?
pub fn is_detached() -> bool {
    DETACHED.get()
}

/// Calls `f` without the interpreter's lock.
pub fn detached<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> R {
    let _detached = Detached::set(true);
    py.detach(f)
}

/// As [`detached`], with the patience of a thread that looks after signals.
pub fn patiently<R: Send>(
    py: Python<'_>,
    f: impl FnOnce(&mut Patience<'_>) -> Result<R> + Send,
) -> PyResult<Result<R>> {
    raise_unseen(py)?;
    let result = detached(py, || f(&mut Patience::until(&mut check)));
    taken(py).map_or(Ok(result), Err)
}

/// Lets handlers of signals run.
fn check() -> Result<()> {
    let _attached = Detached::set(false);
    let signals = Python::attach(|py| py.check_signals());
    signals.map_err(|exception| {
        RAISED.set(Some(exception));
        Error::new(status::EXECUTION, "the wait was interrupted")
    })
}

/// How a call of the recorder waits on a thread of Python; see [`bh_recorder::set_program_wait`].
pub fn wait(wait: &mut Wait<'_>) -> Option<Result<()>> {
    // SAFETY: both may be called on any thread, with or without an interpreter.
    let is_pythons = unsafe { ffi::Py_IsInitialized() != 0 && !ffi::PyGILState_GetThisThreadState().is_null() };
    if !is_pythons {
        return None;
    }
    let mut waits = || wait(&mut Patience::until(&mut check));
    Some(if DETACHED.get() { waits() } else { Python::attach(|py| detached(py, waits)) })
}

/// The exception that has ended a wait of this thread, if there is one that was not raised yet.
pub fn taken(py: Python<'_>) -> Option<PyErr> {
    RAISED.take().map(|exception| noted(py, exception))
}

/// Notes an exception about to be raised, for [`raise_unseen`].
pub fn noted(py: Python<'_>, exception: PyErr) -> PyErr {
    let frame = location::frame(py);
    LAST.set(frame.map(|frame| Last { exception: exception.clone_ref(py), frame }));
    exception
}

/// Raises the last exception once more if the program has not seen it. NumPy tries several protocols of an array, one after the
/// other, and drops what they raise.
fn raise_unseen(py: Python<'_>) -> PyResult<()> {
    if let Some(exception) = taken(py) {
        return Err(exception);
    }
    let Some(last) = LAST.take() else { return Ok(()) };
    let mut traceback = last.exception.value(py).getattr("__traceback__")?;
    while !traceback.is_none() {
        if traceback.getattr("tb_frame")?.as_ptr().addr() == last.frame {
            return Ok(());
        }
        traceback = traceback.getattr("tb_next")?;
    }
    let exception = last.exception.clone_ref(py);
    LAST.set(Some(last));
    Err(exception)
}

//! A switch for the ways from calls to the recorder that bypass Python, so that tests can compare both.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

static TAKEN: AtomicBool = AtomicBool::new(true);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_shortcuts, module)?)
}

/// Are they taken?
#[inline]
pub fn taken() -> bool {
    TAKEN.load(Ordering::Relaxed)
}

/// Takes them or leaves them; says what was so far.
#[pyfunction]
fn set_shortcuts(taken: bool) -> bool {
    TAKEN.swap(taken, Ordering::Relaxed)
}

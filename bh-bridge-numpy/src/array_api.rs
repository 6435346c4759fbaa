//! Does the program follow the array API, where what has no dimensions is an array?

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(follow_array_api, module)?)?;
    module.add_function(wrap_pyfunction!(follows_array_api, module)?)
}

/// Has anybody asked an array for its namespace?
static ARRAY_API: AtomicBool = AtomicBool::new(false);

/// Makes results without dimensions arrays, which can be assigned to, whether they are computed or not; or ends that. Returns the
/// setting before.
#[pyfunction]
fn follow_array_api(follow: bool) -> bool {
    ARRAY_API.swap(follow, Ordering::Relaxed)
}

/// Does the program follow the array API?
#[pyfunction]
#[inline]
pub fn follows_array_api() -> bool {
    ARRAY_API.load(Ordering::Relaxed)
}

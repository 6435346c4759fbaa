//! Calls of a stack on each rank: functions of Python, and their arguments, in the form of requests.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// See [`bh_core::stack::CallFn`]: the function and its arguments are those of `bh._cluster.ranks.called`.
///
/// # Safety
/// `request` must be readable for `bytes` bytes, and `append` work with `answer` and the bytes that it is given.
pub unsafe extern "C" fn call(
    request: *const u8,
    bytes: usize,
    answer: *mut c_void,
    append: unsafe extern "C" fn(answer: *mut c_void, data: *const u8, bytes: usize),
) -> i32 {
    // SAFETY: the request has `bytes` bytes, as `# Safety` asks, and is only read here.
    let request = unsafe { std::slice::from_raw_parts(request, bytes) };
    let called = catch_unwind(AssertUnwindSafe(|| {
        Python::attach(|py| -> PyResult<Vec<u8>> {
            // Not imported: the package is not complete on ranks that serve.
            let modules = py.import("sys")?.getattr("modules")?;
            let result = modules.get_item("bh._cluster.ranks")?.call_method1("called", (PyBytes::new(py, request),))?;
            Ok(result.cast::<PyBytes>()?.as_bytes().to_vec())
        })
        .map_err(|error| error.to_string())
    }));
    let (code, text) = match called {
        Ok(Ok(bytes)) => (0, bytes),
        Ok(Err(text)) => (1, text.into_bytes()),
        Err(_) => (1, b"the call panicked".to_vec()),
    };
    // SAFETY: `append` works with `answer`, as `# Safety` asks; the text outlives the call.
    unsafe { append(answer, text.as_ptr(), text.len()) };
    code
}

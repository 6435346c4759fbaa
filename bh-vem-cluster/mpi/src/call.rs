//! MPI calls whose return codes are checked.

use mpi::ffi;
use std::ffi::{CStr, c_char, c_int};

/// The text of an MPI failure, or nothing.
pub fn check(code: c_int, what: &str) -> Result<(), String> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0 as c_char; 1024];
    let mut length = 0;
    // SAFETY: the text has more than MPI_MAX_ERROR_STRING bytes, 512 at most in both libraries.
    let named = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut length) };
    if named != ffi::MPI_SUCCESS as c_int {
        return Err(format!("{what} failed with MPI error {code}"));
    }
    // SAFETY: MPI ends the text with a NUL.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
    Err(format!("{what} failed: {text}"))
}

/// Name and version of the MPI library, in one line.
pub fn library() -> String {
    let mut text = [0 as c_char; 16384];
    let mut length = 0;
    // SAFETY: the text has more than MPI_MAX_LIBRARY_VERSION_STRING bytes, 8192 at most in both libraries; the call is
    // allowed before MPI is initialised.
    let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr(), &mut length) };
    if code != ffi::MPI_SUCCESS as c_int {
        return "an unknown MPI".to_owned();
    }
    // SAFETY: MPI ends the text with a NUL.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split(',').next().unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}

/// The communicator of all processes, with errors returned instead of ending the program. With `handle`: a copy of the
/// program's own.
pub fn communicator(handle: Option<i32>) -> Result<ffi::MPI_Comm, String> {
    // SAFETY: MPI is initialised, and the thread that calls is the one that uses it.
    unsafe {
        let original = match handle {
            // Rust's bindings have no conversion of Fortran handles that both libraries offer as a function.
            Some(handle) => ffi::MPI_Comm_f2c(handle as _),
            None => ffi::RSMPI_COMM_WORLD,
        };
        let mut copy = ffi::RSMPI_COMM_NULL;
        check(ffi::MPI_Comm_dup(original, &mut copy), "MPI_Comm_dup")?;
        check(ffi::MPI_Comm_set_errhandler(copy, ffi::RSMPI_ERRORS_RETURN), "MPI_Comm_set_errhandler")?;
        Ok(copy)
    }
}

//! MPI calls whose return codes are checked.

use mpi::ffi;
use std::ffi::{CStr, c_char, c_int};

/// Converts a return code of MPI to an error with its text.
pub fn check(code: c_int, what: &str) -> Result<(), String> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0 as c_char; 1024];
    let mut length = 0;
    // SAFETY: `text` has space for MPI_MAX_ERROR_STRING bytes, 512 at most in both libraries.
    let named = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut length) };
    if named != ffi::MPI_SUCCESS as c_int {
        return Err(format!("{what} failed with MPI error {code}"));
    }
    // SAFETY: MPI terminates the text with a NUL.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
    Err(format!("{what} failed: {text}"))
}

/// Name and version of the MPI library, in one line.
pub fn library() -> String {
    let mut text = [0 as c_char; 16384];
    let mut length = 0;
    // SAFETY: `text` has space for MPI_MAX_LIBRARY_VERSION_STRING bytes, 8192 at most in both libraries; the call is
    // allowed before MPI is initialised.
    let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr(), &mut length) };
    if code != ffi::MPI_SUCCESS as c_int {
        return "an unknown MPI".to_owned();
    }
    // SAFETY: MPI terminates the text with a NUL.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split(',').next().unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}

/// A communicator of all processes, or a duplicate of the program's for a `handle`. It returns errors instead of ending
/// the program.
pub fn communicator(handle: Option<i32>) -> Result<ffi::MPI_Comm, String> {
    // SAFETY: MPI is initialised, and only the calling thread uses it.
    unsafe {
        let original = match handle {
            Some(handle) => ffi::RSMPI_Comm_f2c(handle),
            None => ffi::RSMPI_COMM_WORLD,
        };
        let mut copy = ffi::RSMPI_COMM_NULL;
        check(ffi::MPI_Comm_dup(original, &mut copy), "MPI_Comm_dup")?;
        check(ffi::MPI_Comm_set_errhandler(copy, ffi::RSMPI_ERRORS_RETURN), "MPI_Comm_set_errhandler")?;
        Ok(copy)
    }
}

/// Initialises MPI unless the program has done so, in which case it must allow calls from several threads one at a
/// time. Returns whether the program initialised MPI, and whether calls may be concurrent.
pub fn initialise() -> Result<(bool, bool), String> {
    let (mut initialised, mut provided, mut finalised) = (0, 0, 0);
    let serialised = ffi::MPI_THREAD_SERIALIZED as c_int;
    // SAFETY: these calls are allowed at any time, and MPI is initialised only here.
    unsafe {
        check(ffi::MPI_Finalized(&mut finalised), "MPI_Finalized")?;
        if finalised != 0 {
            return Err("MPI was finalised before bh began to use it".into());
        }
        check(ffi::MPI_Initialized(&mut initialised), "MPI_Initialized")?;
        if initialised == 0 {
            let none = (std::ptr::null_mut(), std::ptr::null_mut());
            check(ffi::MPI_Init_thread(none.0, none.1, serialised, &mut provided), "MPI_Init_thread")?;
        } else {
            check(ffi::MPI_Query_thread(&mut provided), "MPI_Query_thread")?;
        }
    }
    if provided < serialised {
        return Err("MPI must be initialised with MPI_THREAD_SERIALIZED or more".into());
    }
    Ok((initialised != 0, provided >= ffi::MPI_THREAD_MULTIPLE as c_int))
}

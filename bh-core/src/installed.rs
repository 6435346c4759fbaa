//! Finds the directory of this library.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

/// The directory of the library (or program) that contains this code.
pub fn own_directory() -> Option<PathBuf> {
    // SAFETY: `dladdr` fills the record for an address of this library; the name in it stays valid.
    let file = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found = libc::dladdr(own_directory as *const libc::c_void, &mut info) != 0 && !info.dli_fname.is_null();
        found.then(|| PathBuf::from(CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()))
    };
    // A program's name may be relative to an earlier working directory.
    let file = file.and_then(|file| file.canonicalize().ok()).or_else(|| std::env::current_exe().ok())?;
    file.parent().map(Path::to_path_buf)
}

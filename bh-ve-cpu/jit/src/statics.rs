//! Keeps LLVM's static objects alive while the process ends.
//!
//! LLVM creates many of its static objects when it first needs them, and registers them for destruction at the end of the process. The
//! last object is destroyed first, so a kernel that is being compiled then loses them before anybody can wait for it. The
//! linker leads all of this library's calls of the function that registers destructors (`__cxa_atexit`) here (`--wrap`, in
//! `build.rs`), where nothing is registered. The system takes the memory back anyway, and the library is never unloaded.

use std::ffi::{c_int, c_void};

/// In place of `__cxa_atexit`: the destructor never runs.
#[unsafe(no_mangle)]
extern "C" fn __wrap___cxa_atexit(_: Option<extern "C" fn(*mut c_void)>, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

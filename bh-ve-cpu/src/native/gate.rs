//! The gate to LLVM: one thread of the process is inside at a time, and none once the process ends.
//!
//! LLVM's library has static objects, which the end of the process destroys: a thread that is loading LLVM or compiling
//! then would crash. The end of the process runs the functions that were registered last first, so it can be delayed
//!
//! * once LLVM is loaded, by a function registered after its objects were ([`compiler_is_loaded`]);
//! * while LLVM is being loaded, when some of its objects are there already, only before all registered functions: the
//!   host tells components then that the process is `exiting`, and the engine calls [`close`].
//!
//! Objects that LLVM makes while it compiles are kept by the compiler's library itself.
//!
//! A forked child has no compiler if its parent had one: LLVM's locks may be held by threads that the child does not have.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

/// Has the process begun to end?
static CLOSED: Mutex<bool> = Mutex::new(false);

/// The process that the compiler belongs to.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Has LLVM ended the process itself, as it cannot go on? The gate stays locked then, and the thread inside never comes back.
static ENDS_INSIDE: AtomicBool = AtomicBool::new(false);

/// Nobody may wait for the thread that is inside.
pub(super) fn ends_inside() -> bool {
    ENDS_INSIDE.load(Ordering::Relaxed)
}

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The thread that made this is inside until it drops it.
pub(super) struct Inside {
    closed: MutexGuard<'static, bool>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// Waits for the thread that is inside; `None` once the gate is closed, and in a forked child.
pub(super) fn enter() -> Option<Inside> {
    let process = std::process::id();
    if *PROCESS.get_or_init(|| process) != process {
        return None;
    }
    let closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    if *closed {
        return None;
    }
    IS_INSIDE.set(true);
    Some(Inside { closed })
}

/// Closes the gate behind the last thread. It does not stay locked, as engines that wait for their threads come later.
pub(crate) fn close() {
    if IS_INSIDE.get() {
        ENDS_INSIDE.store(true, Ordering::Relaxed);
    }
    if ends_inside() {
        return;
    }
    if let Some(mut inside) = enter() {
        *inside.closed = true;
    }
}

/// Closes the gate when the process ends, if that begins after this call, whatever thread ends it.
pub(super) fn compiler_is_loaded() {
    static ONCE: Once = Once::new();
    extern "C" fn at_exit() {
        close();
    }
    ONCE.call_once(|| {
        // SAFETY: a plain function, in a library that is never unloaded.
        unsafe { libc::atexit(at_exit) };
    });
}

//! Threads that are inside of bh: they are not cancelled there, and if they end the process, the end does not wait for them.

use std::cell::Cell;
use std::ffi::c_int;

/// The thread may be cancelled (`PTHREAD_CANCEL_ENABLE`), and may not (`PTHREAD_CANCEL_DISABLE`), on all systems with
/// threads of this kind that Rust knows.
const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

thread_local! {
    /// Calls into the executor on this thread's stack. Without a destructor, so that it can be read at any time.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// How many of them hold the stack.
    static RUNNING: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, `pthread_cancel` waits: it would unwind frames that do not expect it.
pub struct Inside {
    /// The thread's cancellation state before, for the outermost one.
    cancel: Option<c_int>,
    running: bool,
}

impl Inside {
    /// Notes that the thread is inside, perhaps waiting.
    #[inline]
    pub fn enter() -> Inside {
        Inside::new(false)
    }

    /// Notes that the thread calls into the stack.
    #[inline]
    pub(crate) fn run() -> Inside {
        Inside::new(true)
    }

    fn new(running: bool) -> Inside {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        RUNNING.set(RUNNING.get() + u32::from(running));
        let cancel = (depth == 0).then(|| {
            let mut old = 0;
            // SAFETY: the place for the old state is a local.
            unsafe { pthread_setcancelstate(DISABLE, &mut old) };
            old
        });
        Inside { cancel, running }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        RUNNING.set(RUNNING.get() - u32::from(self.running));
        if let Some(state) = self.cancel {
            // SAFETY: the state comes from the same function; the old one is not wanted.
            unsafe { pthread_setcancelstate(state, std::ptr::null_mut()) };
        }
    }
}

/// Is the calling thread, which has begun to end the process, in the midst of a call into the stack?
pub(crate) fn is_running() -> bool {
    RUNNING.get() > 0
}

/// Is it inside at all?
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

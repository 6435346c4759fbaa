//! The atomics and locks of the hand-off of kernels: the standard library's. The model has its own of the same names.

use std::time::{Duration, Instant};

pub(super) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, fence};
pub(super) use std::sync::{Mutex, MutexGuard, OnceLock};
pub(super) use std::thread::{Thread, current, park};

/// The time that a thread spins before it yields its processor, which the awaited thread may need.
const ALONE: Duration = Duration::from_micros(100);

/// Looks again and again until there is something, for `limit` at most.
pub(super) fn look<T>(limit: Duration, what: impl Fn() -> Option<T>) -> Option<T> {
    if let Some(seen) = what() {
        return Some(seen);
    }
    let begin = Instant::now();
    loop {
        for _ in 0..32 {
            std::hint::spin_loop();
            if let Some(seen) = what() {
                return Some(seen);
            }
        }
        let elapsed = begin.elapsed();
        if elapsed >= limit {
            return what();
        }
        if elapsed >= ALONE {
            std::thread::yield_now();
        }
    }
}

/// A place in memory, with the functions of the model that finds threads that use it at the same time.
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(super) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Calls `read` with the address, where nothing may be written meanwhile.
    #[inline]
    pub(super) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Calls `write` with the address, which nobody else may use meanwhile.
    #[inline]
    pub(super) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

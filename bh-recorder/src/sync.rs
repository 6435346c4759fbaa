//! Locks and waits of the recorder's threads: the standard library's. The models define the same names.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{Builder, JoinHandle, ThreadId, current, yield_now};

use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// Locks even if a thread panicked while it held the lock: the state is kept consistent at every call that can panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], if nobody holds the lock.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits for a call, or for so long. The lock is that of the guard.
pub(crate) fn wait_for<'a, T>(
    condition: &Condvar,
    _lock: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    condition.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0
}

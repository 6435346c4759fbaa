//! Handles that are to be freed when somebody looks at the arrays next.

use super::super::sync::{AtomicBool, Mutex, MutexGuard, lock};
use crate::ArrayId;
use std::sync::atomic::Ordering;

/// A list with a lock that is never held while anything else happens.
#[derive(Default)]
pub(crate) struct Later {
    wanted: AtomicBool,
    arrays: Mutex<Vec<ArrayId>>,
}

impl Later {
    pub(crate) fn push(&self, array: ArrayId) {
        self.lock().push(array);
        self.wanted.store(true, Ordering::Release);
    }

    /// Is anything in it? One that comes at the same time may be overlooked, once.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// The list, which nobody else changes meanwhile.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<ArrayId>> {
        lock(&self.arrays)
    }

    /// Exchanges what is in it for an empty list, whose memory serves the next ones.
    pub(crate) fn swap(&self, empty: &mut Vec<ArrayId>) {
        self.wanted.store(false, Ordering::Relaxed);
        std::mem::swap(&mut *self.lock(), empty);
    }
}

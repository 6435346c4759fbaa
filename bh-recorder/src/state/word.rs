//! A word that says whether a gate is open, and counts the threads inside. Threads that close it wait until all have left.

use super::super::sync::{AtomicU32, yield_now};
use std::sync::atomic::Ordering;

/// The bit that says whether the gate is open; the others count threads.
const OPEN: u32 = 1;
const THREAD: u32 = 2;

#[derive(Default)]
pub(crate) struct Word(AtomicU32);

impl Word {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) & OPEN != 0
    }

    /// Counts a thread as inside, which has to leave again. Says whether the gate was open; if not, the thread may touch nothing.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        self.0.fetch_add(THREAD, Ordering::Acquire) & OPEN != 0
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.0.fetch_sub(THREAD, Ordering::Release);
    }

    /// Opens the gate, or closes it and waits for the threads inside. One thread at a time calls this.
    pub(crate) fn set(&self, open: bool) {
        if open {
            self.0.fetch_or(OPEN, Ordering::Release);
        } else if self.0.fetch_and(!OPEN, Ordering::AcqRel) & OPEN != 0 {
            while self.0.load(Ordering::Acquire) >= THREAD {
                yield_now();
            }
        }
    }

    /// Forgets threads that are not in this process.
    pub(crate) fn forget_threads(&self) {
        self.0.fetch_and(OPEN, Ordering::AcqRel);
    }
}

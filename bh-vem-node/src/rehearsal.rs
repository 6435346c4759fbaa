//! Rehearsals: a thread makes the registry calls of a batch on a copy of the registry's state. Memory is counted
//! instead of allocated, so the batch's peak is known before its first kernel.

use crate::arrays::Arrays;
use crate::registry::ArrayRegistry;
use crate::tally::Tally;
use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

thread_local! {
    static HERE: u8 = const { 0 };
}

/// A number that is unique to this thread, never 0.
fn this_thread() -> usize {
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// Ends a rehearsal, also after a panic.
struct End<'a>(&'a ArrayRegistry);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.rehearsing.store(0, Ordering::Relaxed);
    }
}

impl ArrayRegistry {
    /// Is this thread rehearsing?
    #[inline]
    pub(crate) fn rehearses(&self) -> bool {
        let thread = self.rehearsing.load(Ordering::Relaxed);
        thread != 0 && thread == this_thread()
    }

    /// Runs `work`, during which this thread's calls change nothing and may allocate `left` bytes. One thread at a time
    /// rehearses.
    pub fn rehearse<T>(&self, left: u64, work: impl FnOnce() -> T) -> (T, Tally) {
        let copy = self.with(|arrays| arrays.rehearsal(left));
        let set = |arrays: Arrays| {
            let mut rehearsed = self.rehearsed.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *rehearsed, arrays)
        };
        let empty = set(copy);
        self.rehearsing.store(this_thread(), Ordering::Relaxed);
        let end = End(self);
        let result = work();
        drop(end);
        (result, set(empty).buffers.tally())
    }
}

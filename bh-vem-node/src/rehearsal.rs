//! Rehearsals: a thread makes the calls that running a batch would make, on a copy of what the registry knows. Memory is
//! counted and not taken, so that the most that the batch will have is known before its first kernel.

use crate::arrays::Arrays;
use crate::registry::ArrayRegistry;
use crate::tally::Tally;
use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

thread_local! {
    static HERE: u8 = const { 0 };
}

/// A number that no other thread has, and not 0.
fn this_thread() -> usize {
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// Ends a rehearsal, however it ends.
struct End<'a>(&'a ArrayRegistry);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.rehearsing.store(0, Ordering::Relaxed);
    }
}

impl ArrayRegistry {
    /// Does this thread rehearse?
    #[inline]
    pub(crate) fn rehearses(&self) -> bool {
        let thread = self.rehearsing.load(Ordering::Relaxed);
        thread != 0 && thread == this_thread()
    }

    /// Does `work`, whose calls by this thread change nothing and may take `left` bytes. One thread at a time may rehearse.
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

//! When the recorder waits by itself: where many little operations in a row could not be carried out at once, as data of theirs
//! is still to come from batches. Once it is there, those that follow can. Counts decide, never clocks.

/// The number of operations in a row that are waited for.
const ROW: u32 = 32;
/// If nothing was carried out at once since then, twice as many, up to these.
const LONGEST: u32 = 4096;
/// Batches that nobody has waited for, and that work on more bytes than this, are left alone.
const WORK: u64 = 16 << 20;

/// Little operations that were recorded.
pub(crate) struct Little {
    /// One after the other, up to now.
    row: u32,
    /// How many are waited for.
    longest: u32,
    /// How many operations had been carried out at once the last time.
    immediate: u64,
    /// Bytes that batches work on which were handed over since the last wait for all of them.
    work: u64,
}

impl Little {
    pub(crate) fn new() -> Little {
        Little { row: 0, longest: ROW, immediate: 0, work: 0 }
    }

    /// Counts an operation that was recorded.
    #[inline]
    pub(crate) fn count(&mut self, is_little: bool) {
        self.row = if is_little { self.row + 1 } else { 0 };
    }

    /// Counts the work of a batch that is handed over.
    pub(crate) fn hand_over(&mut self, work: u64) {
        self.work = self.work.saturating_add(work);
    }

    /// Notes a wait for all batches.
    pub(crate) fn note_wait(&mut self) {
        (self.row, self.work) = (0, 0);
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.row >= self.longest
    }

    /// Is what was recorded to be waited for, with batches that work on `pending` more bytes? `immediate`: how many operations
    /// have been carried out at once.
    #[cold]
    pub(crate) fn waits(&mut self, immediate: u64, pending: u64) -> bool {
        self.longest = if immediate > self.immediate { ROW } else { (2 * self.longest).min(LONGEST) };
        (self.row, self.immediate) = (0, immediate);
        self.work.saturating_add(pending) <= WORK
    }
}

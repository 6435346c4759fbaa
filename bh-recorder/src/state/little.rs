//! Which little operations are recorded all the same: long chains on arrays that are not very little, which a kernel computes faster
//! than one operation after another. And when the recorder waits by itself: if many little operations in a row could not be carried out at once, because batches still
//! have to compute their data. Once that is there, the next ones can be. Counts decide, never clocks: a batch has ended once the
//! program has waited for it, or for a later one, however far the executor is.

use std::collections::VecDeque;

/// The number of operations in a row that are waited for.
const ROW: u32 = 32;
/// If nothing was carried out at once since then, twice as many, up to these.
const LONGEST: u32 = 4096;
/// If batches under way work on more bytes than this, the recorder does not wait for them.
const WORK: u64 = 16 << 20;
/// As many bytes for a device, which takes about as long for them.
const DEVICE_WORK: u64 = 1 << 30;
/// The number of elementwise operations in a chain from which on the next ones are recorded. Measured on 8,000 `f64`: a batch costs as
/// much as 6 to 8 of them save in one kernel.
const CHAIN: u32 = 8;
/// The most batches that are distinguished. Of more, the oldest two count as one that ends with the later.
const BATCHES: usize = 16;

/// Little operations that were recorded.
pub(crate) struct Little {
    /// One after the other, up to now.
    row: u32,
    /// How many are waited for.
    longest: u32,
    /// How many operations had been carried out at once the last time.
    immediate: u64,
    /// Elementwise operations on middling arrays since the program has read something, or an operation of another kind was carried
    /// out at once.
    chain: u32,
    /// As many of the chain before.
    last_chain: u32,
    /// Batches that were handed over and that the program has not waited for, the oldest first: their epochs, and the bytes that
    /// they work on.
    under_way: VecDeque<(u64, u64)>,
}

impl Little {
    pub(crate) fn new() -> Little {
        Little { row: 0, longest: ROW, immediate: 0, chain: 0, last_chain: 0, under_way: VecDeque::new() }
    }

    /// Counts an operation that was recorded.
    #[inline]
    pub(crate) fn count(&mut self, is_little: bool) {
        self.row = if is_little { self.row + 1 } else { 0 };
    }

    /// Counts an elementwise operation on middling arrays.
    #[inline]
    pub(crate) fn link(&mut self) {
        self.chain = self.chain.saturating_add(1);
    }

    /// Notes that a chain ends, if there is one.
    #[inline]
    pub(crate) fn end_chain(&mut self) {
        if self.chain > 0 {
            self.last_chain = std::mem::take(&mut self.chain);
        }
    }

    /// Is the chain long, or was the one before?
    #[inline]
    pub(crate) fn is_in_chain(&self) -> bool {
        self.chain.max(self.last_chain) >= CHAIN
    }

    /// Counts the work of a batch that is handed over.
    pub(crate) fn hand_over(&mut self, epoch: u64, work: u64) {
        self.under_way.push_back((epoch, work));
        if self.under_way.len() > BATCHES
            && let Some((_, oldest)) = self.under_way.pop_front()
            && let Some((_, next)) = self.under_way.front_mut()
        {
            *next = next.saturating_add(oldest);
        }
    }

    /// Notes a wait for the batches up to this one.
    pub(crate) fn note_wait(&mut self, epoch: u64) {
        while self.under_way.pop_front_if(|(other, _)| *other <= epoch).is_some() {}
    }

    /// Notes that the program has waited for all that it has recorded.
    pub(crate) fn note_end(&mut self) {
        self.row = 0;
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.row >= self.longest
    }

    /// Does the recorder wait for everything that was recorded? `immediate`: how many operations have been carried out at once;
    /// `pending`: the bytes that the batch under construction works on; `on_device`: a device does the work.
    #[cold]
    pub(crate) fn waits(&mut self, immediate: u64, pending: u64, on_device: bool) -> bool {
        self.longest = if immediate > self.immediate { ROW } else { (2 * self.longest).min(LONGEST) };
        (self.row, self.immediate) = (0, immediate);
        self.under_way.iter().fold(pending, |sum, (_, work)| sum.saturating_add(*work))
            <= if on_device { DEVICE_WORK } else { WORK }
    }
}

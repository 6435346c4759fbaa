//! Counts of a rehearsal's memory.

use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_core::memory::charged;

/// Bytes of a rehearsal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Bytes of buffers at its beginning.
    before: u64,
    /// The peak of bytes of buffers.
    most: u64,
    /// Bytes that it may allocate.
    left: u64,
    /// Bytes allocated, as the host counts them; negative if more were freed.
    taken: i64,
    /// The number of failed allocations.
    refused: u32,
}

impl Tally {
    /// A rehearsal that begins with buffers of `bytes` bytes.
    pub fn new(bytes: u64, left: u64) -> Tally {
        Tally { before: bytes, most: bytes, left, taken: 0, refused: 0 }
    }

    /// Allocates a buffer.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        let taken = i64::try_from(charged(bytes)).ok().and_then(|bytes| self.taken.checked_add(bytes));
        match taken.filter(|&taken| taken <= 0 || taken as u64 <= self.left) {
            Some(taken) => {
                self.taken = taken;
                Ok(())
            }
            None => {
                self.refused += 1;
                let text = format!("out of memory: cannot allocate {bytes} bytes of host memory");
                Err(Error::new(status::MEMORY, text))
            }
        }
    }

    /// Frees a buffer.
    pub fn give_back(&mut self, bytes: usize) {
        self.taken -= charged(bytes) as i64;
    }

    /// Records the bytes of all buffers.
    pub fn raise(&mut self, bytes: u64) {
        self.most = self.most.max(bytes);
    }

    /// The peak of bytes, minus those at the beginning.
    pub fn peak(&self) -> u64 {
        self.most - self.before
    }

    /// The number of failed allocations.
    pub fn refused(&self) -> u32 {
        self.refused
    }
}

//! What a rehearsal counts in place of memory.

use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_core::memory::charged;

/// Bytes that a rehearsal has taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Bytes of buffers when it began.
    before: u64,
    /// The most bytes of buffers since.
    most: u64,
    /// Bytes that it may take.
    left: u64,
    /// Bytes that it has taken, as the host counts them; below zero if more were given back.
    taken: i64,
    /// Buffers that were not to be had.
    refused: u32,
}

impl Tally {
    /// Begins beside buffers of `bytes` bytes.
    pub fn new(bytes: u64, left: u64) -> Tally {
        Tally { before: bytes, most: bytes, left, taken: 0, refused: 0 }
    }

    /// Takes a buffer.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        let taken = i64::try_from(charged(bytes)).ok().and_then(|bytes| self.taken.checked_add(bytes));
        match taken.filter(|&taken| taken <= 0 || taken as u64 <= self.left) {
            Some(taken) => {
                self.taken = taken;
                Ok(())
            }
            None => {
                self.refused += 1;
                let text = format!("out of memory: {bytes} bytes of host memory are not to be had");
                Err(Error::new(status::MEMORY, text))
            }
        }
    }

    /// Gives a buffer back.
    pub fn give_back(&mut self, bytes: usize) {
        self.taken -= charged(bytes) as i64;
    }

    /// Notes how many bytes all buffers have.
    pub fn raise(&mut self, bytes: u64) {
        self.most = self.most.max(bytes);
    }

    /// The most bytes at any time, beyond those at the beginning.
    pub fn peak(&self) -> u64 {
        self.most - self.before
    }

    /// How many buffers were not to be had.
    pub fn refused(&self) -> u32 {
        self.refused
    }
}

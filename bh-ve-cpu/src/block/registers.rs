//! Scratch registers: as few as are alive at once, so that they stay in the nearest cache.

/// Hands out register numbers, the last freed first.
#[derive(Default)]
pub(super) struct Registers {
    free: Vec<u16>,
    count: u16,
}

impl Registers {
    /// A register that is free.
    pub(super) fn take(&mut self) -> u16 {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// Gives a register back.
    pub(super) fn put(&mut self, register: u16) {
        self.free.push(register);
    }

    /// The most that were ever taken at once.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }
}

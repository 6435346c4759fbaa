//! Outputs that loops write past the caches.

use crate::builder::{Kind, Value};
use bh_bytecode::DType;

/// The elements that a loop writes to one row of a slot.
#[derive(Clone, Copy)]
pub(crate) struct Stream<'c> {
    pub(crate) slot: usize,
    pub(crate) row: u16,
    pub(crate) dtype: DType,
    /// The type of a register, and the registers that an iteration of the loop writes.
    pub(crate) kind: Kind,
    pub(crate) registers: u16,
    /// The aligned address at or before the row's begin.
    pub(crate) line: Value<'c>,
    /// Which numbers of two registers make an aligned one.
    pub(crate) order: Value<'c>,
    /// The numbers of an aligned register that the one before fills.
    pub(crate) early: Value<'c>,
    /// The register before.
    pub(crate) before: Value<'c>,
}

impl Stream<'_> {
    /// Bytes of the numbers that elements are moved as.
    pub(crate) fn size(&self) -> usize {
        self.dtype.size().min(8)
    }
}

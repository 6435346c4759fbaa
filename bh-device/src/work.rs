//! The cost of a block: bytes of arrays and operations.

use crate::memory::{Pool, capacity};
use crate::settings::Settings;
use bh_bytecode::BatchRef;

/// The cost of running a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// Bytes of all arrays.
    pub(crate) bytes: u64,
    /// Bytes that they take on the device.
    pub(crate) room: u64,
    /// Bytes that the largest takes there.
    largest: u64,
    /// Element operations.
    pub(crate) operations: u64,
}

impl Work {
    pub(crate) fn of(batch: &BatchRef<'_>, block: u32) -> Work {
        let (mut bases, mut operations) = (Vec::new(), 0u64);
        let block = &batch.blocks[block as usize];
        let mut seen = vec![false; batch.bases.len()];
        batch.contracted(block).iter().for_each(|&base| seen[base as usize] = true);
        for &index in batch.block_instrs(block) {
            let views = batch.instrs[index as usize].operands().iter().filter_map(|operand| operand.as_view());
            let mut most = 0;
            for view in views {
                let record = &batch.views[view as usize];
                most = most.max(record.len as u64);
                if batch.base_of(view).is_some() && !std::mem::replace(&mut seen[record.base as usize], true) {
                    bases.push(record.base);
                }
            }
            operations += if batch.instrs[index as usize].opcode.is_system() { 0 } else { most };
        }
        let renamed = batch.renames(block).iter().map(|rename| rename.base);
        let bytes = bases.iter().copied().chain(renamed).map(|base| batch.bases[base as usize].bytes());
        let room = bytes.clone().map(|bytes| capacity(bytes as usize) as u64);
        Work { bytes: bytes.sum(), room: room.clone().sum(), largest: room.max().unwrap_or(0), operations }
    }

    /// Is it better done where the data is, if that is host memory?
    pub(crate) fn is_small(&self, settings: &Settings) -> bool {
        self.bytes < settings.small_bytes && self.operations < settings.small_operations
    }

    /// Can all arrays be on the device together?
    pub(crate) fn fits(&self, pool: &Pool) -> bool {
        self.room <= pool.limit && self.largest <= pool.gpu.facts.largest_bytes
    }
}

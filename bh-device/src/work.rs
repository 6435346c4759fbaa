//! The cost of a block: bytes of arrays and of their used elements, and operations.

use crate::memory::{Pool, capacity};
use crate::settings::Little;
use bh_bytecode::{BatchRef, Kind};

/// The cost of running a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// Bytes of the elements that it may use.
    pub(crate) touched: u64,
    /// Bytes of all arrays.
    pub(crate) bytes: u64,
    /// Bytes that they take on the device.
    pub(crate) room: u64,
    /// Bytes that the largest takes there.
    largest: u64,
    /// Element operations.
    pub(crate) operations: u64,
    /// Are there calls of methods?
    pub(crate) calls: bool,
}

impl Work {
    pub(crate) fn of(batch: &BatchRef<'_>, block: u32) -> Work {
        let (mut bases, mut operations, mut calls) = (Vec::new(), 0u64, false);
        let block = &batch.blocks[block as usize];
        // Bytes under the views of each base.
        let mut under: Vec<Option<u64>> = vec![None; batch.bases.len()];
        batch.contracted(block).iter().for_each(|&base| under[base as usize] = Some(0));
        for &index in batch.block_instrs(block) {
            let views = batch.instrs[index as usize].operands().iter().filter_map(|operand| operand.as_view());
            let mut most = 0;
            for view in views {
                let record = &batch.views[view as usize];
                most = most.max(record.len as u64);
                let Some(base) = batch.base_of(view) else { continue };
                let under = &mut under[record.base as usize];
                if under.is_none() {
                    bases.push(record.base);
                }
                *under = Some(under.unwrap_or(0).saturating_add(record.len as u64 * base.dtype().size() as u64));
            }
            let opcode = batch.instrs[index as usize].opcode;
            operations += if opcode.is_system() { 0 } else { most };
            calls |= opcode.kind() == Kind::Extension;
        }
        let bytes_of = |base: u32| batch.bases[base as usize].bytes();
        let touched = bases.iter().map(|&base| under[base as usize].unwrap_or(0).min(bytes_of(base))).sum();
        let renamed = batch.renames(block).iter().map(|rename| rename.base);
        let bytes = bases.iter().copied().chain(renamed).map(bytes_of);
        let room = bytes.clone().map(|bytes| capacity(bytes as usize) as u64);
        Work {
            touched,
            bytes: bytes.sum(),
            room: room.clone().sum(),
            largest: room.max().unwrap_or(0),
            operations,
            calls,
        }
    }

    /// Is it better done where the data is, if that is host memory?
    pub(crate) fn is_little(&self, little: &Little) -> bool {
        self.touched < little.bytes && self.operations < little.operations
    }

    /// Can all arrays be on the device together?
    pub(crate) fn fits(&self, pool: &Pool) -> bool {
        self.room <= pool.limit && self.largest <= pool.gpu.facts.largest_bytes
    }
}

//! Little blocks that run on the device because other blocks of their batch do: arrays that both use would travel else, and who brings
//! them waits for the kernels before.

use crate::running::Open;
use crate::settings::{Little, Settings};
use crate::whereabouts::Verdict;
use crate::work::Work;
use bh_bytecode::BatchRef;

/// The engine's choice for a block by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// It manages data, and does no work.
    Managing,
    /// The device does not run it.
    Refused(Verdict),
    /// Too little work for the device, on data in host memory.
    Little,
    /// Work of the device.
    Device,
}

impl Alone {
    /// The choice for a block; `falls`: there is a next engine.
    pub(crate) fn new(device: &Open, batch: &BatchRef<'_>, block: u32, settings: &Settings, falls: bool) -> Alone {
        let instrs = batch.block_instrs(&batch.blocks[block as usize]);
        if instrs.iter().all(|&instr| batch.instrs[instr as usize].opcode.is_system()) {
            return Alone::Managing;
        }
        let work = Work::of(batch, block);
        match device.refuses(batch, block, &work, falls) {
            Some(place) => Alone::Refused(place),
            None if falls
                && settings.little != Little::NOTHING
                && device.is_for_host(batch, block, &work, settings) =>
            {
                Alone::Little
            }
            None => Alone::Device,
        }
    }
}

/// Which blocks of the last batch that was asked about are to run on the device, as those are that use the same arrays.
#[derive(Debug, Default)]
pub(crate) struct Company {
    /// Where the batch's tables lie, and their lengths.
    tables: [usize; 4],
    /// Its signature.
    signature: [u64; 2],
    /// Is the batch prepared, and does it run on the device as a whole?
    whole: bool,
    /// The block that was asked about last: those of a batch come in order.
    last: u32,
    /// For each block, once a little one was asked about.
    joins: Option<Vec<bool>>,
    /// The block that was sent on last.
    sent: Option<Sent>,
}

/// A block that was sent on: the tables and the bases of its batch, and its instructions.
#[derive(Debug)]
struct Sent {
    tables: [usize; 4],
    bases: Vec<u64>,
    instrs: Vec<u32>,
}

impl Company {
    /// Notes that a block goes to the next engine as a whole.
    pub(crate) fn send(&mut self, batch: &BatchRef<'_>, block: u32) {
        let instrs = batch.block_instrs(&batch.blocks[block as usize]).to_vec();
        self.sent = Some(Sent { tables: tables(batch), bases: bases_of(batch).collect(), instrs });
    }

    /// Is this a part of the block that was sent on last? Hosts ask about single operations of a block that is refused, to
    /// split it, before they ask anything else; its operations stay together, as their arrays do.
    pub(crate) fn is_part_of_sent(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let part = tables(batch);
        let is_part = self.sent.as_ref().is_some_and(|sent| {
            let whole = &sent.tables;
            let same = part[0] == whole[0] && part[2] == whole[2] && part[1] != whole[1];
            // Another batch may be at the same addresses.
            same && batch.block_instrs(&batch.blocks[block as usize]).iter().all(|instr| sent.instrs.contains(instr))
                && bases_of(batch).eq(sent.bases.iter().copied())
        });
        if !is_part {
            self.sent = None;
        }
        is_part
    }

    /// Does the batch of a block run on the device as a whole, which `whole` finds out when the first block is asked about? As its blocks
    /// have run there before, an answer for another batch of the same structure is of no harm.
    pub(crate) fn is_whole(&mut self, batch: &BatchRef<'_>, block: u32, whole: impl FnOnce() -> bool) -> bool {
        let (tables, signature) = (tables(batch), batch.header.signature);
        if tables != self.tables || signature != self.signature || block <= self.last {
            (self.tables, self.signature, self.joins) = (tables, signature, None);
            self.whole = signature != [0; 2] && whole();
        }
        self.last = block;
        self.whole
    }

    /// Does a little block, about which [`Company::is_whole`] was asked, share arrays with work of the device, or with little blocks that
    /// do? That is found for all blocks of a batch when the first is asked about. The order of blocks tells a batch from an
    /// earlier one at the same addresses. A mistake would run blocks at the wrong place, with the same results.
    pub(crate) fn joins(&mut self, batch: &BatchRef<'_>, block: u32, alone: impl Fn(u32) -> Alone) -> bool {
        let find = || joined(batch, (0..batch.blocks.len() as u32).map(alone).collect());
        self.joins.get_or_insert_with(find).get(block as usize).is_some_and(|joins| *joins)
    }
}

fn bases_of(batch: &BatchRef<'_>) -> impl Iterator<Item = u64> {
    batch.bases.iter().map(|base| base.id)
}

fn tables(batch: &BatchRef<'_>) -> [usize; 4] {
    [batch.instrs.as_ptr().addr(), batch.blocks.as_ptr().addr(), batch.instrs.len(), batch.blocks.len()]
}

/// The blocks that share arrays with work of the device.
fn joined(batch: &BatchRef<'_>, alone: Vec<Alone>) -> Vec<bool> {
    let mut joins: Vec<bool> = alone.iter().map(|&alone| alone == Alone::Device).collect();
    let mut near = vec![false; batch.bases.len()];
    let little: Vec<usize> = (0..alone.len()).filter(|&block| alone[block] == Alone::Little).collect();
    if little.is_empty() || little.len() == alone.len() {
        return joins;
    }
    (0..joins.len()).filter(|&block| joins[block]).for_each(|block| bases(batch, block, |base| near[base] = true));
    // Forwards and backwards in turn, until no block joins any more.
    for turn in 0.. {
        let mut join = |block: usize| {
            let mut shares = false;
            bases(batch, block, |base| shares |= near[base]);
            let joins = shares && !std::mem::replace(&mut joins[block], shares);
            if joins {
                bases(batch, block, |base| near[base] = true);
            }
            joins
        };
        let count = match turn % 2 {
            0 => little.iter().filter(|&&block| join(block)).count(),
            _ => little.iter().rev().filter(|&&block| join(block)).count(),
        };
        if count == 0 {
            break;
        }
    }
    joins
}

/// The bases of a block that have memory.
fn bases(batch: &BatchRef<'_>, block: usize, mut each: impl FnMut(usize)) {
    let block = &batch.blocks[block];
    let contracted = batch.contracted(block);
    let views = batch.block_instrs(block).iter().flat_map(|&instr| batch.instrs[instr as usize].operands());
    for view in views.filter_map(|operand| operand.as_view()).filter(|&view| batch.base_of(view).is_some()) {
        let base = batch.views[view as usize].base;
        if !contracted.contains(&base) {
            each(base as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View};

    /// Writes one to two bases, in one block.
    fn batch(bases: [u64; 2]) -> Batch {
        let mut batch = Batch::default();
        let one = Operand::constant(batch.push_constant(Constant::from_value(1.0)));
        for id in bases {
            let base = batch.push_base(Base::new(id, DType::F64, 24));
            let view = Operand::view(batch.push_view(base, &View::contiguous(&[24]).unwrap()));
            batch.push_instr(Instr::new(Opcode::Copy, &[view, one]));
        }
        batch.push_block(&[0, 1], &[]);
        batch
    }

    #[test]
    fn parts_of_a_block_follow_it_and_other_batches_at_its_addresses_do_not() {
        let (whole, other) = (batch([1, 2]), batch([1, 3]));
        let mut singles = Batch::default();
        (0..2).for_each(|at| singles.push_block(&[at], &[]));
        let split = |batch| BatchRef { blocks: &singles.blocks, block_instrs: &singles.block_instrs, ..batch };
        let parts = split(whole.as_ref());
        let later = BatchRef { bases: &other.bases, ..parts };
        let mut company = Company::default();
        assert!(!company.is_part_of_sent(&parts, 0));
        company.send(&whole.as_ref(), 0);
        assert!(company.is_part_of_sent(&parts, 0) && company.is_part_of_sent(&parts, 1));
        assert!(!company.is_part_of_sent(&later, 0));
        // Sent operations are forgotten at any other question.
        assert!(!company.is_part_of_sent(&parts, 0));
    }
}

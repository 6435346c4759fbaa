//! The blocks of a batch as loop nests, and which of them use each base. Each block is lowered once, for sliding windows, tiles, and
//! the plans of blocks that run in neither.

use crate::{BufferRef, Lowered, Stage, copy_stage, lower};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{BatchRef, Opcode};
use std::cell::OnceCell;

/// A batch with a partition. Its blocks are lowered when the first search for chains needs them.
pub struct Survey<'a> {
    pub(crate) batch: &'a BatchRef<'a>,
    found: OnceCell<Found>,
}

/// What is known of blocks and bases.
pub(crate) struct Found {
    lowered: Vec<Lowered>,
    /// For each block the copies of the elements that its renames leave unwritten.
    pub(crate) copies: Vec<Vec<Stage>>,
    /// The first and the last block that compute with a base.
    pub(crate) uses: Vec<(u32, u32)>,
    /// Does the program ask for the data of a base?
    pub(crate) synced: Vec<bool>,
    /// The largest stride of an outermost loop in a base; 1 if there is none.
    pub(crate) pitches: Vec<i64>,
}

impl<'a> Survey<'a> {
    /// A survey of a batch; it lowers nothing yet.
    pub fn new(batch: &'a BatchRef<'a>) -> Survey<'a> {
        Survey { batch, found: OnceCell::new() }
    }

    /// All blocks, lowered; none if nothing needed them.
    pub fn into_lowered(self) -> Vec<Lowered> {
        self.found.into_inner().map_or_else(Vec::new, |found| found.lowered)
    }

    /// A block, lowered.
    pub(crate) fn block(&self, block: u32) -> &Lowered {
        &self.found().lowered[block as usize]
    }

    /// Does a block compute anything?
    pub fn computes(&self, block: u32) -> bool {
        *self.block(block) != Lowered::Nothing
    }

    /// What is known of the blocks, which are lowered now if they were not.
    pub(crate) fn found(&self) -> &Found {
        self.found.get_or_init(|| Found::new(self.batch))
    }
}

impl Found {
    fn new(batch: &BatchRef<'_>) -> Found {
        let count = batch.bases.len();
        let mut found = Found {
            lowered: (0..batch.blocks.len() as u32).map(|block| lower(batch, block)).collect(),
            copies: Vec::with_capacity(batch.blocks.len()),
            uses: vec![(u32::MAX, 0); count],
            synced: vec![false; count],
            pitches: vec![1; count],
        };
        for (number, block) in (0..).zip(batch.blocks) {
            found.note_uses(batch, number);
            let copies = batch.renames(block).iter().flat_map(|rename| {
                let (from, to) = (BufferRef::Base(rename.base), BufferRef::Fresh(rename.base));
                batch.uncovered(rename).iter().map(move |&view| copy_stage(batch, view, from, to))
            });
            found.copies.push(copies.collect());
        }
        for lowered in &found.lowered {
            let Lowered::Loops(stages, _) = lowered else { continue };
            for (buffer, stride) in stages.iter().flat_map(outermost_strides) {
                if let BufferRef::Base(base) | BufferRef::Fresh(base) = buffer {
                    let pitch = &mut found.pitches[base as usize];
                    *pitch = stride.max(*pitch);
                }
            }
        }
        found
    }

    /// Notes the bases that a block uses.
    fn note_uses(&mut self, batch: &BatchRef<'_>, number: u32) {
        let block = &batch.blocks[number as usize];
        let mut note = |base: u32| {
            if let Some(uses) = self.uses.get_mut(base as usize) {
                *uses = (uses.0.min(number), number);
            }
        };
        for instr in batch.block_instrs(block).iter().map(|&instr| &batch.instrs[instr as usize]) {
            let views = instr.operands().iter().filter_map(|operand| operand.as_view());
            for base in views.map(|view| batch.views[view as usize].base) {
                match instr.opcode {
                    Opcode::Sync if base != NO_BASE => self.synced[base as usize] = true,
                    opcode if opcode.is_system() => {}
                    _ => note(base),
                }
            }
        }
        for rename in batch.renames(block) {
            note(rename.base);
            note(rename.alias);
        }
    }
}

/// The strides of a nest's outermost loop in its buffers; none if it has one iteration, so that any pitch fits.
pub(crate) fn outermost_strides(stage: &Stage) -> impl Iterator<Item = (BufferRef, i64)> + '_ {
    let parameters = &stage.parameters;
    let slots = (0..parameters.buffers.len()).filter(|_| parameters.extents[0] > 1);
    slots.map(|slot| (parameters.buffers[slot], parameters.stride(slot)[0].abs()))
}

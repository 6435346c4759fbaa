//! The blocks of a batch as loop nests, and which of them use each base. Each block is lowered once, for sliding windows, tiles, and
//! the plans of blocks that run in neither.

use crate::tiles::Grid;
use crate::{BufferRef, Lowered, Runner, Stage, Step, copy_stage, lower};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{BatchRef, Opcode, base_flags};
use std::cell::OnceCell;

/// A batch with a partition. Its blocks are lowered when the first search for chains needs them.
pub struct Survey<'a> {
    pub(crate) batch: &'a BatchRef<'a>,
    found: OnceCell<Found>,
    grids: OnceCell<Vec<Grid>>,
}

/// The facts about blocks and bases.
pub(crate) struct Found {
    lowered: Vec<Lowered>,
    /// For each block the copies of the elements that its renames leave unwritten.
    copies: Vec<Vec<Stage>>,
    /// Does each block compute element by element, from memory to memory?
    elementwise: Vec<bool>,
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
        Survey { batch, found: OnceCell::new(), grids: OnceCell::new() }
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

    /// The stages of a block, and the copies of its renames.
    pub(crate) fn stages(&self, block: u32) -> impl Iterator<Item = &Stage> + Clone {
        let stages = if let Lowered::Loops(stages, _) = self.block(block) { stages.as_slice() } else { &[] };
        stages.iter().chain(&self.found().copies[block as usize])
    }

    /// Does a block compute element by element, from memory to memory?
    pub(crate) fn is_elementwise(&self, block: u32) -> bool {
        self.found().elementwise[block as usize]
    }

    /// Does a chain end with a block: does that make an alias, or have an instruction of these?
    pub(crate) fn ends(&self, block: u32, last: &[Opcode]) -> bool {
        let record = &self.batch.blocks[block as usize];
        let ends = |&instr: &u32| last.contains(&self.batch.instrs[instr as usize].opcode);
        self.batch.block_instrs(record).iter().any(ends)
            || self.batch.renames(record).iter().any(|rename| rename.alias != NO_BASE)
    }

    /// The last block that uses a base whose content ends with the batch; `None` if it lives on.
    pub(crate) fn last_use(&self, base: u32) -> Option<u32> {
        let record = self.batch.bases.get(base as usize)?;
        let dies = record.has(base_flags::DIES) && !self.found().synced[base as usize];
        dies.then(|| self.found().uses[base as usize].1)
    }

    /// The grid of each base, as the blocks that compute element by element walk it.
    pub(crate) fn grids(&self) -> &[Grid] {
        self.grids.get_or_init(|| {
            let blocks = (0..self.batch.blocks.len() as u32).filter(|&block| self.is_elementwise(block));
            let lengths: Vec<i64> = self.batch.bases.iter().map(|base| base.len).collect();
            Grid::of_bases(&lengths, blocks.flat_map(|block| self.stages(block)))
        })
    }

    /// The facts about the blocks, which are lowered now if they were not.
    pub(crate) fn found(&self) -> &Found {
        self.found.get_or_init(|| Found::new(self.batch))
    }
}

impl Found {
    fn new(batch: &BatchRef<'_>) -> Found {
        let count = batch.bases.len();
        let mut found = Found {
            lowered: (0..batch.blocks.len() as u32).map(|block| lower(batch, block, Runner::Vectors)).collect(),
            copies: Vec::with_capacity(batch.blocks.len()),
            elementwise: Vec::with_capacity(batch.blocks.len()),
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
            let elementwise = is_elementwise(&found.lowered[number as usize], &found.copies[number as usize]);
            found.elementwise.push(elementwise);
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

/// Do the stages of a block, with these copies, compute element by element, from memory to memory?
fn is_elementwise(lowered: &Lowered, copies: &[Stage]) -> bool {
    let Lowered::Loops(stages, temporaries) = lowered else { return false };
    let fits = |step: &Step| !matches!(step, Step::Gather { .. } | Step::Reduce { .. });
    let fits = |stage: &Stage| stage.kernel.steps.iter().all(fits) && stage.parameters.iterations() > 0;
    temporaries.is_empty() && stages.iter().chain(copies).all(fits)
}

/// The strides of a nest's outermost loop in its buffers; none if it has one iteration, so that any pitch fits.
pub(crate) fn outermost_strides(stage: &Stage) -> impl Iterator<Item = (BufferRef, i64)> + '_ {
    let parameters = &stage.parameters;
    let slots = (0..parameters.buffers.len()).filter(|_| parameters.extents[0] > 1);
    slots.map(|slot| (parameters.buffers[slot], parameters.stride(slot)[0].abs()))
}

//! Planned blocks: their programs, the bases that they use and how, and their renames.

use crate::block::{Program, compile};
use crate::native::Tier1;
use crate::primitives::Primitives;
use crate::simd::Isa;
use bh_bytecode::BatchRef;
use bh_core::abi::access;
use bh_core::{Error, Result};
use bh_kernel::schedule::lengthen;
use bh_kernel::{BaseUse, BufferRef, Lowered, Runner, Special, Temporary, Uses};

/// A rename: the base gets a fresh buffer.
#[derive(Debug)]
pub(crate) struct RenamePlan {
    /// Index of the base in the batch.
    pub(crate) base: u32,
    /// Copies of what the block leaves unwritten.
    pub(crate) copies: Vec<Program>,
    /// The base that becomes an alias of a view of the fresh buffer.
    pub(crate) alias: Option<(u32, u32)>,
}

/// The work of a block.
#[derive(Debug)]
pub(crate) enum BlockWork {
    Nothing,
    Programs(Vec<Program>, Vec<Temporary>),
    Special(Special),
}

/// A planned block.
#[derive(Debug)]
pub(crate) struct BlockPlan {
    pub(crate) work: BlockWork,
    pub(crate) bases: Vec<BaseUse>,
    pub(crate) renames: Vec<RenamePlan>,
}

impl BlockPlan {
    /// Plans a block, which may have been lowered before.
    pub(crate) fn new(
        batch: &BatchRef<'_>,
        block: u32,
        lowered: Option<Lowered>,
        primitives: Primitives,
        tier1: &mut Option<Tier1>,
    ) -> Result<BlockPlan> {
        let mut uses = Uses::default();
        let work = match lowered.unwrap_or_else(|| bh_kernel::lower(batch, block, Runner::Vectors)) {
            Lowered::Nothing => BlockWork::Nothing,
            Lowered::Special(special) => {
                uses.special(batch, special);
                BlockWork::Special(special)
            }
            Lowered::Loops(mut stages, temporaries) => {
                let mut programs = Vec::with_capacity(stages.len());
                for stage in &mut stages {
                    lengthen(stage);
                    uses.stage(batch, stage);
                    let first = stage.parameters.instrs.last().copied().unwrap_or(0);
                    let compiled = compile(stage, primitives, tier1);
                    programs.push(compiled.map_err(|error: Error| error.at_instr(batch, first))?);
                }
                BlockWork::Programs(programs, temporaries)
            }
        };
        let mut renames = Vec::new();
        for rename in batch.renames(&batch.blocks[block as usize]) {
            let mut copies = Vec::new();
            for &view in batch.uncovered(rename) {
                uses.add(rename.base, access::READ);
                let stage =
                    bh_kernel::copy_stage(batch, view, BufferRef::Base(rename.base), BufferRef::Fresh(rename.base));
                copies.push(compile(&stage, primitives, tier1)?);
            }
            let alias = (rename.alias != bh_bytecode::batch::NO_BASE).then_some((rename.alias, rename.alias_view));
            renames.push(RenamePlan { base: rename.base, copies, alias });
        }
        Ok(BlockPlan { work, bases: uses.into_vec(), renames })
    }

    /// The bases that are renamed, each with the base and the view that become its alias.
    pub(crate) fn renamed(&self) -> impl Iterator<Item = (u32, Option<(u32, u32)>)> + Clone {
        self.renames.iter().map(|rename| (rename.base, rename.alias))
    }
}

/// Plans all blocks of a batch one by one, for block operations; returns how many programs that makes. It is there to be
/// measured.
pub fn plan_blocks(batch: &BatchRef<'_>) -> Result<usize> {
    let primitives = Primitives { isa: Isa::detect(), stream_bytes: 1 << 25, superinstructions: true };
    let programs = |block: u32| -> Result<usize> {
        Ok(match BlockPlan::new(batch, block, None, primitives, &mut None)?.work {
            BlockWork::Programs(programs, _) => programs.len(),
            BlockWork::Nothing | BlockWork::Special(_) => 0,
        })
    };
    (0..batch.blocks.len() as u32).map(programs).sum()
}

/// Bytes of a temporary, with what lies between it and the next one.
pub(crate) fn temporary_bytes(temporary: &Temporary) -> usize {
    (temporary.len as usize * temporary.dtype.size()).next_multiple_of(64)
}

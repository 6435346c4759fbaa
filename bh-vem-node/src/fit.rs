//! Batches whose arrays may exceed the memory limit. A rehearsal before their first kernel tests whether the plan fits.
//! If not, another plan replaces it: block by block, or with the blocks that do not fit, or all of them, split into
//! operations. If no plan fits, operations that do not fit are refused, and operations that only serve them are
//! skipped.

use crate::node::Node;
use bh_bytecode::{Base, BatchRef, Block, Kind, Opcode};
use bh_core::abi::{capability, status};
use bh_core::component::{Report, Ticket};
use bh_core::error::{Error, Result};
use bh_core::memory::charged;
use std::collections::HashSet;

/// Limits of memory are below this.
const UNLIMITED: u64 = 1 << 62;
/// How often blocks that do not fit are split.
const ROUNDS: usize = 4;
/// Arrays named in an error, at most.
const NAMED: usize = 4;

/// The outcome of a block.
#[derive(Clone, Debug)]
enum Fate {
    Runs,
    /// Its memory is not available.
    Refused(Error),
    /// It needs results of a refused block.
    Lost(Error),
    /// No remaining block needs its results.
    Skipped,
}

impl Node {
    /// Runs a batch that may not fit by a plan that does. `None` if it fits as planned, or if this is unknown.
    pub(crate) fn run_to_fit(
        &mut self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        report: &mut Report,
    ) -> Option<Result<Ticket>> {
        let left = self.host.memory_left();
        if left >= UNLIMITED || most_bytes(batch) <= left || !self.predicts() {
            return None;
        }
        let all: Vec<u32>;
        let blocks = match blocks {
            [] => {
                all = (0..batch.blocks.len() as u32).collect();
                &all
            }
            blocks => blocks,
        };
        let registry = &self.service.registry;
        let child = self.children.first_mut()?;
        let (rehearsed, tally) = registry.rehearse(left, || child.predict(batch, blocks));
        if rehearsed.is_ok() || tally.refused() == 0 {
            return None;
        }
        self.replaced.add(1);
        let mut parts: Vec<Block> = blocks.iter().map(|&block| batch.blocks[block as usize]).collect();
        let mut block_instrs = batch.block_instrs.to_vec();
        let mut fates = self.fates(&BatchRef { blocks: &parts, ..*batch }, left);
        for _ in 0..ROUNDS {
            let Some(finer) = finer(&parts, &mut block_instrs, &fates) else { break };
            parts = finer;
            fates = self.fates(&BatchRef { blocks: &parts, block_instrs: &block_instrs, ..*batch }, left);
        }
        let cut = BatchRef { blocks: &parts, block_instrs: &block_instrs, ..*batch };
        let least = refused(&cut, &fates);
        if least > 0 && blocks.len() == batch.blocks.len() {
            // If every plan loses something, program order is likely to lose least.
            let alone = self.in_blocks(batch, |node, batch, _| {
                let fates = node.fates(batch, left);
                (refused(batch, &fates) <= least).then(|| node.run_parts(batch, &fates, report))
            });
            if alone.is_some() {
                return alone;
            }
        }
        Some(self.run_parts(&cut, &fates, report))
    }

    /// Does the single engine predict its memory exactly?
    fn predicts(&mut self) -> bool {
        match &mut self.children[..] {
            [child] => child.capabilities().flags & capability::PREDICTS != 0,
            _ => false,
        }
    }

    /// The outcomes of a batch's blocks, run one by one with `left` bytes available.
    fn fates(&mut self, batch: &BatchRef<'_>, left: u64) -> Vec<Fate> {
        let registry = &self.service.registry;
        let child = &mut self.children[0];
        let refusals = || registry.with(|arrays| arrays.buffers.tally().refused());
        // The bases that refused blocks lose.
        let mut lost: HashSet<u32> = HashSet::new();
        let rehearse = |block: u32| {
            let before = refusals();
            let written = || work(batch, block).flat_map(|instr| bases(batch, block, instr.outputs()));
            let Err(error) = child.predict(batch, &[block]) else {
                lost.retain(|&base| written().all(|other| other != base));
                return Fate::Runs;
            };
            let refused = refusals() > before;
            let error = if refused { named(error, batch, block) } else { error };
            poison(registry, batch, block, &error);
            registry.finish_block(batch, block);
            let mut works_on = work(batch, block).flat_map(|instr| bases(batch, block, instr.operands()));
            let fate = if refused {
                Fate::Refused(error)
            } else if works_on.any(|base| lost.contains(&base)) && work(batch, block).count() == 1 {
                Fate::Lost(error)
            } else {
                // The engine reports partial failures and those with other causes.
                return Fate::Runs;
            };
            lost.extend(written());
            fate
        };
        let (mut fates, _) =
            registry.rehearse(left, || (0..batch.blocks.len() as u32).map(rehearse).collect::<Vec<_>>());
        if fates.iter().any(|fate| matches!(fate, Fate::Refused(_))) {
            skip_needless(batch, &mut fates);
        }
        fates
    }

    /// Runs the blocks of a batch one by one according to their fates. Returns the first error.
    fn run_parts(&mut self, batch: &BatchRef<'_>, fates: &[Fate], report: &mut Report) -> Result<Ticket> {
        let mut first = Ok(());
        for (block, fate) in (0..).zip(fates) {
            let registry = &self.service.registry;
            let result = match fate {
                Fate::Runs => {
                    let child = &mut self.children[0];
                    child.execute(batch, &[block], report).and_then(|ticket| child.wait(ticket))
                }
                Fate::Refused(error) | Fate::Lost(error) => {
                    self.refused.add(u64::from(matches!(fate, Fate::Refused(_))));
                    poison(registry, batch, block, error);
                    registry.finish_block(batch, block);
                    Err(error.clone())
                }
                Fate::Skipped => {
                    registry.finish_block(batch, block);
                    Ok(())
                }
            };
            first = first.and(result);
        }
        // The caller's blocks may be different ones.
        first.map(|()| Ticket::DONE).map_err(|error| Error { block: None, ..error })
    }
}

/// The blocks with each refused one split into its operations, if there is one to split. Operations are in program
/// order, which drops arrays early and needs no renames.
fn finer(blocks: &[Block], block_instrs: &mut [u32], fates: &[Fate]) -> Option<Vec<Block>> {
    let mut finer = Vec::with_capacity(blocks.len());
    for (block, fate) in blocks.iter().zip(fates) {
        let instrs = block.instrs..block.instrs + block.instr_count;
        if matches!(fate, Fate::Refused(_)) && instrs.len() > 1 {
            block_instrs[instrs.start as usize..instrs.end as usize].sort_unstable();
            finer.extend(instrs.map(|instrs| Block { instrs, instr_count: 1, ..Block::default() }));
        } else {
            finer.push(*block);
        }
    }
    (finer.len() > blocks.len()).then_some(finer)
}

/// An upper limit for the bytes of a batch's arrays.
fn most_bytes(batch: &BatchRef<'_>) -> u64 {
    let renamed = batch.renames.iter().filter_map(|rename| batch.bases.get(rename.base as usize));
    let bytes = |base: &Base| charged((base.bytes() as usize).max(1)) as u64;
    batch.bases.iter().chain(renamed).map(bytes).fold(0, u64::saturating_add)
}

/// The number of operations in refused blocks.
fn refused(batch: &BatchRef<'_>, fates: &[Fate]) -> usize {
    let refused = (0..).zip(fates).filter(|(_, fate)| matches!(fate, Fate::Refused(_)));
    refused.map(|(block, _)| work(batch, block).count()).sum()
}

/// The operations of a block without data management.
fn work<'a>(batch: &'a BatchRef<'_>, block: u32) -> impl DoubleEndedIterator<Item = &'a bh_bytecode::Instr> {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]).iter();
    instrs.map(|&instr| &batch.instrs[instr as usize]).filter(|instr| !instr.opcode.is_system())
}

/// The operands' bases with memory outside of the block.
fn bases<'a>(
    batch: &'a BatchRef<'_>,
    block: u32,
    operands: &'a [bh_bytecode::Operand],
) -> impl Iterator<Item = u32> + 'a {
    let views = operands.iter().filter_map(|operand| operand.as_view()).filter(|&view| batch.base_of(view).is_some());
    let reached = views.filter(|&view| batch.views[view as usize].len > 0).map(|view| batch.views[view as usize].base);
    reached.filter(move |base| !batch.contracted(&batch.blocks[block as usize]).contains(base))
}

/// Poisons the results of a block.
fn poison(registry: &crate::registry::ArrayRegistry, batch: &BatchRef<'_>, block: u32, error: &Error) {
    for base in work(batch, block).flat_map(|instr| bases(batch, block, instr.outputs())) {
        registry.with(|arrays| arrays.poison(&batch.bases[base as usize], error.clone()));
    }
}

/// Skips blocks whose results are dropped without a reader other than refused blocks.
fn skip_needless(batch: &BatchRef<'_>, fates: &mut [Fate]) {
    let mut needed = vec![true; batch.bases.len()];
    for (at, fate) in fates.iter_mut().enumerate().rev() {
        let block = at as u32;
        for &instr in batch.block_instrs(&batch.blocks[block as usize]) {
            let instr = &batch.instrs[instr as usize];
            let base = instr.operands().first().and_then(|operand| operand.as_view());
            let Some(base) = base.map(|view| batch.views[view as usize].base as usize) else { continue };
            match instr.opcode {
                Opcode::Free | Opcode::Discard => needed[base] = false,
                Opcode::Sync => needed[base] = true,
                _ => {}
            }
        }
        let mut aliases = batch.renames(&batch.blocks[block as usize]).iter().filter_map(|rename| {
            let alias = rename.alias as usize;
            (alias < needed.len()).then_some(alias)
        });
        let may_matter = |instr: &bh_bytecode::Instr| {
            matches!(instr.opcode.kind(), Kind::Extension | Kind::Index)
                || bases(batch, block, instr.outputs()).any(|base| needed[base as usize])
        };
        let matters = work(batch, block).any(may_matter) || aliases.any(|alias| needed[alias]);
        match fate {
            Fate::Runs if !matters => *fate = Fate::Skipped,
            Fate::Runs => {
                for base in work(batch, block).flat_map(|instr| bases(batch, block, instr.operands())) {
                    needed[base as usize] = true;
                }
            }
            Fate::Refused(_) | Fate::Lost(_) | Fate::Skipped => {}
        }
    }
}

/// The extents of a base in the first view by which the block uses all of it, or else its number of elements.
fn shape(batch: &BatchRef<'_>, block: u32, base: u32) -> Vec<i64> {
    let len = batch.bases[base as usize].len;
    let is_whole = |view: &u32| (batch.views[*view as usize].base, batch.views[*view as usize].len) == (base, len);
    let mut views = work(batch, block).flat_map(|instr| instr.operands()).filter_map(|operand| operand.as_view());
    views.find(is_whole).map_or(vec![len], |view| batch.shape(view).to_vec())
}

/// The error, with the largest arrays that the block uses.
fn named(error: Error, batch: &BatchRef<'_>, block: u32) -> Error {
    if error.status != status::MEMORY {
        return error;
    }
    let mut all: Vec<u32> = work(batch, block).flat_map(|instr| bases(batch, block, instr.operands())).collect();
    all.sort_unstable();
    all.dedup();
    all.sort_by_key(|&base| std::cmp::Reverse(batch.bases[base as usize].bytes()));
    let name = |&index: &u32| {
        let base = &batch.bases[index as usize];
        let extents: Vec<String> = shape(batch, block, index).iter().map(i64::to_string).collect();
        format!("base {} ({}[{}], {} bytes)", base.id, base.dtype(), extents.join(","), base.bytes())
    };
    let more = if all.len() > NAMED { " and others" } else { "" };
    let names: Vec<String> = all.iter().take(NAMED).map(name).collect();
    let text = format!("{}; found before it ran, uses {}{more}", error.text, names.join(", "));
    Error { text, ..error }
}

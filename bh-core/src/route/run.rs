//! The calls for one batch: to the engine, to its first child, and the repeated calls after failures.

use super::flow::{Failures, needs_lost, written};
use super::{Ends, Partition, Target, is_system, nobody, route};
use crate::abi::{BatchTables, ReportRecord, capability};
use crate::error::{Error, Result};
use bh_bytecode::{BatchRef, Opcode, Operand};
use std::collections::HashSet;

/// The number of blocks before the first one that uses a base after another block's FREE of it. If the FREE were
/// performed after that use, it would drop the newly written data.
fn until_reuse(batch: &BatchRef<'_>, blocks: &[u32]) -> usize {
    let mut freed: HashSet<u32> = HashSet::new();
    let base_of = |operand: &Operand| operand.as_view().map(|view| batch.views[view as usize].base);
    for (position, &index) in blocks.iter().enumerate() {
        let block = &batch.blocks[index as usize];
        let instrs = || batch.block_instrs(block).iter().map(|&instr| &batch.instrs[instr as usize]);
        if !freed.is_empty() {
            let work = instrs().filter(|instr| !instr.opcode.is_system());
            let aliases = batch.renames(block).iter().map(|rename| rename.alias);
            let mut used = work.flat_map(|instr| instr.operands().iter().filter_map(base_of)).chain(aliases);
            if used.any(|base| freed.contains(&base)) {
                return position;
            }
        }
        let frees = instrs().filter(|instr| instr.opcode == Opcode::Free);
        freed.extend(frees.flat_map(|instr| instr.operands().iter().filter_map(base_of)));
    }
    blocks.len()
}

/// The number of instructions of a block other than data management.
fn work(batch: &BatchRef<'_>, block: u32) -> usize {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    instrs.iter().filter(|&&instr| !is_system(batch, instr)).count()
}

/// The calls for one batch.
pub(super) struct Run<'a> {
    link: &'a dyn Ends,
    first: Result<()>,
    tickets: Vec<(Target, u64)>,
    /// The caller's report.
    report: *mut ReportRecord,
}

impl<'a> Run<'a> {
    pub(super) fn new(link: &'a dyn Ends, report: *mut ReportRecord) -> Run<'a> {
        Run { link, first: Ok(()), tickets: Vec::new(), report }
    }

    fn keep(&mut self, error: Error) {
        if self.first.is_ok() {
            self.first = Err(error);
        }
    }

    /// Runs blocks on their destinations.
    pub(super) fn blocks(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) {
        let Some(routed) = route(self.link, batch, blocks) else { return self.own(batch, blocks) };
        let batch = routed.partition.apply(batch);
        let mut rest = 0..routed.targets.len();
        while let Some(&target) = routed.targets.get(rest.start) {
            let same = routed.targets[rest.clone()].iter().take_while(|&&other| other == target).count();
            let blocks: Vec<u32> = (rest.start as u32..(rest.start + same) as u32).collect();
            match target {
                Target::Own => self.own(&batch, &blocks),
                Target::Child => self.child(&batch, &blocks),
            }
            rest.start += same;
        }
    }

    /// Runs instructions in this order, each as a block of its own.
    pub(super) fn one_by_one(&mut self, batch: &BatchRef<'_>, instrs: &[u32]) {
        let singles = Partition::singles(instrs);
        let batch = singles.apply(batch);
        let all: Vec<u32> = (0..batch.blocks.len() as u32).collect();
        self.blocks(&batch, &all);
    }

    /// Runs blocks on the link's own engine.
    fn own(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) {
        let retires = self.link.has(capability::RETIRES_BLOCKS);
        let acquires_first = self.link.has(capability::ACQUIRES_FIRST);
        let tables = BatchTables::new(batch);
        let mut rest = blocks;
        while !rest.is_empty() {
            let run = if retires { rest } else { &rest[..until_reuse(batch, rest)] };
            let run = match self.until_lost(batch, run) {
                0 if work(batch, run[0]) > 1 => {
                    self.one_by_one(batch, batch.block_instrs(&batch.blocks[run[0] as usize]));
                    rest = &rest[1..];
                    continue;
                }
                count => &run[..count.max(1)],
            };
            let later = &rest[run.len()..];
            let mut failures = Failures::new(self.link, batch, self.report);
            let answer = failures.during(|report| self.link.engine().execute(&tables, run, report));
            if let Some(error) = failures.first() {
                self.keep(error);
            }
            let Some((mut result, ticket)) = answer else {
                return self.child(batch, rest);
            };
            if ticket != 0 && (!retires || result.is_err()) {
                // The batch is valid only until the call returns, so the host can retire only blocks that are done by
                // then.
                result = result.and(self.link.wait_for(Target::Own, ticket));
            } else if ticket != 0 {
                self.tickets.push((Target::Own, ticket));
            }
            let Err(error) = result else {
                self.retire(batch, if retires { &[] } else { run });
                rest = later;
                continue;
            };
            let error = self.link.named(error, batch);
            let failed = error.block.and_then(|block| run.iter().position(|&other| other == block));
            // An engine that does not name the failed block may have done anything.
            let (done, lost, next) = match failed {
                Some(position) => (&run[..position], &run[position..=position], &rest[position + 1..]),
                None => (&run[..0], run, later),
            };
            self.retire(batch, if retires { &[] } else { done });
            match lost {
                // The engine needed lost data and has changed nothing: instructions that do not need it can still run.
                &[block]
                    if failed.is_some()
                        && acquires_first
                        && work(batch, block) > 1
                        && self.needs_lost(batch, block) =>
                {
                    self.one_by_one(batch, batch.block_instrs(&batch.blocks[block as usize]));
                }
                _ => lost.iter().for_each(|&block| self.fail(batch, block, error.clone())),
            }
            rest = next;
        }
    }

    fn needs_lost(&self, batch: &BatchRef<'_>, block: u32) -> bool {
        self.link.registry().is_some_and(|registry| needs_lost(registry, batch, block))
    }

    /// The number of blocks before the first one that an engine would fail at half-way because data was lost.
    fn until_lost(&self, batch: &BatchRef<'_>, blocks: &[u32]) -> usize {
        if self.link.has(capability::ACQUIRES_FIRST) {
            return blocks.len();
        }
        blocks.iter().position(|&block| self.needs_lost(batch, block)).unwrap_or(blocks.len())
    }

    /// Runs blocks on the next component.
    fn child(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) {
        let Some((result, ticket)) = self.link.run_below(batch, blocks, self.report) else {
            for &block in blocks {
                self.fail(batch, block, nobody(self.link, batch, block));
            }
            return;
        };
        if ticket != 0 {
            self.tickets.push((Target::Child, ticket));
        }
        if let Err(error) = result {
            self.keep(error);
        }
    }

    fn retire(&self, batch: &BatchRef<'_>, blocks: &[u32]) {
        if let Some(registry) = self.link.registry() {
            for &block in blocks {
                registry.block_done(batch, block);
            }
        }
    }

    /// Poisons the outputs of a failed block, and retires it, because its engine cannot.
    fn fail(&mut self, batch: &BatchRef<'_>, index: u32, error: Error) {
        self.link.count_failed();
        let block = &batch.blocks[index as usize];
        let first = batch.block_instrs(block).iter().find(|&&instr| !is_system(batch, instr));
        let error = match first {
            Some(&instr) => error.at_instr(batch, instr),
            None => error,
        };
        if let Some(registry) = self.link.registry() {
            for &instr in batch.block_instrs(block) {
                for base in written(batch, &batch.instrs[instr as usize]) {
                    if !batch.contracted(block).contains(&base) {
                        registry.poison(&batch.bases[base as usize], &error);
                    }
                }
            }
            registry.block_done(batch, index);
        }
        self.keep(error);
    }

    /// The result; after an error, waits for pending work, because the parent gets no ticket.
    pub(super) fn finish(mut self) -> (Result<()>, Vec<(Target, u64)>) {
        if self.first.is_err() {
            for (target, ticket) in std::mem::take(&mut self.tickets) {
                // Engines with tickets poison the outputs of failed work; the first error is reported.
                let _ = self.link.wait_for(target, ticket);
            }
        }
        (self.first, self.tickets)
    }
}

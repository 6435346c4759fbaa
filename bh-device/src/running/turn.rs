//! One block that runs, or several as one: on the device, in pieces, or on the next engine.

use super::looked;
use crate::counters::Counters;
use crate::launch::{Failure, Launcher};
use crate::memory::Pool;
use crate::parted::InPieces;
use crate::plan::BlockPlan;
use crate::whereabouts::{Verdict, Whereabouts};
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::{Child, Error, Report, Result};
use std::sync::Arc;

/// Blocks that are to run together, of which the first one is planned.
pub(super) struct Turn<'a, 'b> {
    pub(super) batch: &'a BatchRef<'b>,
    pub(super) run: &'a [u32],
    pub(super) block: u32,
    pub(super) pool: &'a Arc<Pool>,
    pub(super) launcher: &'a mut Launcher,
    pub(super) child: Option<&'a mut Child>,
    pub(super) counters: &'a Counters,
    pub(super) whereabouts: &'a mut Whereabouts,
    pub(super) report: &'a mut Report,
}

impl Turn<'_, '_> {
    /// Runs the block: on the device, in pieces, or on the next engine. Returns the instructions that failed; none if the
    /// next engine has run and retired it.
    /// `chained`: how many kernels it does as one; `filled`: the bases that the batch fills part by part.
    pub(super) fn run(
        &mut self,
        (plan, filled): (&mut BlockPlan, &[bool]),
        built: &Result<()>,
        chained: Option<u32>,
    ) -> Result<Option<Vec<Failure>>> {
        self.launcher.timing.enter(self.batch, self.block);
        let outcome = match (built, plan.launches().ready()) {
            (Err(error), false) => return self.refused(error, chained.is_some()).map(|()| None),
            _ if plan.in_pieces.is_some() => Err(self.launcher.does_not_fit()),
            _ => self.launcher.block(self.batch, plan, filled),
        };
        match outcome {
            Ok(failures) => {
                self.counters.kernels.add(plan.launches().all.len() as u64);
                self.counters.tilings.add(u64::from(chained.is_some()));
                self.counters.in_tiles.add(u64::from(chained.unwrap_or(0)));
                let noted = if chained.is_some() { self.run } else { &self.run[..1] };
                noted.iter().for_each(|&block| self.whereabouts.note(self.batch, block, Verdict::Device));
                Ok(Some(failures))
            }
            Err(error) if chained.is_some() => Err(error),
            Err(error) if error.status == status::MEMORY && !self.launcher.has_begun() => {
                let nests = plan.in_pieces.take().or_else(|| InPieces::of(self.batch, self.block, self.pool));
                let parted = nests.map(|nests| self.in_pieces(plan.in_pieces.insert(nests)));
                let fits = !matches!(&parted, Some(Err(error)) if error.status == status::MEMORY);
                match parted {
                    // A block that has begun must not begin again.
                    Some(outcome) if fits || self.launcher.has_begun() || self.child.is_none() => outcome.map(Some),
                    _ if self.child.is_some() => {
                        self.counters.too_large.add(1);
                        self.whereabouts.note(self.batch, self.block, Verdict::TooLarge);
                        self.on_child().map(|()| None)
                    }
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a block whose kernels cannot be built on the next engine, if that can.
    fn refused(&mut self, error: &Error, chained: bool) -> Result<()> {
        let (batch, block) = (self.batch, self.block);
        looked(error, self.pool);
        self.launcher.begun = false;
        if chained || !self.child.as_mut().is_some_and(|child| child.supports(batch, block)) {
            return Err(error.clone());
        }
        self.counters.count(Verdict::Refused);
        self.whereabouts.note(batch, block, Verdict::Refused);
        self.on_child()
    }

    fn in_pieces(&mut self, nests: &InPieces) -> Result<Vec<Failure>> {
        let (pieces, kernels, failures) = self.launcher.in_pieces(self.batch, nests)?;
        self.counters.in_pieces.add(1);
        self.whereabouts.note(self.batch, self.block, Verdict::Pieces);
        self.counters.pieces.add(pieces);
        self.counters.kernels.add(kernels);
        Ok(failures)
    }

    /// Tells of the instructions that failed, and retires the blocks.
    pub(super) fn end(&mut self, failures: Vec<Failure>) -> Result<()> {
        let mut failures = failures.into_iter().peekable();
        for &block in self.run {
            let instrs = self.batch.block_instrs(&self.batch.blocks[block as usize]);
            while let Some((instr, error)) = failures.next_if(|(instr, _)| instrs.contains(instr)) {
                if !self.report.is_wanted() {
                    return Err(error.at_instr(self.batch, instr).in_block(block));
                }
                self.report.fail(block, instr, &error);
            }
            self.launcher.arrays.registry.block_done(self.batch, block);
        }
        Ok(())
    }

    /// Runs the blocks on the next engine, which retires them, too.
    pub(super) fn on_child(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        let ticket = child.execute(self.batch, self.run, self.report)?;
        child.wait(ticket)
    }

    /// Names the block of an error, and its first operation if no other is named; looks whether the device is still there.
    pub(super) fn failed(&mut self, mut error: Error) -> Error {
        let (batch, block) = (self.batch, self.block);
        looked(&error, self.pool);
        let instrs = batch.block_instrs(&batch.blocks[block as usize]);
        let first = instrs.iter().find(|&&index| !batch.instrs[index as usize].opcode.is_system());
        if let Some(&first) = first {
            if error.status == status::MEMORY && error.instr.is_none() && error.origin.is_none() {
                error.text = format!("{}: {}", batch.instrs[first as usize].opcode, error.text);
            }
            error = error.at_instr(batch, first);
        }
        error.in_block(block)
    }
}

//! Runs the blocks of a batch by their plans, or operation by operation; counts and traces them.

use super::Machine;
use crate::plan::{BlockPlan, Planned, TilePlan};
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::component::enter_block;
use bh_core::{Error, Registry, Report, Result};

impl Machine {
    /// Runs blocks by their plans, all blocks if none is named.
    pub(in crate::engine) fn run_planned(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        mut planned: Planned<'_>,
        report: &mut Report,
    ) -> Result<()> {
        planned.count_run();
        self.counters.refused_windows.add(planned.refused);
        // Blocks before this one have run in a chain.
        let mut done = 0;
        for block in chosen(batch, blocks) {
            enter_block(block);
            if let Some(chain) = planned.chain(block)
                && self.run_whole_chain(registry, batch, chain)?
            {
                done = chain.chain.blocks.end;
            }
            if block >= done {
                let plan = planned.block(batch, block, (self.primitives, &mut self.tier1));
                self.run_block(registry, batch, block, plan, report)?;
            }
            self.counters.kernels.add(1);
            registry.block_done(batch, block);
        }
        Ok(())
    }

    /// Runs a chain. False if its blocks must run one by one: it does not pay, or the system lacks its memory.
    fn run_whole_chain(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &TilePlan) -> Result<bool> {
        let running = self.traced.chain(batch, plan);
        if !plan.pays(self.workers.threads()) {
            self.counters.refused_windows.add(1);
            return Ok(false);
        }
        let ran = self.chain(registry, batch, plan)?;
        if ran {
            self.traced.end(running);
            self.counters.chain(plan);
        }
        Ok(ran)
    }

    /// Runs a planned block; instructions that fail alone go to the report.
    fn run_block(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        block: u32,
        plan: Result<&BlockPlan>,
        report: &mut Report,
    ) -> Result<()> {
        let running = plan.as_ref().ok().and_then(|plan| self.traced.block(batch, block, Some(plan)));
        let result = plan.and_then(|plan| self.block(registry, batch, plan));
        self.traced.end(running);
        for (instr, error) in result.map_err(|error| place(error, batch, block))? {
            if !report.is_wanted() {
                return Err(place(error, batch, block));
            }
            report.fail(block, instr, &error);
        }
        Ok(())
    }

    /// Runs blocks operation by operation, except those that need a plan; all blocks if none is named.
    pub(in crate::engine) fn run_at_once(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        report: &mut Report,
    ) -> Result<()> {
        self.direct(batch, blocks, |machine, block| {
            let instrs = batch.block_instrs(&batch.blocks[block as usize]);
            let running = machine.traced.block(batch, block, None);
            if machine.operate(registry, batch, instrs).map_err(|error| place(error, batch, block))? {
                machine.traced.end(running);
                machine.counters.at_once.add(1);
            } else {
                machine.begin_direct(batch);
                let plan = BlockPlan::new(batch, block, None, machine.primitives, &mut machine.tier1);
                machine.run_block(registry, batch, block, plan.as_ref().map_err(Error::clone), report)?;
            }
            machine.drop_ended(batch, instrs);
            machine.counters.kernels.add(1);
            registry.block_done(batch, block);
            Ok(())
        })
    }
}

/// The blocks of a batch that a call is about: all if it names none.
pub(super) fn chosen(batch: &BatchRef<'_>, named: &[u32]) -> impl Iterator<Item = u32> {
    let all = if named.is_empty() { batch.blocks.len() } else { 0 };
    (0..all as u32).chain(named.iter().copied())
}

/// Names the block of an error, and its first operation if no other is named.
pub(super) fn place(mut error: Error, batch: &BatchRef<'_>, block: u32) -> Error {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    let first = instrs.iter().find(|&&index| !batch.instrs[index as usize].opcode.is_system());
    match first {
        Some(&first) => {
            if error.status == status::MEMORY && error.instr.is_none() && error.origin.is_none() {
                let name = batch.operation_name(batch.instrs[first as usize].opcode);
                error.text = format!("{name}: {}", error.text);
            }
            error.at_instr(batch, first)
        }
        None => error,
    }
    .in_block(block)
}

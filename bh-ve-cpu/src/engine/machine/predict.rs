//! Predicts the memory that blocks of a batch take, by the plans that they run by. The machine borrows, renames and gives back as it
//! does in a run, so that the registry counts the arrays, and computes nothing. Lent memory has no address meanwhile.

use super::Machine;
use super::run::{chosen, place};
use crate::block::taken;
use crate::plan::{BlockPlan, BlockWork, Planned, TilePlan, temporary_bytes};
use bh_bytecode::methods::Form;
use bh_bytecode::{BatchRef, DType, Operand};
use bh_core::component::enter_block;
use bh_core::{Registry, Result};
use bh_kernel::Special;
use bh_methods::contract;

impl Machine {
    /// The most bytes of work memory of blocks that run by their plans; all blocks if none is named.
    pub(in crate::engine) fn predict_planned(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        mut planned: Planned<'_>,
    ) -> Result<usize> {
        // Blocks before this one run in a chain.
        let (mut done, mut most) = (0, 0);
        for block in chosen(batch, blocks) {
            enter_block(block);
            if let Some(chain) = planned.chain(block)
                && let Some(bytes) = self.predict_chain(registry, batch, chain)?
            {
                (done, most) = (chain.chain.blocks.end, most.max(bytes));
            }
            if block >= done {
                let plan = planned.block(batch, block, (self.primitives, &mut self.tier1));
                let bytes = plan.and_then(|plan| self.predict_block(registry, batch, plan));
                most = most.max(bytes.map_err(|error| place(error, batch, block))?);
            }
            registry.block_done(batch, block);
        }
        Ok(most)
    }

    /// The most bytes of work memory of blocks that run operation by operation; all blocks if none is named.
    pub(in crate::engine) fn predict_at_once(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        blocks: &[u32],
    ) -> Result<usize> {
        let mut most = 0;
        self.direct(batch, blocks, |machine, block| {
            let instrs = batch.block_instrs(&batch.blocks[block as usize]);
            if !machine.hold(registry, batch, instrs).map_err(|error| place(error, batch, block))? {
                machine.begin_direct(batch);
                let plan = BlockPlan::new(batch, block, None, machine.primitives, &mut machine.tier1);
                let bytes = plan.and_then(|plan| machine.predict_block(registry, batch, &plan));
                most = most.max(bytes.map_err(|error| place(error, batch, block))?);
            }
            machine.drop_ended(batch, instrs);
            registry.block_done(batch, block);
            Ok(())
        })?;
        Ok(most)
    }

    /// Bytes of work memory of a chain; `None` if its blocks will run one by one.
    fn predict_chain(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &TilePlan) -> Result<Option<usize>> {
        let participants = self.workers.threads();
        if !plan.pays(participants) {
            return Ok(None);
        }
        let Ok(committed) = self.on_lent(registry, batch, &plan.bases, plan.renamed(), |_| Ok(())) else {
            return Ok(None);
        };
        let gaps = plan.gap_bytes.saturating_mul(plan.chain.borders.as_ref().map_or(0, Vec::len));
        let bytes = taken(plan.temporary_bytes) + participants * taken(plan.buffer_bytes) + taken(gaps);
        committed.map(|()| Some(bytes))
    }

    /// Bytes of work memory of a planned block.
    fn predict_block(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &BlockPlan) -> Result<usize> {
        if !matches!(plan.work, BlockWork::Nothing) {
            self.on_lent(registry, batch, &plan.bases, plan.renamed(), |_| Ok(()))??;
        }
        Ok(self.work_bytes(batch, plan))
    }

    /// Bytes of intermediate results and of a method's work memory, at most.
    fn work_bytes(&self, batch: &BatchRef<'_>, plan: &BlockPlan) -> usize {
        match &plan.work {
            BlockWork::Nothing => 0,
            BlockWork::Programs(_, temporaries) => taken(temporaries.iter().map(temporary_bytes).sum()),
            BlockWork::Special(Special::Extension(index)) => {
                let instr = &batch.instrs[*index as usize];
                if let Some(bytes) = self.programs.work_bytes(instr.opcode) {
                    return taken(bytes).saturating_mul(self.workers.threads());
                }
                let form = |&operand: &Operand| {
                    let shape = operand.as_view().map_or(&[][..], |view| batch.shape(view));
                    batch.dtype(operand).map(|dtype| Form { dtype, shape })
                };
                let inputs: Vec<Form<'_>> = instr.inputs().iter().filter_map(form).collect();
                self.methods.work_bytes(instr.opcode, &inputs, self.workers.threads())
            }
            BlockWork::Special(Special::Product(index)) => {
                let instr = &batch.instrs[*index as usize];
                let [out, a, b] = [0, 1, 2].map(|at| instr.operands[at].as_view().unwrap_or_default());
                let form = contract::Form {
                    dtype: batch.dtype(instr.operands[0]).unwrap_or(DType::Bool),
                    shape: batch.shape(a),
                    out: batch.stride(out),
                    operands: [batch.stride(a), batch.stride(b)],
                    summed: instr.param,
                };
                taken(contract::work_bytes(&form))
            }
            BlockWork::Special(_) => 0,
        }
    }
}

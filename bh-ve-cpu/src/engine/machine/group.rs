//! Running a group: all memory first, then strands of kernels at the same time, then all memory goes back.

use super::{Lent, Machine};
use crate::overlap::{Group, Step};
use crate::plan::{BlockPlan, Work};
use crate::program::Program;
use crate::run::{Binding, run_alone};
use bh_bytecode::BatchRef;
use bh_core::{Registry, Result};
use bh_fuser::lower::Temporary;

/// Memory for partial results, which strands use different parts of.
struct Partials(*mut u8);

// SAFETY: every program has a part of its own.
unsafe impl Sync for Partials {}

impl Machine {
    /// Runs the blocks of a group. False if its memory is not to be had; then nothing has happened,
    /// and its blocks may run one by one, which fails where it must.
    pub(in crate::engine) fn group(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        plans: &[Option<BlockPlan>],
        group: &Group,
    ) -> bool {
        self.lent.clear();
        let ready = self.prepare(registry, batch, plans, group);
        if let Ok(partials) = &ready {
            let (bindings, primitives) = (&self.bindings, self.primitives);
            self.workers.run(group.participants, group.tasks.len(), |scratch, tasks| {
                while let Some(task) = tasks.take() {
                    for at in group.tasks[task].clone() {
                        let step = &group.steps[at];
                        let Some((program, _)) = program(plans, step) else { continue };
                        let memory = partials.0.wrapping_add(step.partials);
                        // SAFETY: the registry lends the whole buffers of validated bases, strands have nothing to do
                        // with each other, and every program has its partial results.
                        unsafe { run_alone(program, &bindings[at], primitives, scratch, memory) };
                    }
                }
            });
        }
        self.lent.clear();
        ready.is_ok()
    }

    /// Takes all memory of a group, in the order in which its blocks would, and binds its programs to it.
    fn prepare(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        plans: &[Option<BlockPlan>],
        group: &Group,
    ) -> Result<Partials> {
        for plan in plans[group.blocks.start as usize..group.blocks.end as usize].iter().flatten() {
            for used in &plan.bases {
                self.lent.push(registry.acquire(&batch.bases[used.base as usize], used.access)?);
            }
        }
        let memory = self.temporaries.try_reserve(group.temporary_bytes)?;
        let partials = Partials(self.partials.try_reserve(group.partial_bytes)?);
        if self.bindings.len() < group.steps.len() {
            self.bindings.resize_with(group.steps.len(), Binding::default);
        }
        for (step, binding) in group.steps.iter().zip(&mut self.bindings) {
            let (Some(plan), Some((program, temporaries))) = (&plans[step.block as usize], program(plans, step)) else {
                continue;
            };
            let (bases, memory) = (&self.lent[step.lent..], memory.wrapping_add(step.temporaries));
            Lent { plan, bases, fresh: &[], temporaries, memory }.bind(batch, program, binding);
            if let (Some(native), Some(tier1)) = (&program.native, &mut self.tier1) {
                tier1.count(&native.kernel, program.work());
            }
        }
        Ok(partials)
    }
}

/// The program of a step, and its block's temporaries.
fn program<'a>(plans: &'a [Option<BlockPlan>], step: &Step) -> Option<(&'a Program, &'a [Temporary])> {
    match &plans[step.block as usize].as_ref()?.work {
        Work::Programs(programs, temporaries) => Some((&programs[step.program], temporaries)),
        Work::Nothing | Work::Special(_) => None,
    }
}

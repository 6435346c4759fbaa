//! Runs planned blocks and chains: on memory that the registry lends, with threads and scratch of its own.

mod direct;
mod held;
mod lent;
mod predict;
mod run;

use super::counters::Counters;
use super::traced::Traced;
use crate::block::{Aligned, Binding, Bound, Program};
use crate::exec::{self, Workers};
use crate::native::Tier1;
use crate::plan::{BlockPlan, BlockWork, TilePlan, temporary_bytes};
use crate::primitives::Primitives;
use crate::programs::Programs;
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::{Error, Fresh, Host, Registry, Result};
use bh_kernel::{BaseUse, BufferRef, Special, Temporary, TileSlot};
use bh_methods::{Methods, Strided, contract};
use held::Held;
use lent::{Lent, gather_size};

/// Runs kernels: threads, scratch and lent memory.
pub(super) struct Machine {
    pub(super) primitives: Primitives,
    pub(super) tier1: Option<Tier1>,
    pub(super) workers: Workers,
    pub(super) methods: Methods,
    pub(super) programs: Programs,
    /// Where the work memory of methods comes from.
    host: Host,
    binding: Binding,
    partials: Aligned,
    temporaries: Aligned,
    lent: Lent,
    /// Memory that is lent while operations run at once.
    held: Held,
    /// One for each nest of a chain.
    bindings: Vec<Binding>,
    gaps: Aligned,
    pub(super) counters: Counters,
    traced: Traced,
}

// SAFETY: the pointers are to memory that the registry lends while a block runs, whatever the thread.
unsafe impl Send for Machine {}

impl Machine {
    pub(super) fn new(host: Host, primitives: Primitives, tier1: Option<Tier1>, workers: Workers) -> Machine {
        Machine {
            primitives,
            tier1,
            workers,
            methods: Methods::default(),
            programs: Programs::default(),
            host,
            binding: Binding::default(),
            partials: Aligned::empty(),
            temporaries: Aligned::empty(),
            lent: Lent::default(),
            held: Held::default(),
            bindings: Vec::new(),
            gaps: Aligned::empty(),
            counters: Counters::new(host),
            traced: Traced::new(host),
        }
    }

    /// Runs a block on memory lent by the registry. Returns the instructions that failed while all others were done.
    fn block(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &BlockPlan) -> Result<Vec<(u32, Error)>> {
        if matches!(plan.work, BlockWork::Nothing) {
            return Ok(Vec::new());
        }
        let result = self.on_lent(registry, batch, &plan.bases, plan.renamed(), |machine| machine.work(batch, plan));
        let failed = self.binding.failure.take();
        result??;
        let named = |(instr, error): (u32, Error)| {
            // Kernels know numbers of instructions; a user knows operations.
            let name = batch.instrs.get(instr as usize).map_or("kernel", |instr| batch.operation_name(instr.opcode));
            (instr, Error { text: format!("{name}: {}", error.text), ..error }.at_instr(batch, instr))
        };
        Ok(failed.into_iter().map(named).collect())
    }

    /// Runs something on the memory of these bases, with fresh memory for those that are renamed, each of which comes with the
    /// base and view that become its alias. If that fails, nothing is renamed; else the inner result says whether the renames worked.
    fn on_lent(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        bases: &[BaseUse],
        renames: impl Iterator<Item = (u32, Option<(u32, u32)>)> + Clone,
        run: impl FnOnce(&mut Machine) -> Result<()>,
    ) -> Result<Result<()>> {
        let lent = self.lent.take(registry, batch, bases, renames.clone().map(|(base, _)| base));
        let result = lent.and_then(|()| run(self));
        let fresh = self.lent.end();
        result?;
        Ok(renames.zip(fresh).try_for_each(|(rename, (_, fresh))| commit(registry, batch, rename, fresh)))
    }

    fn work(&mut self, batch: &BatchRef<'_>, plan: &BlockPlan) -> Result<()> {
        match &plan.work {
            BlockWork::Nothing => {}
            BlockWork::Programs(programs, temporaries) => {
                let bytes: usize = temporaries.iter().map(temporary_bytes).sum();
                self.temporaries.try_reserve(bytes)?;
                for program in programs {
                    self.program(batch, program, temporaries)?;
                }
            }
            BlockWork::Special(special) => self.special(batch, *special)?,
        }
        for copy in plan.renames.iter().flat_map(|rename| &rename.copies) {
            self.program(batch, copy, &[])?;
        }
        Ok(())
    }

    fn program(&mut self, batch: &BatchRef<'_>, program: &Program, temporaries: &[Temporary]) -> Result<()> {
        let memory = self.temporaries.reserve(0);
        let data = |buffer: BufferRef| self.lent.data(buffer, temporaries, memory);
        self.binding.set(batch, program, program.slots.iter().map(|slot| data(slot.buffer)));
        for source in &program.gathers {
            let size = gather_size(batch, source.buffer);
            self.binding.gathers.push(data(source.buffer).wrapping_offset(source.start as isize * size as isize));
        }
        count_work(&mut self.tier1, program);
        // SAFETY: the registry lends the whole buffers of validated bases, so every slot lies inside its buffer.
        let bound = unsafe { Bound::new(program, &self.binding, self.primitives) };
        exec::run(bound, &mut self.workers, &mut self.partials)
    }

    /// Runs a chain. False if the system lacks its memory; then nothing has happened, and its blocks may run one by one,
    /// which fails where it must.
    fn chain(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &TilePlan) -> Result<bool> {
        let ran = self.on_lent(registry, batch, &plan.bases, plan.renamed(), |machine| machine.run_chain(batch, plan));
        ran.map_or(Ok(false), |committed| committed.map(|()| true))
    }

    /// Fails only before anything is written.
    fn run_chain(&mut self, batch: &BatchRef<'_>, plan: &TilePlan) -> Result<()> {
        let temporaries = self.temporaries.try_reserve(plan.temporary_bytes)?;
        let lent = &self.lent;
        let data = |slot: &TileSlot| {
            let memory = match *slot {
                TileSlot::Base(base) => lent.base(base),
                TileSlot::Fresh(base) => lent.fresh(base),
                TileSlot::Temporary(number) => Some(temporaries.wrapping_add(plan.temporaries[number as usize])),
                TileSlot::Rows(_) | TileSlot::Index => None,
            };
            memory.unwrap_or(std::ptr::null_mut())
        };
        let inside = plan.nests.len() + plan.joined.len();
        let count = inside + plan.after.len();
        if self.bindings.len() < count {
            self.bindings.resize_with(count, Binding::default);
        }
        let nests = plan.nests.iter().chain(&plan.joined).map(|nest| (&nest.program, &nest.slots));
        let after = plan.after.iter().map(|(program, slots)| (program, slots));
        for (binding, (program, slots)) in self.bindings.iter_mut().zip(nests.chain(after)) {
            count_work(&mut self.tier1, program);
            binding.set(batch, program, slots.iter().map(data));
        }
        let (bindings, after) = self.bindings.split_at(inside);
        let (primitives, workers, partials) = (self.primitives, &mut self.workers, &mut self.partials);
        // SAFETY: the registry lends the whole buffers of validated bases; rows of tiles have no address of their own.
        unsafe { exec::run_tiles(plan, bindings, primitives, workers, partials, &mut self.gaps)? };
        for ((program, _), binding) in plan.after.iter().zip(after) {
            // SAFETY: the registry lends the whole buffers of validated bases, so every slot lies inside its buffer.
            exec::run(unsafe { Bound::new(program, binding, primitives) }, workers, partials)?;
        }
        Ok(())
    }

    fn special(&mut self, batch: &BatchRef<'_>, special: Special) -> Result<()> {
        let index = special.instr();
        let instr = &batch.instrs[index as usize];
        let shape =
            instr.inputs().iter().find_map(|operand| operand.as_view()).map_or(&[][..], |view| batch.shape(view));
        let mut views = Vec::with_capacity(4);
        for operand in instr.operands() {
            views.push(match operand.as_view() {
                Some(view) => {
                    let base = batch.views[view as usize].base;
                    // SAFETY: the batch was validated, and its bases are lent.
                    unsafe {
                        Strided::new(batch, view, self.lent.data(BufferRef::Base(base), &[], std::ptr::null_mut()))
                    }
                }
                None => {
                    let shape = if instr.opcode.is_extension() { &[][..] } else { shape };
                    Strided::constant(&batch.constants[operand.as_constant().unwrap_or(0) as usize], shape)
                }
            });
        }
        match (special, views.as_slice()) {
            (Special::Accumulate(_), [out, input]) => {
                let axis = instr.param.trailing_zeros() as usize;
                exec::accumulate(instr.opcode, out, input, axis, &mut self.workers);
            }
            (Special::Scatter(_), [out, value, index_view, mask @ ..]) => {
                let failure = (&self.binding.failure, index);
                // SAFETY: the views lie inside their bases; validation checked types and shapes.
                unsafe {
                    exec::scatter(instr.opcode, out, value, index_view, mask.first(), failure, &mut self.workers);
                }
            }
            (Special::Product(_), [out, a, b]) => {
                let result = contract::contract([out, a, b], instr.param, self.host, &mut self.workers);
                result.map_err(|error| error.at_instr(batch, index))?;
            }
            (Special::Extension(_), operands) if self.programs.knows(instr.opcode) => {
                let tiers = (self.primitives, &mut self.tier1);
                let result = self.programs.run(instr.opcode, operands, tiers, &mut self.workers);
                result.map_err(|error| error.at_instr(batch, index))?;
            }
            (Special::Extension(_), operands) => {
                let outputs = instr.outputs as usize;
                let result = self.methods.run(instr.opcode, operands, outputs, self.host, &mut self.workers);
                result.map_err(|error| error.at_instr(batch, index))?;
            }
            _ => {
                let text = format!("{} has too few operands", instr.opcode);
                return Err(Error::new(status::BATCH, text).at_instr(batch, index));
            }
        }
        Ok(())
    }
}

/// Makes fresh memory that of a renamed base, of which another one may become an alias.
fn commit(
    registry: &Registry,
    batch: &BatchRef<'_>,
    (renamed, alias): (u32, Option<(u32, u32)>),
    fresh: Fresh,
) -> Result<()> {
    let base = &batch.bases[renamed as usize];
    registry.commit_rename(base, fresh)?;
    let Some((alias, view)) = alias else { return Ok(()) };
    registry.alias(&batch.bases[alias as usize], base, &batch.view(view))
}

/// Counts work that a program is about to do, which its kernel may be compiled for.
fn count_work(tier1: &mut Option<Tier1>, program: &Program) {
    if let (Some(native), Some(tier1)) = (&program.native, tier1) {
        tier1.count(&native.kernel, program.work());
    }
}

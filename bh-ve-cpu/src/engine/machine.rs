//! What runs planned blocks and sliding windows: on memory that the registry lends, with threads and scratch of its own.

mod direct;
mod held;
mod lent;

use crate::block::{Aligned, Binding, Bound, Program, taken};
use crate::exec::{self, Workers};
use crate::native::Tier1;
use crate::plan::{BlockPlan, BlockWork, TilePlan, WindowPlan, temporary_bytes};
use crate::primitives::Primitives;
use crate::programs::Programs;
use bh_bytecode::methods::Form;
use bh_bytecode::{BatchRef, Operand};
use bh_core::abi::status;
use bh_core::{Error, Fresh, Host, Loan, Registry, Result};
use bh_kernel::{BaseUse, BufferRef, Home, Special, Temporary, TileSlot};
use bh_methods::{Methods, Strided};
use held::Held;
use lent::Lent;

/// What runs kernels: threads, scratch and lent memory.
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
    lent: Vec<Loan>,
    /// What is lent while operations run at once.
    held: Held,
    fresh: Vec<Fresh>,
    /// One for each nest of a sliding window.
    bindings: Vec<Binding>,
    gaps: Aligned,
    /// The most bytes of work memory so far, while kernels are rehearsed instead of run.
    rehearsal: Option<usize>,
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
            lent: Vec::new(),
            held: Held::default(),
            fresh: Vec::new(),
            bindings: Vec::new(),
            gaps: Aligned::empty(),
            rehearsal: None,
        }
    }

    /// From now on memory is asked for and given back, and nothing runs. Lent memory has no address.
    pub(super) fn begin_rehearsal(&mut self) {
        self.rehearsal = Some(0);
    }

    /// Ends that; returns the most bytes of work memory that any of it would take.
    pub(super) fn end_rehearsal(&mut self) -> u64 {
        self.rehearsal.take().unwrap_or(0) as u64
    }

    pub(super) fn rehearses(&self) -> bool {
        self.rehearsal.is_some()
    }

    /// Counts work memory instead of using it. False if nothing is rehearsed.
    fn rehearse(&mut self, bytes: impl FnOnce(&Machine) -> usize) -> bool {
        if self.rehearsal.is_none() {
            return false;
        }
        let bytes = bytes(self);
        self.rehearsal = self.rehearsal.map(|most| most.max(bytes));
        true
    }

    /// Runs a block on memory lent by the registry. Returns the instructions that failed while all others were done.
    pub(super) fn block(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        plan: &BlockPlan,
    ) -> Result<Vec<(u32, Error)>> {
        if matches!(plan.work, BlockWork::Nothing) {
            return Ok(Vec::new());
        }
        let lent = self.lend(registry, batch, &plan.bases, plan.renames.iter().map(|rename| rename.base));
        let result = lent.and_then(|()| self.work(batch, plan));
        let failed = self.binding.failure.take();
        self.lent.clear();
        if let Err(error) = result {
            self.fresh.clear();
            return Err(error);
        }
        self.commit(registry, batch, plan.renames.iter().map(|rename| (rename.base, rename.alias)))?;
        let named = |(instr, error): (u32, Error)| {
            // Kernels know numbers of instructions; a user knows operations.
            let name = batch.instrs.get(instr as usize).map_or("kernel", |instr| batch.operation_name(instr.opcode));
            (instr, Error { text: format!("{name}: {}", error.text), ..error }.at_instr(batch, instr))
        };
        Ok(failed.into_iter().map(named).collect())
    }

    /// Takes the memory of these bases, and fresh memory for those that are renamed. What it took before it fails is the
    /// caller's to release.
    fn lend(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        bases: &[BaseUse],
        renamed: impl Iterator<Item = u32>,
    ) -> Result<()> {
        self.lent.clear();
        self.fresh.clear();
        for lent in bases {
            self.lent.push(registry.acquire(&batch.bases[lent.base as usize], lent.access)?);
        }
        for base in renamed {
            self.fresh.push(registry.fresh(&batch.bases[base as usize])?);
        }
        Ok(())
    }

    /// Makes the fresh memory that of the renamed bases; each comes with the base and view that become its alias.
    fn commit(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        renames: impl Iterator<Item = (u32, Option<(u32, u32)>)>,
    ) -> Result<()> {
        for ((renamed, alias), fresh) in renames.zip(self.fresh.drain(..)) {
            let base = &batch.bases[renamed as usize];
            registry.commit_rename(base, fresh)?;
            if let Some((alias, view)) = alias {
                registry.alias(&batch.bases[alias as usize], base, &batch.view(view))?;
            }
        }
        Ok(())
    }

    fn work(&mut self, batch: &BatchRef<'_>, plan: &BlockPlan) -> Result<()> {
        if self.rehearse(|machine| machine.work_bytes(batch, plan)) {
            return Ok(());
        }
        match &plan.work {
            BlockWork::Nothing => {}
            BlockWork::Programs(programs, temporaries) => {
                let bytes: usize = temporaries.iter().map(temporary_bytes).sum();
                self.temporaries.try_reserve(bytes)?;
                for program in programs {
                    self.program(batch, plan, program, temporaries)?;
                }
            }
            BlockWork::Special(special) => self.special(batch, plan, *special)?,
        }
        for copy in plan.renames.iter().flat_map(|rename| &rename.copies) {
            self.program(batch, plan, copy, &[])?;
        }
        Ok(())
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
            BlockWork::Special(_) => 0,
        }
    }

    fn program(
        &mut self,
        batch: &BatchRef<'_>,
        plan: &BlockPlan,
        program: &Program,
        temporaries: &[Temporary],
    ) -> Result<()> {
        let memory = self.temporaries.reserve(0);
        let lent = Lent { plan, bases: &self.lent, fresh: &self.fresh, temporaries, memory };
        lent.bind(batch, program, &mut self.binding);
        count_work(&mut self.tier1, program);
        // SAFETY: the registry lends the whole buffers of validated bases, so every slot lies inside its buffer.
        let bound = unsafe { Bound::new(program, &self.binding, self.primitives) };
        exec::run(bound, &mut self.workers, &mut self.partials)
    }

    /// Runs a sliding window. False if its memory is not to be had; then nothing has happened, and its blocks may run one by one,
    /// which fails where it must.
    pub(super) fn window(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &WindowPlan) -> Result<bool> {
        let lent = self.lend(registry, batch, &plan.bases, plan.renames.iter().map(|rename| rename.base));
        let result = lent.and_then(|()| self.run_window(batch, plan));
        self.lent.clear();
        if result.is_err() {
            self.fresh.clear();
            return Ok(false);
        }
        self.commit(registry, batch, plan.renames.iter().map(|rename| (rename.base, rename.alias)))?;
        Ok(true)
    }

    /// Fails only before anything is written.
    fn run_window(&mut self, batch: &BatchRef<'_>, plan: &WindowPlan) -> Result<()> {
        if self.rehearse(|machine| {
            let participants = machine.workers.threads();
            let gaps = plan.gap_bytes.saturating_mul(plan.borders.len());
            taken(plan.temporary_bytes) + participants * taken(plan.buffer_bytes) + taken(gaps)
        }) {
            return Ok(());
        }
        let temporaries = self.temporaries.try_reserve(plan.temporary_bytes)?;
        let data = |array: &u32| {
            let Some(known) = plan.arrays.get(*array as usize) else { return std::ptr::null_mut() };
            let buffer = match known.home {
                Home::Base => plan.bases.iter().position(|lent| lent.base == known.base).map(|at| self.lent[at].data()),
                Home::Fresh => plan.renames.iter().position(|it| it.base == known.base).map(|at| self.fresh[at].data()),
                Home::Temporary { .. } => return temporaries.wrapping_add(plan.temporaries[*array as usize]),
                Home::Rolling { .. } => None,
            };
            buffer.map_or(std::ptr::null_mut(), |data| data.cast::<u8>())
        };
        let inside = plan.nests.len() + plan.joined.len();
        let count = inside + plan.after.len();
        if self.bindings.len() < count {
            self.bindings.resize_with(count, Binding::default);
        }
        let nests = plan.nests.iter().chain(&plan.joined).map(|nest| (&nest.program, &nest.arrays));
        let after = plan.after.iter().map(|(program, arrays)| (program, arrays));
        for (binding, (program, arrays)) in self.bindings.iter_mut().zip(nests.chain(after)) {
            count_work(&mut self.tier1, program);
            binding.slots.clear();
            binding
                .slots
                .extend(program.slots.iter().zip(arrays).map(|(slot, array)| data(array).wrapping_offset(slot.start)));
            binding.constants.clear();
            binding.constants.extend(program.constants.iter().map(|(dtype, it)| it.value(batch, *dtype).bytes()));
        }
        let (bindings, after) = self.bindings.split_at(inside);
        let (primitives, workers, partials) = (self.primitives, &mut self.workers, &mut self.partials);
        // SAFETY: the registry lends the whole buffers of validated bases; line buffers have no address of their own.
        unsafe { exec::run_window(plan, bindings, primitives, workers, partials, &mut self.gaps)? };
        for ((program, _), binding) in plan.after.iter().zip(after) {
            // SAFETY: the registry lends the whole buffers of validated bases, so every slot lies inside its buffer.
            exec::run(unsafe { Bound::new(program, binding, primitives) }, workers, partials)?;
        }
        Ok(())
    }

    /// Runs a tiling. False as [`Machine::window`] is.
    pub(super) fn tiling(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &TilePlan) -> Result<bool> {
        let lent = self.lend(registry, batch, &plan.bases, plan.renames.iter().map(|rename| rename.base));
        if lent.is_err() {
            self.lent.clear();
            self.fresh.clear();
            return Ok(false);
        }
        self.run_tiles(batch, plan);
        self.lent.clear();
        self.commit(registry, batch, plan.renames.iter().map(|rename| (rename.base, rename.alias)))?;
        Ok(true)
    }

    fn run_tiles(&mut self, batch: &BatchRef<'_>, plan: &TilePlan) {
        if self.rehearse(|machine| machine.workers.threads() * taken(plan.row_bytes)) {
            return;
        }
        let data = |slot: TileSlot| -> *mut u8 {
            let memory = match slot {
                TileSlot::Base(base) => {
                    plan.bases.iter().position(|lent| lent.base == base).map(|at| self.lent[at].data())
                }
                TileSlot::Fresh(base) => {
                    plan.renames.iter().position(|it| it.base == base).map(|at| self.fresh[at].data())
                }
                TileSlot::Rows(_) | TileSlot::Index => None,
            };
            memory.map_or(std::ptr::null_mut(), |data| data.cast::<u8>())
        };
        if self.bindings.len() < plan.nests.len() {
            self.bindings.resize_with(plan.nests.len(), Binding::default);
        }
        for (binding, nest) in self.bindings.iter_mut().zip(&plan.nests) {
            let program = &nest.program;
            count_work(&mut self.tier1, program);
            binding.slots.clear();
            let slots = program.slots.iter().zip(&nest.slots);
            binding.slots.extend(slots.map(|(slot, &home)| data(home).wrapping_offset(slot.start)));
            binding.constants.clear();
            binding.constants.extend(program.constants.iter().map(|(dtype, it)| it.value(batch, *dtype).bytes()));
        }
        let bindings = &self.bindings[..plan.nests.len()];
        // SAFETY: the registry lends the whole buffers of validated bases; rows of tiles have no address of their own.
        unsafe { exec::run_tiles(plan, bindings, self.primitives, &mut self.workers) };
    }

    fn special(&mut self, batch: &BatchRef<'_>, plan: &BlockPlan, special: Special) -> Result<()> {
        let (Special::Accumulate(index) | Special::Scatter(index) | Special::Extension(index)) = special;
        let instr = &batch.instrs[index as usize];
        let shape =
            instr.inputs().iter().find_map(|operand| operand.as_view()).map_or(&[][..], |view| batch.shape(view));
        let (fresh, memory) = (&self.fresh, std::ptr::null_mut());
        let lent = Lent { plan, bases: &self.lent, fresh, temporaries: &[], memory };
        let mut views = Vec::with_capacity(4);
        for operand in instr.operands() {
            views.push(match operand.as_view() {
                Some(view) => {
                    let base = batch.views[view as usize].base;
                    // SAFETY: the batch was validated, and its bases are lent.
                    unsafe { Strided::new(batch, view, lent.data(BufferRef::Base(base))) }
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

/// Counts work that a program is about to do, which its kernel may be compiled for.
fn count_work(tier1: &mut Option<Tier1>, program: &Program) {
    if let (Some(native), Some(tier1)) = (&program.native, tier1) {
        tier1.count(&native.kernel, program.work());
    }
}

//! The component: it plans blocks, lends their memory from the registry, runs them, and retires them.

use crate::affinity::{Affinity, bind};
use crate::cache::{PlanCache, Plans};
use crate::plan::{BaseUse, BlockPlan, Work};
use crate::primitives::Primitives;
use crate::program::Program;
use crate::run::{self, Aligned, Binding, Workers};
use crate::settings::{KEYS, Settings};
use crate::special::{self, Strided};
use crate::sweep::{self, SweepPlan};
use crate::tier1::{self, Tier1};
use bh_bytecode::{Batch, BatchRef, Opcode};
use bh_core::abi::{Buffer, Capabilities, capability, kind, status};
use bh_core::component::enter_block;
use bh_core::{Child, Component, Counter, Error, Host, Registry, Result, Ticket};
use bh_fuser::lower::{BufferRef, Home, Special, Temporary};
use bh_methods::Methods;

/// The CPU engine.
pub struct Engine {
    child: Option<Child>,
    registry: Option<Registry>,
    cache: PlanCache,
    machine: Machine,
    settings: Settings,
    kernels: Counter,
    plan_hits: Counter,
    plan_misses: Counter,
    margins: Counter,
    sweeps: Counter,
    swept_kernels: Counter,
    saved_bytes: Counter,
    refused_sweeps: Counter,
}

/// What runs kernels: threads, scratch and lent memory.
struct Machine {
    primitives: Primitives,
    tier1: Option<Tier1>,
    workers: Workers,
    methods: Methods,
    binding: Binding,
    partials: Aligned,
    temporaries: Aligned,
    lent: Vec<Buffer>,
    fresh: Vec<Buffer>,
    /// One for each nest of a sweep.
    bindings: Vec<Binding>,
    gaps: Aligned,
}

// SAFETY: the pointers are to memory that the registry lends while a block runs, whatever the thread.
unsafe impl Send for Machine {}

impl Component for Engine {
    const NAME: &'static str = "ve-cpu";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [&'static str] = KEYS;

    fn create(host: Host, children: Vec<Child>) -> Result<Engine> {
        let settings = Settings::read(&host)?;
        Ok(Engine {
            child: children.into_iter().next(),
            registry: None,
            cache: PlanCache::default(),
            machine: Machine {
                primitives: settings.primitives(),
                tier1: Tier1::new(host, &settings),
                workers: start(&settings)?,
                methods: Methods::default(),
                binding: Binding::default(),
                partials: Aligned::empty(),
                temporaries: Aligned::empty(),
                lent: Vec::new(),
                fresh: Vec::new(),
                bindings: Vec::new(),
                gaps: Aligned::empty(),
            },
            settings,
            kernels: host.counter("kernels"),
            plan_hits: host.counter("plan hits"),
            plan_misses: host.counter("plan misses"),
            margins: host.counter("margins"),
            sweeps: host.counter("sweeps"),
            swept_kernels: host.counter("kernels in sweeps"),
            saved_bytes: host.counter("bytes saved by sweeps"),
            refused_sweeps: host.counter("sweeps refused"),
        })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn capabilities(&mut self) -> Capabilities {
        Capabilities {
            flags: capability::RENAMES | capability::RETIRES_BLOCKS,
            parallelism: self.machine.workers.threads() as u32,
            reserved: 0,
            bandwidth: 10e9,
            launch_seconds: 1e-6,
        }
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        self.registry = Some(registry);
        self.child.as_mut().map_or(Ok(()), |child| child.bind(registry))
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let Some(block) = batch.blocks.get(block as usize) else { return false };
        batch.block_instrs(block).iter().all(|&index| {
            let opcode = batch.instrs[index as usize].opcode;
            !opcode.is_extension() || self.machine.methods.knows(opcode)
        })
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        if self.machine.methods.announce(name, opcode) {
            return Ok(true);
        }
        self.child.as_mut().map_or(Ok(false), |child| child.extmethod(name, opcode))
    }

    /// Answers `threads`, `threads N`, `affinity`, `affinity LIST`, `forked`, and `extmethod-library ve-cpu NAME PATH`,
    /// which loads the method NAME from a library; hears `exiting`, and passes it on.
    fn message(&mut self, text: &str) -> Result<String> {
        let mut words = text.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("threads"), None, ..) => Ok(self.machine.workers.threads().to_string()),
            (Some("threads"), Some(count), None, _) => {
                self.settings.threads = match count.parse() {
                    Ok(threads @ 1..=1024) => threads,
                    _ => {
                        let text = format!("'{count}' is no number of threads from 1 to 1024");
                        return Err(Error::new(status::ARGUMENT, text));
                    }
                };
                self.machine.workers = start(&self.settings)?;
                Ok("ok".into())
            }
            (Some("affinity"), None, ..) => Ok(self.settings.affinity.to_string()),
            (Some("affinity"), Some(_), ..) => {
                let list = text.strip_prefix("affinity ").unwrap_or_default();
                let wrong = |text| Error::new(status::ARGUMENT, format!("affinity: {text}"));
                let affinity = Affinity::parse(list).map_err(wrong)?;
                let settings = Settings { affinity, ..self.settings.clone() };
                self.machine.workers = start(&settings)?;
                self.settings = settings;
                Ok("ok".into())
            }
            (Some("forked"), ..) => {
                let workers = start(&self.settings)?;
                // The old pool's threads are gone, and its locks may be held for ever: it must not even be dropped.
                std::mem::forget(std::mem::replace(&mut self.machine.workers, workers));
                self.machine.tier1.iter_mut().for_each(Tier1::forked);
                Ok("ok".into())
            }
            (Some("extmethod-library"), Some(Self::NAME), Some(name), Some(path)) => {
                self.machine.methods.load(name, path)?;
                Ok("ok".into())
            }
            (first, ..) => {
                if first == Some("exiting") {
                    tier1::close();
                }
                self.child.as_mut().map_or(Ok(String::new()), |child| child.message(text))
            }
        }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        if batch.blocks.is_empty() && !batch.instrs.is_empty() {
            let whole = with_blocks(batch);
            return self.execute(&whole.as_ref(), &[]);
        }
        let registry = self.registry.ok_or_else(|| Error::new(status::INIT, "the CPU engine has no array registry"))?;
        let (plans, known) = self.cache.plans(batch);
        if known {
            self.plan_hits.add(1)
        } else {
            self.plan_misses.add(1)
        }
        let count = batch.blocks.len();
        let whole = blocks.is_empty()
            || (blocks.len() == count && blocks.iter().enumerate().all(|(at, &block)| at as u32 == block));
        let all = if blocks.is_empty() { count } else { 0 };
        let Plans { blocks: plans, sweeps } = plans;
        let mut rest: &[SweepPlan] = &[];
        if let (Some(bytes), true) = (self.settings.sweep_bytes, whole) {
            if sweeps.is_none() {
                let machine = &mut self.machine;
                *sweeps = Some(sweep::plan(batch, bytes, machine.primitives, &mut machine.tier1)?);
            }
            if let Some(planned) = sweeps {
                rest = &planned.sweeps;
                self.refused_sweeps.add(planned.refused);
            }
        }
        // Blocks before this one have run in a sweep.
        let mut done = 0;
        for block in (0..all as u32).chain(blocks.iter().copied()) {
            enter_block(block);
            if let [sweep, others @ ..] = rest
                && sweep.blocks.start == block
            {
                rest = others;
                if self.machine.sweep(&registry, batch, sweep)? {
                    done = sweep.blocks.end;
                    self.sweeps.add(1);
                    self.swept_kernels.add(u64::from(sweep.blocks.end - sweep.blocks.start));
                    self.saved_bytes.add(sweep.saved);
                }
            }
            if block >= done || !whole {
                let plan = &mut plans[block as usize];
                let planned = match plan {
                    Some(plan) => Ok(plan),
                    None => {
                        let machine = &mut self.machine;
                        BlockPlan::new(batch, block, machine.primitives, &mut machine.tier1).map(|new| {
                            self.margins.add(new.margins());
                            plan.insert(new)
                        })
                    }
                };
                let result = planned.and_then(|plan| self.machine.block(&registry, batch, plan));
                result.map_err(|error| place(error, batch, block))?;
            }
            self.kernels.add(1);
            registry.block_done(batch, block);
        }
        Ok(Ticket::DONE)
    }
}

/// Names the block of an error, and its first operation if no other is named.
fn place(mut error: Error, batch: &BatchRef<'_>, block: u32) -> Error {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    let first = instrs.iter().find(|&&index| !batch.instrs[index as usize].opcode.is_system());
    match first {
        Some(&first) => {
            if error.status == status::MEMORY && error.instr.is_none() && error.origin.is_none() {
                error.text = format!("{}: {}", batch.instrs[first as usize].opcode, error.text);
            }
            error.at_instr(batch, first)
        }
        None => error,
    }
    .in_block(block)
}

/// Starts the participants.
fn start(settings: &Settings) -> Result<Workers> {
    let threads = settings.threads;
    let processors = settings.affinity.processors(threads);
    Workers::new(threads, move |thread| bind(&processors, thread))
        .map_err(|text| Error::new(status::INIT, format!("cannot start {threads} threads: {text}")))
}

/// The batch with one block per instruction.
fn with_blocks(batch: &BatchRef<'_>) -> Batch {
    let mut whole = batch.to_owned();
    for index in 0..batch.instrs.len() as u32 {
        whole.push_block(&[index], &[]);
    }
    whole
}

impl Machine {
    /// Runs a block on memory lent by the registry.
    fn block(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &BlockPlan) -> Result<()> {
        if matches!(plan.work, Work::Nothing) {
            return Ok(());
        }
        let lent = self.lend(registry, batch, &plan.bases, plan.renames.iter().map(|rename| rename.base));
        let result = lent.and_then(|()| self.work(batch, plan));
        self.lent.iter().for_each(|buffer| registry.release(buffer));
        if let Err(error) = result {
            self.fresh.iter().for_each(|buffer| registry.release(buffer));
            return Err(error);
        }
        self.commit(registry, batch, plan.renames.iter().map(|rename| (rename.base, rename.alias)))
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
        &self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        renames: impl Iterator<Item = (u32, Option<(u32, u32)>)>,
    ) -> Result<()> {
        for ((renamed, alias), buffer) in renames.zip(&self.fresh) {
            let base = &batch.bases[renamed as usize];
            registry.commit_rename(base, buffer)?;
            if let Some((alias, view)) = alias {
                registry.alias(&batch.bases[alias as usize], base, &batch.view(view))?;
            }
        }
        Ok(())
    }

    fn work(&mut self, batch: &BatchRef<'_>, plan: &BlockPlan) -> Result<()> {
        match &plan.work {
            Work::Nothing => {}
            Work::Programs(programs, temporaries) => {
                let bytes: usize = temporaries.iter().map(temporary_bytes).sum();
                self.temporaries.try_reserve(bytes)?;
                for program in programs {
                    self.program(batch, plan, program, temporaries)?;
                }
            }
            Work::Special(special) => self.special(batch, plan, *special)?,
        }
        for copy in plan.renames.iter().flat_map(|rename| &rename.copies) {
            self.program(batch, plan, copy, &[])?;
        }
        self.binding.failure.take().map_or(Ok(()), |error| match error.instr {
            Some(instr) => {
                let located = Error { instr: None, ..error };
                Err(located.at_instr(batch, instr))
            }
            None => Err(error),
        })
    }

    /// The memory of a buffer.
    fn data(&mut self, plan: &BlockPlan, buffer: BufferRef, temporaries: &[Temporary]) -> *mut u8 {
        let lent = |base: u32| plan.bases.iter().position(|lent| lent.base == base);
        let data = match buffer {
            BufferRef::Base(base) => lent(base).map(|at| self.lent[at].data.cast()),
            BufferRef::Fresh(base) => {
                let at = plan.renames.iter().position(|rename| rename.base == base);
                at.map(|at| self.fresh[at].data.cast())
            }
            BufferRef::Temporary(number) => {
                let before: usize = temporaries[..number as usize].iter().map(temporary_bytes).sum();
                Some(self.temporaries.reserve(0).wrapping_add(before))
            }
            BufferRef::None => None,
        };
        data.unwrap_or(std::ptr::null_mut())
    }

    fn program(
        &mut self,
        batch: &BatchRef<'_>,
        plan: &BlockPlan,
        program: &Program,
        temporaries: &[Temporary],
    ) -> Result<()> {
        self.binding.slots.clear();
        self.binding.gathers.clear();
        self.binding.constants.clear();
        for slot in &program.slots {
            let data = self.data(plan, slot.buffer, temporaries).wrapping_offset(slot.start);
            self.binding.slots.push(data);
        }
        for source in &program.gathers {
            let data = self.data(plan, source.buffer, temporaries);
            let size = gather_size(batch, source.buffer);
            self.binding.gathers.push(data.wrapping_offset(source.start as isize * size as isize));
        }
        for (dtype, constant) in &program.constants {
            self.binding.constants.push(constant.value(batch, *dtype).bytes());
        }
        if let (Some(native), Some(tier1)) = (&program.native, &mut self.tier1) {
            tier1.count(&native.kernel, program.work());
        }
        // SAFETY: the registry lends the whole buffers of validated bases, so every slot lies inside its buffer.
        unsafe { run::run(program, &self.binding, self.primitives, &mut self.workers, &mut self.partials) }
    }

    /// Runs a sweep. False if its memory is not to be had; then nothing has happened, and its blocks may run one by one,
    /// which fails where it must.
    fn sweep(&mut self, registry: &Registry, batch: &BatchRef<'_>, plan: &SweepPlan) -> Result<bool> {
        let lent = self.lend(registry, batch, &plan.bases, plan.renames.iter().map(|rename| rename.base));
        let result = lent.and_then(|()| self.run_sweep(batch, plan));
        self.lent.iter().for_each(|buffer| registry.release(buffer));
        if result.is_err() {
            self.fresh.iter().for_each(|buffer| registry.release(buffer));
            return Ok(false);
        }
        self.commit(registry, batch, plan.renames.iter().map(|rename| (rename.base, rename.alias)))?;
        Ok(true)
    }

    /// Fails only before anything is written.
    fn run_sweep(&mut self, batch: &BatchRef<'_>, plan: &SweepPlan) -> Result<()> {
        let temporaries = self.temporaries.try_reserve(plan.temporary_bytes)?;
        let data = |array: &u32| {
            let Some(known) = plan.arrays.get(*array as usize) else { return std::ptr::null_mut() };
            let buffer = match known.home {
                Home::Base => plan.bases.iter().position(|lent| lent.base == known.base).map(|at| &self.lent[at]),
                Home::Fresh => plan.renames.iter().position(|it| it.base == known.base).map(|at| &self.fresh[at]),
                Home::Temporary { .. } => return temporaries.wrapping_add(plan.temporaries[*array as usize]),
                Home::Rolling { .. } => None,
            };
            buffer.map_or(std::ptr::null_mut(), |buffer| buffer.data.cast::<u8>())
        };
        let count = plan.nests.len() + plan.after.len();
        if self.bindings.len() < count {
            self.bindings.resize_with(count, Binding::default);
        }
        let nests = plan.nests.iter().map(|nest| (&nest.program, &nest.arrays));
        let after = plan.after.iter().map(|(program, arrays)| (program, arrays));
        for (binding, (program, arrays)) in self.bindings.iter_mut().zip(nests.chain(after)) {
            if let (Some(native), Some(tier1)) = (&program.native, &mut self.tier1) {
                tier1.count(&native.kernel, program.work());
            }
            binding.slots.clear();
            binding
                .slots
                .extend(program.slots.iter().zip(arrays).map(|(slot, array)| data(array).wrapping_offset(slot.start)));
            binding.constants.clear();
            binding.constants.extend(program.constants.iter().map(|(dtype, it)| it.value(batch, *dtype).bytes()));
        }
        let (bindings, after) = self.bindings.split_at(plan.nests.len());
        let (primitives, workers, partials) = (self.primitives, &mut self.workers, &mut self.partials);
        // SAFETY: the registry lends the whole buffers of validated bases; rolling arrays have no address of their own.
        unsafe { run::run_sweep(plan, bindings, primitives, workers, partials, &mut self.gaps)? };
        for ((program, _), binding) in plan.after.iter().zip(after) {
            // SAFETY: as above.
            unsafe { run::run(program, binding, primitives, workers, partials)? };
        }
        Ok(())
    }

    fn special(&mut self, batch: &BatchRef<'_>, plan: &BlockPlan, special: Special) -> Result<()> {
        let (Special::Accumulate(index) | Special::Scatter(index) | Special::Extension(index)) = special;
        let instr = &batch.instrs[index as usize];
        let shape =
            instr.inputs().iter().find_map(|operand| operand.as_view()).map_or(&[][..], |view| batch.shape(view));
        let mut views = Vec::with_capacity(4);
        for operand in instr.operands() {
            views.push(match operand.as_view() {
                Some(view) => {
                    let base = batch.views[view as usize].base;
                    Strided::new(batch, view, self.data(plan, BufferRef::Base(base), &[]))
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
                // SAFETY: the views lie inside their bases; validation checked types, shapes and the axis.
                unsafe { special::accumulate(instr.opcode, out, input, axis, &mut self.workers) };
            }
            (Special::Scatter(_), [out, value, index_view, mask @ ..]) => {
                let failure = (&self.binding.failure, index);
                // SAFETY: as above.
                unsafe {
                    special::scatter(instr.opcode, out, value, index_view, mask.first(), failure, &mut self.workers);
                }
            }
            (Special::Extension(_), operands) => {
                let outputs = instr.outputs as usize;
                let result = self.methods.run(instr.opcode, operands, outputs, &mut self.workers);
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

fn temporary_bytes(temporary: &Temporary) -> usize {
    (temporary.len as usize * temporary.dtype.size()).next_multiple_of(64)
}

/// Bytes per element of a gather's source.
fn gather_size(batch: &BatchRef<'_>, buffer: BufferRef) -> usize {
    match buffer {
        BufferRef::Base(base) | BufferRef::Fresh(base) => batch.bases[base as usize].dtype().size(),
        BufferRef::Temporary(_) | BufferRef::None => 1,
    }
}

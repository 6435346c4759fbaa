//! The component: it plans blocks and sliding windows, has them run, retires them, and answers messages.

mod elementwise;
mod fold;
mod immediate;
mod index;
mod machine;
mod scalars;
mod traced;

use crate::affinity::{Affinity, bind};
use crate::domains::domains;
use crate::exec::Workers;
use crate::native::{self, Tier1};
use crate::plan::{BatchPlans, BlockPlan, PlanCache, TilePlan, plan_chains};
use crate::settings::{Jit, PlanningMode, Settings, TimeTiles};
use bh_bytecode::planning::{self, Level, Work};
use bh_bytecode::{Batch, BatchRef, Opcode};
use bh_core::abi::{Capabilities, Prediction, capability, fork, kind, status};
use bh_core::component::{SharedCalls, enter_block};
use bh_core::config::Row;
use bh_core::keys;
use bh_core::{Child, Component, Counter, Error, Host, Registry, Report, Result, Ticket};
use bh_kernel::Lowered;
use machine::Machine;
use scalars::Scalars;
use std::sync::Arc;
use traced::Traced;

/// The CPU engine.
pub struct Engine {
    host: Host,
    child: Option<Child>,
    registry: Option<Registry>,
    cache: PlanCache,
    machine: Machine,
    traced: Traced,
    settings: Settings,
    kernels: Counter,
    plan_hits: Counter,
    plan_misses: Counter,
    windows: Counter,
    window_kernels: Counter,
    tilings: Counter,
    tiled_kernels: Counter,
    saved_bytes: Counter,
    refused_windows: Counter,
    at_once: Counter,
}

// SAFETY: all that it is given lies in it; it joins its threads where it ends.
unsafe impl Component for Engine {
    const NAME: &'static str = "ve-cpu";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [Row] = keys::ve_cpu::ALL;
    /// It computes operations on scalars while batches run.
    const SHARED: bool = true;

    fn create(host: Host, children: Vec<Child>) -> Result<Engine> {
        let settings = Settings::read(&host)?;
        Ok(Engine {
            host,
            child: children.into_iter().next(),
            registry: None,
            cache: PlanCache::new(settings.plan_bytes),
            machine: Machine::new(host, settings.primitives(), Tier1::new(host, &settings), start(&settings, host)?),
            traced: Traced::new(host),
            settings,
            kernels: host.counter("kernels"),
            plan_hits: host.counter("plan hits"),
            plan_misses: host.counter("plan misses"),
            windows: host.counter("windows"),
            window_kernels: host.counter("kernels in windows"),
            tilings: host.counter("tilings"),
            tiled_kernels: host.counter("kernels in tiles"),
            saved_bytes: host.counter("bytes saved by windows"),
            refused_windows: host.counter("windows refused"),
            at_once: host.counter("kernels run at once"),
        })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn capabilities(&mut self) -> Capabilities {
        Capabilities {
            flags: capability::RENAMES
                | capability::RETIRES_BLOCKS
                | capability::ACQUIRES_FIRST
                | capability::EVALUATES
                | capability::IMMEDIATE
                | capability::PREDICTS,
            parallelism: self.machine.workers.threads() as u32,
            bandwidth: 10e9,
            launch_seconds: 1e-6,
            ..Capabilities::default()
        }
    }

    fn shared(&self) -> Option<Arc<dyn SharedCalls>> {
        let Machine { primitives, methods, .. } = &self.machine;
        Some(Arc::new(Scalars { primitives: *primitives, methods: methods.at_once(), host: self.host }))
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        self.registry = Some(registry);
        self.child.as_mut().map_or(Ok(()), |child| child.bind(registry))
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let Some(block) = batch.blocks.get(block as usize) else { return false };
        batch.block_instrs(block).iter().all(|&index| {
            let opcode = batch.instrs[index as usize].opcode;
            !opcode.is_extension() || self.machine.programs.knows(opcode) || self.machine.methods.knows(opcode)
        })
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        let Machine { programs, methods, tier1, primitives, .. } = &mut self.machine;
        if programs.announce(name, opcode, *primitives, tier1)? || methods.announce(name, opcode) {
            return Ok(true);
        }
        self.child.as_mut().map_or(Ok(false), |child| child.extmethod(name, opcode))
    }

    fn fork(&mut self, moment: u32) -> Result<()> {
        if moment == fork::CHILD {
            let workers = start(&self.settings, self.host)?;
            // The old pool's threads are gone, and its locks may be held for ever: it must not even be dropped.
            std::mem::forget(std::mem::replace(&mut self.machine.workers, workers));
        }
        self.machine.tier1.iter_mut().for_each(|tier1| tier1.fork(moment));
        self.child.as_mut().map_or(Ok(()), |child| child.fork(moment))
    }

    /// Answers `threads`, `threads N`, `affinity`, `affinity LIST`, `device count`, `device speed`, and `extmethod-library ve-cpu NAME PATH`,
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
                self.machine.workers = start(&self.settings, self.host)?;
                Ok("ok".into())
            }
            (Some("device"), Some("count"), None, _) => {
                Ok(domains(&self.host.setting(&keys::ve_cpu::DOMAINS)?)?.len().max(1).to_string())
            }
            // Operations in a nanosecond, roughly: vectors of eight at three gigahertz.
            (Some("device"), Some("speed"), None, _) => Ok((self.machine.workers.threads() * 24).to_string()),
            (Some("affinity"), None, ..) => Ok(self.settings.affinity.to_string()),
            (Some("affinity"), Some(_), ..) => {
                let list = text.strip_prefix("affinity ").unwrap_or_default();
                let wrong = |text| Error::new(status::ARGUMENT, format!("affinity: {text}"));
                let affinity = Affinity::parse(list).map_err(wrong)?;
                let settings = Settings { affinity, ..self.settings.clone() };
                self.machine.workers = start(&settings, self.host)?;
                self.settings = settings;
                Ok("ok".into())
            }
            (Some("extmethod-library"), Some(Self::NAME), Some(name), Some(path)) => {
                self.machine.methods.load(name, path)?;
                Ok("ok".into())
            }
            (first, ..) => {
                if first == Some("exiting") {
                    native::close();
                }
                self.child.as_mut().map_or(Ok(String::new()), |child| child.message(text))
            }
        }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        if batch.blocks.is_empty() && !batch.instrs.is_empty() {
            let whole = with_blocks(batch);
            return self.execute(&whole.as_ref(), &[], report);
        }
        let registry = self.registry.ok_or_else(|| Error::new(status::INIT, "the CPU engine has no array registry"))?;
        let level = self.level(batch);
        if level == Level::Direct && (batch.header.level != 0 || self.settings.planning == PlanningMode::Direct) {
            return self.run_at_once(&registry, batch, blocks, report);
        }
        if self.machine.rehearses() && level == Level::Direct && !self.cache.knows(batch) {
            return self.run_at_once(&registry, batch, blocks, report);
        }
        let (plans, instrs, known) = self.cache.plans(batch);
        if level == Level::Direct && !known {
            return self.run_at_once(&registry, batch, blocks, report);
        }
        let batch = &BatchRef { instrs, ..*batch };
        let count_if_run = u64::from(!self.machine.rehearses());
        if known { self.plan_hits } else { self.plan_misses }.add(count_if_run);
        let all = 0..batch.blocks.len() as u32;
        let whole = blocks.is_empty() || blocks.iter().copied().eq(all.clone());
        let BatchPlans { blocks: plans, chains: planned, runs } = plans;
        let mut chains: &[TilePlan] = &[];
        let mut lowered: &mut [Option<Lowered>] = &mut [];
        if let (Some(bytes), true) = (self.settings.window_bytes, whole && level == Level::Full) {
            let machine = &mut self.machine;
            let settings = &self.settings;
            planned.take_if(|planned| *runs > 0 && !planned.tiled);
            let planned = match planned {
                Some(planned) => planned,
                None => {
                    let tiles = (*runs > 0 || tiles_at_first(settings, batch)).then(|| settings.tiles(bytes));
                    planned.insert(plan_chains(batch, bytes, tiles, machine.primitives, &mut machine.tier1)?)
                }
            };
            *runs = runs.saturating_add(count_if_run as u32);
            (chains, lowered) = (&planned.chains, &mut planned.lowered);
            self.refused_windows.add(planned.refused * count_if_run);
        }
        // Blocks before this one have run in a chain.
        let mut done = 0;
        let (all, some) = if whole { (all, &[][..]) } else { (0..0, blocks) };
        for block in all.chain(some.iter().copied()) {
            enter_block(block);
            if let [chain, others @ ..] = chains
                && chain.chain.blocks.start == block
            {
                chains = others;
                let running = self.traced.chain(batch, chain);
                if !chain.pays(self.machine.workers.threads()) {
                    self.refused_windows.add(count_if_run);
                } else if self.machine.chain(&registry, batch, chain)? {
                    done = chain.chain.blocks.end;
                    self.traced.end(running);
                    let (chains, kernels, count) = match chain.chain.borders {
                        Some(_) => (self.windows, self.window_kernels, done - block),
                        None => (self.tilings, self.tiled_kernels, chain.chain.kernels),
                    };
                    chains.add(count_if_run);
                    kernels.add(u64::from(count) * count_if_run);
                    self.saved_bytes.add(chain.saved() * count_if_run);
                }
            }
            if block >= done {
                let lowered = lowered.get_mut(block as usize).and_then(Option::take);
                let plan = &mut plans[block as usize];
                let plan = plan_of(plan, batch, block, lowered, &mut self.machine);
                run_planned(&mut self.machine, &mut self.traced, &registry, batch, block, plan, report)?;
            }
            self.kernels.add(count_if_run);
            registry.block_done(batch, block);
        }
        Ok(Ticket::DONE)
    }

    /// Goes the way of `execute` without running kernels: the manager counts what would be asked of it.
    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        self.machine.begin_rehearsal();
        self.traced.rehearses = true;
        let result = self.execute(batch, blocks, &mut Report::none());
        let work_bytes = self.machine.end_rehearsal();
        self.traced.rehearses = false;
        result.map(|_| Prediction { work_bytes, ..Prediction::default() })
    }
}

impl Engine {
    /// How much planning a batch gets: what it asks for, unless the settings force a level. What has to be planned for its
    /// first time is asked for by other settings.
    fn level(&self, batch: &BatchRef<'_>) -> Level {
        let all = self.settings.jit == Jit::On;
        match self.settings.planning {
            PlanningMode::Direct => Level::Direct,
            PlanningMode::Full => Level::Full,
            PlanningMode::Auto if all => Level::Full,
            PlanningMode::Auto => planning::Planning::Auto.level_of(&batch.header, Work::of(batch), batch.header.seen),
        }
    }

    /// Runs blocks operation by operation, but for those that need a plan.
    fn run_at_once(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        report: &mut Report,
    ) -> Result<Ticket> {
        self.machine.begin_direct(batch);
        let all = if blocks.is_empty() { batch.blocks.len() } else { 0 };
        let mut result = Ok(());
        for block in (0..all as u32).chain(blocks.iter().copied()) {
            result = self.block_at_once(registry, batch, block, report);
            if result.is_err() {
                break;
            }
        }
        self.machine.begin_direct(batch);
        result.map(|()| Ticket::DONE)
    }

    fn block_at_once(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        block: u32,
        report: &mut Report,
    ) -> Result<()> {
        enter_block(block);
        let instrs = batch.block_instrs(&batch.blocks[block as usize]);
        let running = self.traced.block(batch, block, None);
        let ran = self.machine.direct(registry, batch, instrs);
        if ran.map_err(|error| place(error, batch, block))? {
            self.traced.end(running);
            self.at_once.add(u64::from(!self.machine.rehearses()));
        } else {
            self.machine.begin_direct(batch);
            let machine = &mut self.machine;
            let plan = BlockPlan::new(batch, block, None, machine.primitives, &mut machine.tier1);
            let plan = plan.as_ref().map_err(Error::clone);
            run_planned(machine, &mut self.traced, registry, batch, block, plan, report)?;
        }
        self.machine.drop_ended(batch, instrs);
        self.kernels.add(u64::from(!self.machine.rehearses()));
        registry.block_done(batch, block);
        Ok(())
    }
}

/// Elements of an operation, on average, from which on a batch gains as much from tilings in one run as looking for them costs.
const TILE_ELEMENTS: u64 = 1 << 16;

/// Are tilings of a batch looked for before its first run? Others wait for its second one, except where all is planned.
fn tiles_at_first(settings: &Settings, batch: &BatchRef<'_>) -> bool {
    let work = Work::of(batch);
    settings.planning == PlanningMode::Full
        || settings.jit == Jit::On
        || matches!(settings.time_tiles, TimeTiles::Kernels(_))
        || work.elements >= work.operations.saturating_mul(TILE_ELEMENTS)
}

/// Runs a planned block; instructions that fail alone go to the report.
fn run_planned(
    machine: &mut Machine,
    traced: &mut Traced,
    registry: &Registry,
    batch: &BatchRef<'_>,
    block: u32,
    plan: Result<&BlockPlan>,
    report: &mut Report,
) -> Result<()> {
    let running = plan.as_ref().ok().and_then(|plan| traced.block(batch, block, Some(plan)));
    let result = plan.and_then(|plan| machine.block(registry, batch, plan));
    traced.end(running);
    for (instr, error) in result.map_err(|error| place(error, batch, block))? {
        if !report.is_wanted() {
            return Err(place(error, batch, block));
        }
        report.fail(block, instr, &error);
    }
    Ok(())
}

/// The plan of a block, made if there is none.
fn plan_of<'a>(
    plan: &'a mut Option<BlockPlan>,
    batch: &BatchRef<'_>,
    block: u32,
    lowered: Option<Lowered>,
    machine: &mut Machine,
) -> Result<&'a BlockPlan> {
    match plan {
        Some(plan) => Ok(plan),
        None => Ok(plan.insert(BlockPlan::new(batch, block, lowered, machine.primitives, &mut machine.tier1)?)),
    }
}

/// Names the block of an error, and its first operation if no other is named.
fn place(mut error: Error, batch: &BatchRef<'_>, block: u32) -> Error {
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

/// Starts the participants.
fn start(settings: &Settings, host: Host) -> Result<Workers> {
    let threads = settings.threads;
    let processors = settings.affinity.processors(threads);
    let mut workers = Workers::new(threads, move |thread| bind(&processors, thread))
        .map_err(|text| Error::new(status::INIT, format!("cannot start {threads} threads: {text}")))?;
    workers.set_between(move || host.progress());
    workers.set_trace(host);
    Ok(workers)
}

/// The batch with one block per instruction.
fn with_blocks(batch: &BatchRef<'_>) -> Batch {
    let mut whole = batch.to_owned();
    for index in 0..batch.instrs.len() as u32 {
        whole.push_block(&[index], &[]);
    }
    whole
}

//! The component: it plans blocks and sliding windows, has them run, retires them, and answers messages.

mod counters;
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
use crate::plan::PlanCache;
use crate::settings::{Jit, PlanningMode, Settings};
use bh_bytecode::planning::{self, Level, Work};
use bh_bytecode::{Batch, BatchRef, Opcode};
use bh_core::abi::{Capabilities, Prediction, capability, fork, kind, status};
use bh_core::component::SharedCalls;
use bh_core::config::Row;
use bh_core::keys;
use bh_core::{Child, Component, Error, Host, Registry, Report, Result, Ticket};
use machine::Machine;
use scalars::Scalars;
use std::sync::Arc;

/// The CPU engine.
pub struct Engine {
    host: Host,
    child: Option<Child>,
    registry: Option<Registry>,
    cache: PlanCache,
    machine: Machine,
    settings: Settings,
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
            settings,
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
        let registry = self.registry()?;
        let level = self.level(batch);
        let at_once = level == Level::Direct;
        if at_once && self.is_never_planned(batch) {
            return self.machine.run_at_once(&registry, batch, blocks, report).map(|()| Ticket::DONE);
        }
        let (plans, instrs, known) = self.cache.plans(batch);
        if at_once && !known {
            return self.machine.run_at_once(&registry, batch, blocks, report).map(|()| Ticket::DONE);
        }
        let batch = &BatchRef { instrs, ..*batch };
        let Machine { counters, primitives, tier1, .. } = &mut self.machine;
        if known { counters.plan_hits } else { counters.plan_misses }.add(1);
        let planned = plans.of(batch, blocks, level, &self.settings, (*primitives, tier1))?;
        self.machine.run_planned(&registry, batch, blocks, planned, report).map(|()| Ticket::DONE)
    }

    /// Follows the plans that `execute` would run; the registry counts the arrays that it would ask for.
    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        if batch.blocks.is_empty() && !batch.instrs.is_empty() {
            let whole = with_blocks(batch);
            return self.predict(&whole.as_ref(), &[]);
        }
        let registry = self.registry()?;
        let level = self.level(batch);
        let work_bytes = if level == Level::Direct && (self.is_never_planned(batch) || !self.cache.knows(batch)) {
            self.machine.predict_at_once(&registry, batch, blocks)?
        } else {
            let (plans, instrs, _) = self.cache.plans(batch);
            let batch = &BatchRef { instrs, ..*batch };
            let Machine { primitives, tier1, .. } = &mut self.machine;
            let planned = plans.of(batch, blocks, level, &self.settings, (*primitives, tier1))?;
            self.machine.predict_planned(&registry, batch, blocks, planned)?
        };
        Ok(Prediction { work_bytes: work_bytes as u64, ..Prediction::default() })
    }
}

impl Engine {
    fn registry(&self) -> Result<Registry> {
        self.registry.ok_or_else(|| Error::new(status::INIT, "the CPU engine has no array registry"))
    }

    /// Does a batch that asks for no planning run operation by operation, however often it comes?
    fn is_never_planned(&self, batch: &BatchRef<'_>) -> bool {
        batch.header.level != 0 || self.settings.planning == PlanningMode::Direct
    }

    /// How much planning a batch gets: what it asks for, unless the settings force a level. If `jit` is `on`,
    /// batches are planned in full from the first time on.
    fn level(&self, batch: &BatchRef<'_>) -> Level {
        let all = self.settings.jit == Jit::On;
        match self.settings.planning {
            PlanningMode::Direct => Level::Direct,
            PlanningMode::Full => Level::Full,
            PlanningMode::Auto if all => Level::Full,
            PlanningMode::Auto => planning::Planning::Auto.level_of(&batch.header, Work::of(batch), batch.header.seen),
        }
    }
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

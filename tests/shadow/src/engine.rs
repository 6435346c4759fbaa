//! The component: queues blocks with their data, and returns tickets.

use crate::heap::{Heap, Task, Work};
use crate::job::{Job, JobBase};
use crate::outside::Outside;
use crate::residency::Space;
use crate::script::{Script, keys};
use crate::slot::Slot;
use bh_bytecode::{Base, BatchRef, Opcode};
use bh_core::abi::{Capabilities, access, capability, kind, retire, status};
use bh_core::component::{Child, Component, Host, Registry, Report, SharedCalls, Ticket};
use bh_core::config::Row;
use bh_core::error::{Error, Result};
use bh_ve_interp::usage::block_usage;
use std::collections::HashMap;
use std::sync::Arc;

/// The engine.
pub struct Shadow {
    host: Host,
    child: Option<Child>,
    script: Script,
    space: Option<Space>,
    jobs: u64,
    last_ticket: u64,
    open: HashMap<u64, Open>,
    outside: Arc<Outside>,
}

/// The work behind a ticket, and the bases that it writes, which are poisoned if it is lost.
struct Open {
    work: Arc<Work>,
    written: Vec<(Base, Arc<Slot>)>,
}

// SAFETY: all state is in this value; the heap's thread ends with it.
unsafe impl Component for Shadow {
    const NAME: &'static str = "ve-shadow";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [Row] = keys::ALL;
    const SHARED: bool = true;

    fn create(host: Host, children: Vec<Child>) -> Result<Shadow> {
        let script = Script::new(&host)?;
        let child = children.into_iter().next();
        if child.is_none() && script.refuses() {
            return Err(Error::new(status::INIT, "ve-shadow refuses blocks ('refuse' > 0) but no engine follows it"));
        }
        let (open, outside) = (HashMap::new(), Arc::default());
        Ok(Shadow { host, child, script, space: None, jobs: 0, last_ticket: 0, open, outside })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn shared(&self) -> Option<Arc<dyn SharedCalls>> {
        Some(self.outside.clone())
    }

    fn capabilities(&mut self) -> Capabilities {
        let renames = if self.script.renames { capability::RENAMES } else { 0 };
        Capabilities {
            flags: capability::RETIRES_BLOCKS
                | capability::ASYNCHRONOUS
                | capability::NO_FORK
                | capability::CONCURRENT_DATA
                | renames,
            parallelism: 1,
            bandwidth: 1e8,
            launch_seconds: 2e-5,
            memory_bytes: self.script.memory_bytes as u64,
            ..Capabilities::default()
        }
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        let heap = Heap::start(&self.host)?;
        let space = Space::new(registry, heap, self.script.memory_bytes);
        self.outside.bind(space.place.clone());
        self.space = Some(space);
        Ok(())
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let bytes: u64 = block_usage(batch, block).iter().map(|used| batch.bases[used.base as usize].bytes()).sum();
        bytes <= self.script.memory_bytes as u64 && !self.script.is_refused(batch, block)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], _report: &mut Report) -> Result<Ticket> {
        let Some(space) = &mut self.space else {
            return Err(Error::new(status::INIT, "ve-shadow has no data manager above it"));
        };
        let owned = Arc::new(batch.to_owned());
        let mut open = Open { work: Arc::default(), written: Vec::new() };
        for &block in blocks {
            self.jobs += 1;
            let (delay, failing) = (self.script.delay(self.jobs), self.script.failing_instr(batch, block));
            match stage(space, batch, block) {
                Ok(bases) => {
                    let to = |found: &JobBase| Some((batch.bases[found.base as usize], found.to.clone()?));
                    open.written.extend(bases.iter().filter_map(to));
                    open.work.open();
                    let (job_batch, ticket) = (owned.clone(), open.work.clone());
                    space.place.heap.push(Task::Block(Job { batch: job_batch, block, bases, delay, failing, ticket }));
                    if let Err(error) = carry_out_renames(&space.place.registry, batch, block) {
                        open.work.fail(&error);
                    }
                }
                Err(error) => {
                    open.work.fail(&error);
                    for used in block_usage(batch, block).iter().filter(|used| used.writes) {
                        space.place.registry.poison(&batch.bases[used.base as usize], &error);
                    }
                }
            }
            // The job's slots keep its data, so bases can be dropped immediately; a later drop could hit data written
            // by other engines. SYNC only requests a transfer.
            manage_data(&space.place.registry, batch, block)?;
        }
        self.last_ticket += 1;
        self.open.insert(self.last_ticket, open);
        space.place.heap.counters.most_tickets.raise(self.open.len() as u64);
        Ok(Ticket(self.last_ticket))
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        let (Some(space), Some(open)) = (&self.space, self.open.remove(&ticket.0)) else {
            return Err(Error::new(status::HANDLE, format!("there is no ticket {}", ticket.0)));
        };
        let outcome = open.work.wait();
        for (base, slot) in open.written.iter().filter(|_| outcome.is_err()) {
            space.place.poison_if_current(base, slot);
        }
        outcome
    }

    fn poll(&mut self, ticket: Ticket) -> Result<bool> {
        Ok(self.open.get(&ticket.0).is_none_or(|open| open.work.is_done()))
    }

    fn extmethod(&mut self, _name: &str, _opcode: Opcode) -> Result<bool> {
        Ok(false)
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        if let Some(space) = &self.space {
            space.place.heap.stop();
        }
    }
}

/// Brings a block's inputs to the heap and claims its outputs. Inputs come first: a failure must not leave some outputs
/// claimed.
fn stage(space: &mut Space, batch: &BatchRef<'_>, block: u32) -> Result<Vec<JobBase>> {
    let uses = block_usage(batch, block);
    let renames = batch.renames(&batch.blocks[block as usize]);
    let bases: Vec<&Base> = uses.iter().map(|used| &batch.bases[used.base as usize]).collect();
    space.make_room(&bases)?;
    let mut staged: Vec<JobBase> = Vec::with_capacity(uses.len());
    for (used, base) in uses.iter().zip(&bases) {
        let from = if used.needs_old { Some(space.place.fetch(base)?) } else { None };
        staged.push(JobBase { base: used.base, from, to: None });
    }
    for ((used, base), found) in uses.iter().zip(&bases).zip(&mut staged).filter(|((used, _), _)| used.writes) {
        // A renamed base keeps its old version for others that use it.
        let renamed = renames.iter().any(|rename| rename.base == used.base);
        found.to = Some(match found.from.as_ref().filter(|_| !renamed) {
            Some(slot) => space.place.claim(base, slot)?,
            None => space.place.replace(base, used.access() & access::DISCARD != 0)?,
        });
    }
    for found in &staged {
        found.from.iter().for_each(|slot| slot.lock().readers += 1);
        found.to.iter().for_each(|slot| slot.lock().writers += 1);
    }
    Ok(staged)
}

/// The program's old version of a renamed base becomes an alias of the new one until it needs its own memory.
fn carry_out_renames(registry: &Registry, batch: &BatchRef<'_>, block: u32) -> Result<()> {
    for rename in batch.renames(&batch.blocks[block as usize]) {
        let Some(alias) = batch.bases.get(rename.alias as usize) else { continue };
        registry.alias(alias, &batch.bases[rename.base as usize], &batch.view(rename.alias_view))?;
    }
    Ok(())
}

/// SYNC, FREE and DISCARD of a block, base by base.
fn manage_data(registry: &Registry, batch: &BatchRef<'_>, block: u32) -> Result<()> {
    for &instr in batch.block_instrs(&batch.blocks[block as usize]) {
        let instr = &batch.instrs[instr as usize];
        let action = match instr.opcode {
            Opcode::Sync => retire::SYNC,
            Opcode::Free => retire::FREE,
            Opcode::Discard => retire::DISCARD,
            _ => continue,
        };
        if let Some(base) = instr.operands()[0].as_view().and_then(|view| batch.base_of(view)) {
            registry.retire(base, action)?;
        }
    }
    Ok(())
}

//! The component: brings arrays to the private heap, queues blocks, and hands out tickets.

use crate::queue::{Job, JobBase, Queue, Work};
use crate::script::{KEYS, Script};
use crate::slot::{OPERATIONS, Slot};
use bh_bytecode::{Base, Batch, BatchRef, Opcode};
use bh_core::abi::{Capabilities, access, capability, kind, status};
use bh_core::component::{Child, Component, Host, Registry, Report, Ticket};
use bh_core::error::{Error, Result};
use bh_ve_interp::usage::{Use, block_usage};
use std::collections::HashMap;
use std::sync::Arc;

/// What it has once it knows its data manager.
struct Bound {
    registry: Registry,
    space: u32,
    queue: Queue,
}

/// The engine.
pub struct Shadow {
    child: Option<Child>,
    script: Script,
    bound: Option<Bound>,
    jobs: u64,
    open: HashMap<u64, Open>,
}

/// What is to be done when a ticket's work has ended.
#[derive(Default)]
struct Open {
    /// What its jobs write, to be poisoned if they fail.
    written: Vec<(Base, Arc<Slot>)>,
    /// Its SYNC instructions, each batch with one block of them. Carried out earlier, they could meet a job in the queue
    /// and make the queue wait for itself.
    syncs: Vec<Batch>,
}

impl Component for Shadow {
    const NAME: &'static str = "ve-shadow";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [&'static str] = KEYS;

    fn create(host: Host, children: Vec<Child>) -> Result<Shadow> {
        let script = Script::new(&host)?;
        let child = children.into_iter().next();
        if child.is_none() && script.refuses() {
            return Err(Error::new(status::INIT, "ve-shadow refuses blocks ('refuse' > 0) but no engine follows it"));
        }
        Ok(Shadow { child, script, bound: None, jobs: 0, open: HashMap::new() })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn capabilities(&mut self) -> Capabilities {
        Capabilities {
            flags: capability::RETIRES_BLOCKS | capability::ASYNCHRONOUS | capability::NO_FORK,
            parallelism: 1,
            bandwidth: 1e8,
            launch_seconds: 2e-5,
            ..Capabilities::default()
        }
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        let space = registry.new_space();
        self.bound = Some(Bound { registry, space, queue: Queue::start()? });
        Ok(())
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        !self.script.is_refused(batch, block)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], _report: &mut Report) -> Result<Ticket> {
        let Some(bound) = &mut self.bound else {
            return Err(Error::new(status::INIT, "ve-shadow has no data manager above it"));
        };
        let owned = Arc::new(batch.to_owned());
        let (number, work) = bound.queue.ticket();
        let mut open = Open::default();
        for &block in blocks {
            self.jobs += 1;
            let (syncs, drops) = data_management(batch, block);
            let mut job = Job {
                batch: owned.clone(),
                block,
                bases: Vec::new(),
                delay: self.script.delay(self.jobs),
                failing: self.script.failing_instr(batch, block),
                ticket: work.clone(),
            };
            let uses = block_usage(batch, block);
            match bound.stage(batch, &uses) {
                Ok(bases) => {
                    let slots = bases.iter().filter(|found| found.writes);
                    open.written.extend(slots.map(|found| (batch.bases[found.base as usize], found.slot.clone())));
                    job.bases = bases;
                    bound.queue.push(job);
                }
                Err(error) => bound.lose(batch, &uses, &work, &error),
            }
            // What the job still needs is on the private heap, so data can be dropped at once; doing it when the job is
            // done could hit what other engines have written since.
            open.syncs.extend(syncs);
            if let Some(drops) = drops {
                bound.registry.block_done(&drops.as_ref(), 0);
            }
        }
        self.open.insert(number, open);
        Ok(Ticket(number))
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        let Some(bound) = &mut self.bound else { return Ok(()) };
        let outcome = bound.queue.wait(ticket.0);
        let open = self.open.remove(&ticket.0).unwrap_or_default();
        if outcome.is_err() {
            for (base, slot) in &open.written {
                bound.poison_if_current(base, slot);
            }
        }
        for sync in &open.syncs {
            bound.registry.block_done(&sync.as_ref(), 0);
        }
        outcome
    }

    fn extmethod(&mut self, _name: &str, _opcode: Opcode) -> Result<bool> {
        Ok(false)
    }
}

impl Bound {
    /// Brings what a block uses to the private heap and claims what it writes there.
    fn stage(&self, batch: &BatchRef<'_>, uses: &[Use]) -> Result<Vec<JobBase>> {
        let mut staged: Vec<JobBase> = Vec::with_capacity(uses.len());
        let mut claimed: Vec<Arc<Slot>> = Vec::new();
        // All inputs come first: a failure must not leave half of the outputs claimed.
        for wanted in uses.iter().filter(|wanted| wanted.needs_old) {
            let base = &batch.bases[wanted.base as usize];
            staged.push(JobBase { base: wanted.base, slot: self.fetch(base)?, writes: wanted.writes });
        }
        for wanted in uses.iter().filter(|wanted| wanted.writes) {
            let base = &batch.bases[wanted.base as usize];
            let found = staged.iter().position(|found| found.base == wanted.base);
            let place = found.unwrap_or_else(|| {
                let slot = Slot::new(vec![0; base.bytes() as usize]);
                staged.push(JobBase { base: wanted.base, slot, writes: true });
                staged.len() - 1
            });
            let slot = staged[place].slot.clone();
            slot.lock().pending += 1;
            claimed.push(slot.clone());
            if let Err(error) = self.attach_exclusively(base, slot) {
                claimed.iter().for_each(|slot| slot.settle(Err(error.clone())));
                return Err(error);
            }
        }
        Ok(staged)
    }

    /// The base's slot on the private heap, uploaded if need be.
    fn fetch(&self, base: &Base) -> Result<Arc<Slot>> {
        let loan = self.registry.acquire_in(base, self.space, access::READ)?;
        if !loan.data().is_null() {
            // SAFETY: handles in this space come from `attach` below, and the loan keeps this one.
            return Ok(unsafe { Slot::from_handle(loan.data()) });
        }
        let loan = self.registry.acquire(base, access::READ)?;
        // SAFETY: the loan holds the whole base until it is released.
        let bytes = unsafe { std::slice::from_raw_parts(loan.data().cast::<u8>(), base.bytes() as usize) }.to_vec();
        drop(loan);
        let slot = Slot::new(bytes);
        self.attach(base, slot.clone(), false)?;
        Ok(slot)
    }

    /// Makes a slot the only valid copy of its base.
    fn attach_exclusively(&self, base: &Base, slot: Arc<Slot>) -> Result<()> {
        let loan = self.registry.acquire_in(base, self.space, access::WRITE | access::DISCARD)?;
        let attached = std::ptr::eq(loan.data().cast_const().cast(), Arc::as_ptr(&slot));
        drop(loan);
        // For a slot that is attached, the acquisition has made the other copies stale.
        if attached { Ok(()) } else { self.attach(base, slot, true) }
    }

    fn attach(&self, base: &Base, slot: Arc<Slot>, exclusive: bool) -> Result<()> {
        let handle = slot.into_handle();
        // SAFETY: the handle holds a reference until the registry calls `drop`.
        let outcome = unsafe { self.registry.attach(base, self.space, handle, exclusive, &OPERATIONS) };
        if outcome.is_err() {
            // SAFETY: the registry did not take the reference.
            drop(unsafe { Arc::from_raw(handle.cast_const().cast::<Slot>()) });
        }
        outcome
    }

    /// A block that cannot start: its outputs are lost, what needs no input of it goes on.
    fn lose(&self, batch: &BatchRef<'_>, uses: &[Use], work: &Arc<Work>, error: &Error) {
        work.fail(error);
        for lost in uses.iter().filter(|found| found.writes) {
            self.registry.poison(&batch.bases[lost.base as usize], error);
        }
    }

    /// Poisons a base if this slot, whose job failed, still is its current copy.
    fn poison_if_current(&self, base: &Base, slot: &Arc<Slot>) {
        let Some(error) = slot.lock().error.clone() else { return };
        let Ok(loan) = self.registry.acquire_in(base, self.space, access::READ) else { return };
        let current = std::ptr::eq(loan.data().cast_const().cast(), Arc::as_ptr(slot));
        drop(loan);
        if current {
            self.registry.poison(base, &error);
        }
    }
}

/// The SYNC instructions of a block and those that drop data, each as the only block of a batch; `None` if there are none.
fn data_management(batch: &BatchRef<'_>, block: u32) -> (Option<Batch>, Option<Batch>) {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    let part = |wanted: fn(Opcode) -> bool| {
        let chosen: Vec<u32> =
            instrs.iter().copied().filter(|&instr| wanted(batch.instrs[instr as usize].opcode)).collect();
        (!chosen.is_empty()).then(|| {
            let mut part = BatchRef { blocks: &[], block_instrs: &[], contracted: &[], ..*batch }.to_owned();
            part.push_block(&chosen, &[]);
            part
        })
    };
    (part(|opcode| opcode == Opcode::Sync), part(|opcode| matches!(opcode, Opcode::Free | Opcode::Discard)))
}

//! A data manager between the real one and an engine. It forwards all calls and observes the engine's use of them.

use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::{
    self, AttachmentOps, Capabilities, HostMemory, RegistryTable, Residency, access, capability, kind, retire, status,
};
use bh_core::component::{
    Child, Component, Fresh, Host, Loan, Registry, RegistryService, Report, Ticket, registry_table,
};
use bh_core::error::{Error, Result};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

bh_core::export_component!(Witness);

/// How often a question is repeated.
const QUESTIONS: usize = 12;

/// The witness.
pub struct Witness {
    child: Child,
    service: Option<Box<Service>>,
}

/// The registry that the engine sees.
struct Service {
    watch: Watch,
    table: Option<RegistryTable>,
}

// SAFETY: the table points to the watch in the same box, which may be used from any thread.
unsafe impl Send for Service {}

/// The registry above, and observations of its use.
struct Watch {
    above: Registry,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    last: u64,
    loans: HashMap<u64, Loan>,
    fresh: HashMap<u64, Fresh>,
    /// The data management of the running batch, and how often each action was performed.
    managed: Vec<(Base, u32, u32)>,
    /// Bases with aliases.
    aliased: Vec<u64>,
    faults: Vec<String>,
}

impl Seen {
    fn fault(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.faults.contains(&text) {
            self.faults.push(text);
        }
    }

    /// Records data management.
    fn retired(&mut self, base: &Base, action: u32) {
        let found = self.managed.iter_mut().filter(|(other, wanted, _)| (other.id, *wanted) == (base.id, action));
        let Some(place) = found.min_by_key(|(.., count)| *count) else {
            return self.fault(format!("retires base {} (action {action}), which the batch does not ask for", base.id));
        };
        place.2 += 1;
        if place.2 > 1 {
            self.fault("retires the data management of a block twice");
        }
    }
}

// SAFETY: all state is in this value and its watch, which the engine uses only while this value lives.
unsafe impl Component for Witness {
    const NAME: &'static str = "witness";
    const KIND: u32 = kind::DATA_MANAGER;
    const KEYS: &'static [bh_core::config::Row] = &[];
    const SHARED: bool = false;

    fn create(_: Host, children: Vec<Child>) -> Result<Witness> {
        let child = children.into_iter().next().ok_or_else(|| Error::new(status::INIT, "there is no engine"))?;
        Ok(Witness { child, service: None })
    }

    fn child(&mut self) -> Option<&mut Child> {
        Some(&mut self.child)
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        let watch = Watch { above: registry, seen: Mutex::default() };
        let service = self.service.insert(Box::new(Service { watch, table: None }));
        // SAFETY: the box keeps the watch at its address while the component below lives.
        let table = service.table.insert(unsafe { registry_table(&raw const service.watch) });
        // SAFETY: the box keeps the table at its address while the component below lives.
        self.child.bind(unsafe { Registry::new(table) })
    }

    fn capabilities(&mut self) -> Capabilities {
        let below = self.child.capabilities();
        Capabilities { flags: below.flags & !capability::ASYNCHRONOUS, ..below }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        let Some(service) = &self.service else { return self.child.execute(batch, blocks, report) };
        let watch = &service.watch;
        for &block in blocks {
            let mut answers = (0..QUESTIONS).map(|_| self.child.supports(batch, block));
            if answers.next().is_some_and(|first| answers.any(|other| other != first)) {
                watch.seen().fault("answers 'supports' in different ways for the same block");
            }
        }
        {
            let mut seen = watch.seen();
            seen.managed = blocks.iter().flat_map(|&block| managed(batch, block)).collect();
            seen.aliased.clear();
        }
        let outcome = self.child.execute(batch, blocks, report).and_then(|ticket| self.child.wait(ticket));
        let mut seen = watch.seen();
        if !seen.loans.is_empty() {
            let text = format!("keeps {} loans when its work is done", seen.loans.len());
            seen.fault(text);
            seen.loans.clear();
        }
        if !seen.fresh.is_empty() {
            seen.fault("keeps second buffers of renames when its work is done");
            seen.fresh.clear();
        }
        if seen.managed.iter().any(|(.., count)| *count == 0) {
            seen.fault("does not call block_done, or retire, for what it has run");
        }
        let renames = blocks.iter().flat_map(|&block| batch.renames(&batch.blocks[block as usize]));
        for rename in renames.filter(|_| outcome.is_ok()) {
            let alias = batch.bases.get(rename.alias as usize);
            if alias.is_some_and(|alias| !seen.aliased.contains(&alias.id)) {
                seen.fault("takes blocks with renames, but does not carry their aliases out");
            }
        }
        outcome.map(|()| Ticket::DONE)
    }

    /// Answers `witness` with the violations, one line each.
    fn message(&mut self, text: &str) -> Result<String> {
        match &self.service {
            Some(service) if text == "witness" => Ok(std::mem::take(&mut service.watch.seen().faults).join("\n")),
            _ => self.child.message(text),
        }
    }
}

/// The data management of a block.
fn managed(batch: &BatchRef<'_>, block: u32) -> Vec<(Base, u32, u32)> {
    let Some(block) = batch.blocks.get(block as usize) else { return Vec::new() };
    let instrs = batch.block_instrs(block).iter().map(|&instr| &batch.instrs[instr as usize]);
    instrs
        .filter_map(|instr| {
            let action = match instr.opcode {
                Opcode::Sync => retire::SYNC,
                Opcode::Free => retire::FREE,
                Opcode::Discard => retire::DISCARD,
                _ => return None,
            };
            Some((*batch.base_of(instr.operands().first()?.as_view()?)?, action, 0))
        })
        .collect()
}

impl Watch {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegistryService for Watch {
    fn new_space(&self) -> u32 {
        self.above.new_space()
    }

    fn acquire(&self, base: &Base, space: u32, mode: u32) -> Result<abi::Loan> {
        let known = access::READ | access::WRITE | access::DISCARD | access::STABLE;
        if mode == 0 || mode & !known != 0 {
            self.seen().fault(format!("acquires with the access bits {mode:#x}, which do not exist"));
        }
        let loan = self.above.acquire_in(base, space, mode)?;
        let mut seen = self.seen();
        seen.last += 1;
        // A loan without a buffer need not be released.
        let token = if loan.data().is_null() && loan.bytes() == 0 { 0 } else { seen.last };
        let lent = abi::Loan { data: loan.data(), bytes: loan.bytes(), token };
        if token != 0 {
            seen.loans.insert(token, loan);
        }
        Ok(lent)
    }

    fn release(&self, token: u64) {
        let mut seen = self.seen();
        let ended = seen.loans.remove(&token);
        if ended.is_none() && token != 0 {
            seen.fault("releases a loan that has ended or never was");
        }
        drop(seen);
        drop(ended);
    }

    fn fresh(&self, base: &Base) -> Result<abi::Fresh> {
        let fresh = self.above.fresh(base)?;
        let mut seen = self.seen();
        seen.last += 1;
        let (token, lent) = (seen.last, (fresh.data(), fresh.bytes()));
        seen.fresh.insert(token, fresh);
        Ok(abi::Fresh { data: lent.0, bytes: lent.1, token })
    }

    fn drop_fresh(&self, token: u64) {
        let mut seen = self.seen();
        if seen.fresh.remove(&token).is_none() {
            seen.fault("gives up a second buffer that has ended or never was");
        }
    }

    fn commit_rename(&self, base: &Base, token: u64) -> Result<()> {
        let fresh = self.seen().fresh.remove(&token);
        match fresh {
            Some(fresh) => self.above.commit_rename(base, fresh),
            None => {
                self.seen().fault("commits a second buffer that has ended or never was");
                Err(Error::new(status::HANDLE, "there is no such second buffer"))
            }
        }
    }

    fn alias(&self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        self.seen().aliased.push(alias.id);
        self.above.alias(alias, base, view)
    }

    unsafe fn attach(
        &self,
        base: &Base,
        space: u32,
        handle: *mut c_void,
        exclusive: bool,
        operations: AttachmentOps,
    ) -> Result<()> {
        // SAFETY: the registry above has the same requirements.
        unsafe { self.above.attach(base, space, handle, exclusive, &operations) }
    }

    fn poison(&self, base: &Base, error: Error) {
        self.above.poison(base, &error);
    }

    fn block_done(&self, batch: &BatchRef<'_>, block: u32) {
        if block as usize >= batch.blocks.len() {
            return self.seen().fault(format!("calls block_done for block {block} of {}", batch.blocks.len()));
        }
        {
            let mut seen = self.seen();
            managed(batch, block).iter().for_each(|(base, action, _)| seen.retired(base, *action));
        }
        self.above.block_done(batch, block);
    }

    fn retire(&self, base: &Base, action: u32) -> Result<()> {
        self.seen().retired(base, action);
        self.above.retire(base, action)
    }

    fn detach(&self, base: &Base, space: u32) -> Result<()> {
        self.above.detach(base, space)
    }

    fn residency(&self, base: &Base) -> Residency {
        self.above.residency(base)
    }

    fn read(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        self.above.read(base, view, memory)
    }

    fn write(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        self.above.write(base, view, memory)
    }
}

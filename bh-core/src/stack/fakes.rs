//! Components with scripted behaviour, for the tests of the stack.

use crate::abi::{self, Capabilities, RegistryTable, capability, kind, status};
use crate::component::{RegistryService, enter_block, registry_table};
use crate::config::{Key, Row};
use crate::export::LazyTable;
use crate::{Child, Component, Error, Host, Registry, Report, Result, Ticket};
use bh_bytecode::{Base, Batch, BatchRef, Opcode, View};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ptr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

pub(super) static NODE: LazyTable = LazyTable::new();
pub(super) static ENGINE: LazyTable = LazyTable::new();
pub(super) static FILTER: LazyTable = LazyTable::new();
pub(super) static STRANGE_FILTER: LazyTable = LazyTable::new();

/// The calls that the fake registry received.
#[derive(Default)]
struct Book {
    poisoned: BTreeMap<u64, Error>,
    log: String,
}

/// A data manager without data: it records poison and retired blocks.
pub(super) struct FakeNode {
    child: Child,
    /// In an `Rc`, because a box may not be moved while the components below hold its address.
    _registry: Rc<RegistryTable>,
    book: Arc<Mutex<Book>>,
}

// SAFETY: the registry's context points to the locked book, which stays where it is; no other has a share of the registry.
unsafe impl Send for FakeNode {}

/// The names of a block's instructions.
fn names(batch: &BatchRef<'_>, block: u32) -> String {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    let names: Vec<&str> = instrs.iter().map(|&instr| batch.instrs[instr as usize].opcode.name()).collect();
    names.join(" ")
}

impl RegistryService for Mutex<Book> {
    fn acquire(&self, base: &Base, _: u32, _: u32) -> Result<abi::Loan> {
        match self.lock().unwrap().poisoned.get(&base.id) {
            Some(error) => Err(error.clone()),
            None => Ok(abi::Loan { data: ptr::null_mut(), bytes: 0, token: 0 }),
        }
    }

    fn release(&self, _: u64) {}

    fn poison(&self, base: &Base, error: Error) {
        self.lock().unwrap().poisoned.insert(base.id, error);
    }

    fn block_done(&self, batch: &BatchRef<'_>, block: u32) {
        let _ = write!(self.lock().unwrap().log, "done[{}] ", names(batch, block));
    }
}

// SAFETY: all state is in the value, and ends with it.
unsafe impl Component for FakeNode {
    const NAME: &'static str = "fake-node";
    const KIND: u32 = kind::DATA_MANAGER;
    const KEYS: &'static [Row] = &[];

    fn create(_: Host, children: Vec<Child>) -> Result<FakeNode> {
        let mut children = children.into_iter();
        let mut child = children.next().ok_or_else(|| Error::new(status::INIT, "no engine"))?;
        let book = Arc::new(Mutex::new(Book::default()));
        // SAFETY: the book has a fixed address, and lives as long as the node.
        let registry = Rc::new(unsafe { registry_table::<Mutex<Book>>(&*book) });
        // SAFETY: the node outlives the engines below it.
        child.bind(unsafe { Registry::new(&*registry) })?;
        for mut sibling in children {
            // SAFETY: as above.
            sibling.bind(unsafe { Registry::new(&*registry) })?;
        }
        Ok(FakeNode { child, _registry: registry, book })
    }

    fn child(&mut self) -> Option<&mut Child> {
        Some(&mut self.child)
    }

    fn map(&mut self, base: &Base, _: Option<&View>, _: u32) -> Result<*mut u8> {
        match self.book.lock().unwrap().poisoned.get(&base.id) {
            Some(error) => Err(error.clone()),
            None => Ok(ptr::without_provenance_mut(64)),
        }
    }

    fn message(&mut self, text: &str) -> Result<String> {
        if text == "registry" {
            return Ok(self.book.lock().unwrap().log.trim_end().to_owned());
        }
        self.child.message(text)
    }
}

crate::keys! {
    mod engine_keys = "fake-engine" {
        REFUSE "refuse": String = "[]", "Operations that it refuses.";
        LARGEST "largest": usize = "1000000", "The most instructions of a block that it takes.";
        FAIL "fail": String = "[]", "Operations that it fails at.";
        PANIC "panic": String = "[]", "Operations that it panics at.";
        UNNAMED "unnamed": String = "\"\"", "If set, it does not say which block failed.";
        INIT "init": String = "\"\"", "How making it fails: fail, panic or largest.";
        TICKET "ticket": u64 = "0", "The ticket of its work.";
    }
}

crate::keys! {
    mod filter_keys = "fake-filter" {
        MODE "mode": String = "\"\"", "What it does to batches: panic, fail or spoil.";
    }
}

/// An engine that computes nothing. Its keys name the operations that it refuses, fails at, or panics at.
pub(super) struct FakeEngine {
    host: Host,
    registry: Option<Registry>,
    log: String,
}

impl FakeEngine {
    fn listed(&self, key: &Key<String>, name: &str) -> bool {
        self.host.config(key).is_some_and(|list| list.split(',').any(|entry| entry == name))
    }
}

// SAFETY: all state is in the value, and ends with it.
unsafe impl Component for FakeEngine {
    const NAME: &'static str = "fake-engine";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [Row] = engine_keys::ALL;

    fn create(host: Host, _: Vec<Child>) -> Result<FakeEngine> {
        match host.config(&engine_keys::INIT).as_deref() {
            Some("fail") => Err(Error::new(status::DEVICE, "no device found")),
            Some("panic") => panic!("no luck"),
            Some("largest") => Err(Error::new(status::CONFIG, "config key 'largest': 3 is not to its taste")),
            _ => Ok(FakeEngine { host, registry: None, log: String::new() }),
        }
    }

    fn child(&mut self) -> Option<&mut Child> {
        None
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        self.registry = Some(registry);
        Ok(())
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let instrs = batch.block_instrs(&batch.blocks[block as usize]);
        let largest = self.host.setting(&engine_keys::LARGEST).unwrap();
        let refused = |&instr: &u32| self.listed(&engine_keys::REFUSE, batch.instrs[instr as usize].opcode.name());
        instrs.len() <= largest && !instrs.iter().any(refused)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], _report: &mut Report) -> Result<Ticket> {
        for &block in blocks {
            if self.host.config(&engine_keys::UNNAMED).is_none() {
                enter_block(block);
            }
            let contracted = batch.contracted(&batch.blocks[block as usize]).len();
            let mark = if contracted > 0 { format!("-{contracted}") } else { String::new() };
            let _ = write!(self.log, "[{}{mark}] ", names(batch, block));
            for &instr in batch.block_instrs(&batch.blocks[block as usize]) {
                let instruction = &batch.instrs[instr as usize];
                let name = instruction.opcode.name();
                if instruction.opcode.is_system() {
                    continue;
                }
                for view in instruction.inputs().iter().filter_map(|operand| operand.as_view()) {
                    if let (Some(registry), Some(base)) = (self.registry, batch.base_of(view)) {
                        registry.acquire(base, crate::abi::access::READ).map_err(|error| error.in_block(block))?;
                    }
                }
                assert!(!self.listed(&engine_keys::PANIC, name), "cannot stand {name}");
                if self.listed(&engine_keys::FAIL, name) {
                    let mut error = Error::new(status::EXECUTION, format!("{name} failed"));
                    error.instr = Some(instr);
                    return Err(error);
                }
            }
        }
        Ok(Ticket(self.host.setting(&engine_keys::TICKET)?))
    }

    fn capabilities(&mut self) -> Capabilities {
        let flags = match self.host.config(&engine_keys::TICKET).as_deref() {
            None => 0,
            Some("7" | "11") => capability::ASYNCHRONOUS | capability::RETIRES_BLOCKS,
            Some(_) => capability::ASYNCHRONOUS,
        };
        Capabilities { flags, ..Capabilities::default() }
    }

    /// Tickets 9 and 11 are of work that failed, the latter in its second instruction.
    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        let _ = write!(self.log, "wait{} ", ticket.0);
        let lost = Error::new(status::DEVICE, "lost the device");
        match ticket.0 {
            9 => Err(lost),
            11 => Err(Error { instr: Some(1), ..lost }),
            _ => Ok(()),
        }
    }

    fn extmethod(&mut self, name: &str, _: Opcode) -> Result<bool> {
        Ok(self.listed(&engine_keys::FAIL, name))
    }

    fn message(&mut self, text: &str) -> Result<String> {
        if text == "device count" && self.host.config(&engine_keys::INIT).as_deref() == Some("absent") {
            return Ok("0".into());
        }
        Ok(if text == "engine" && !self.log.is_empty() { std::mem::take(&mut self.log) } else { String::new() })
    }
}

/// A filter that panics, fails, or spoils the batch on demand.
pub(super) struct FakeFilter {
    child: Child,
    mode: String,
}

// SAFETY: all state is in the value, and ends with it.
unsafe impl Component for FakeFilter {
    const NAME: &'static str = "fake-filter";
    const KIND: u32 = kind::FILTER;
    const KEYS: &'static [Row] = filter_keys::ALL;

    fn create(host: Host, children: Vec<Child>) -> Result<FakeFilter> {
        let child = children.into_iter().next().ok_or_else(|| Error::new(status::INIT, "no child"))?;
        Ok(FakeFilter { child, mode: host.setting(&filter_keys::MODE)? })
    }

    fn child(&mut self) -> Option<&mut Child> {
        Some(&mut self.child)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        match self.mode.as_str() {
            "panic" => panic!("index out of luck"),
            "fail" => Err(Error::new(status::FILE, "no patience")),
            "spoil" => {
                let mut batch: Batch = batch.to_owned();
                batch.views[0].start = 1000;
                self.child.execute(&batch.as_ref(), blocks, report)
            }
            _ => self.child.execute(batch, blocks, report),
        }
    }
}

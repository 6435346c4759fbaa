//! A stack made of the reference interpreter, which notes what it is asked to do.

use super::fake_immediate::FakeImmediate;
use crate::{Backend, Data, SharedData, lock};
use bh_bytecode::interp::{self, Memory};
use bh_bytecode::{Base, Batch, BatchRef, Opcode, View, base_flags, validate};
use bh_core::abi::{Adoption, Capabilities, ReleaseFn, access, adopt, status};
use bh_core::component::{SharedCalls, Ticket};
use bh_core::error::{Error, Result};
use bh_core::memory::MemorySettings;
use bh_core::services::Services;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;

/// A function that runs while a batch waits.
type Between = dyn Fn() + Send + Sync;

/// A door that batches wait at.
#[derive(Default)]
pub(crate) struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
    /// How many have come to it.
    pub(crate) reached: AtomicU64,
}

impl Gate {
    pub(crate) fn set_closed(&self, closed: bool) {
        *lock(&self.closed) = closed;
        self.opened.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        *lock(&self.closed)
    }

    /// Waits, and calls `between` meanwhile, if there is one.
    fn pass(&self, between: Option<&Between>) {
        if let Some(between) = between {
            self.reached.fetch_add(1, Ordering::SeqCst);
            while self.is_closed() {
                between();
                std::thread::yield_now();
            }
            return;
        }
        let mut closed = lock(&self.closed);
        self.reached.fetch_add(1, Ordering::SeqCst);
        while *closed {
            closed = self.opened.wait(closed).unwrap();
        }
    }

    /// Returns once `count` have come.
    pub(crate) fn await_arrivals(&self, count: u64) {
        while self.reached.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
    }
}

/// The calls that the stack received, shared with the test.
#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) batches: Arc<Mutex<Vec<Batch>>>,
    pub(crate) threads: Arc<Mutex<Vec<ThreadId>>>,
    pub(crate) flags: u64,
    /// Every ticket is left open until it is waited for.
    pub(crate) tickets: bool,
    /// Data calls may come while a batch runs.
    pub(crate) shared: bool,
    /// Operations on little data are carried out at once.
    pub(crate) immediate: bool,
    /// Batches wait here before they run; with tickets, the work behind them.
    pub(crate) gate: Arc<Gate>,
    /// Memory is refused until a batch has run.
    pub(crate) short_of_memory: Arc<AtomicBool>,
    /// Bytes of a device's memory, if there is one.
    pub(crate) device: Option<u64>,
    /// The modes of all maps.
    pub(crate) maps: Arc<Mutex<Vec<u32>>>,
}

#[derive(Default)]
struct Store {
    memory: Memory,
    adopted: HashMap<u64, (usize, Option<ReleaseFn>, usize)>,
    poisoned: HashMap<u64, Error>,
    mapped: HashMap<u64, u32>,
}

/// The data, for calls from any thread.
#[derive(Clone)]
struct Access {
    log: Log,
    store: Arc<Mutex<Store>>,
}

pub(crate) struct Fake {
    log: Log,
    ids: Arc<AtomicU64>,
    access: Access,
    open: HashSet<u64>,
    between: Option<Box<Between>>,
}

impl Fake {
    pub(crate) fn new(log: Log) -> Fake {
        let access = Access { log: log.clone(), store: Arc::default() };
        Fake { log, ids: Arc::new(AtomicU64::new(1)), access, open: HashSet::new(), between: None }
    }
}

impl Store {
    /// Adopted memory to the interpreter's (`inwards`), or back.
    fn exchange(&mut self, inwards: bool) {
        for (&id, &(address, ..)) in &self.adopted {
            let Some(buffer) = self.memory.get_mut(id) else { continue };
            // SAFETY: the test adopted memory of the base's size.
            let user = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, buffer.len()) };
            if inwards { buffer.copy_from_slice(user) } else { user.copy_from_slice(buffer) }
        }
    }

    fn run(&mut self, batch: &BatchRef<'_>) -> Result<()> {
        self.exchange(true);
        let result = interp::execute(batch, &mut self.memory);
        self.exchange(false);
        for base in batch.bases.iter().filter(|base| base.has(base_flags::DIES)) {
            if let Some((address, Some(release), argument)) = self.adopted.remove(&base.id) {
                // SAFETY: as the adopting test asked for.
                unsafe { release(argument as *mut c_void, address as *mut c_void) };
            }
        }
        result.map_err(|error| {
            let error = Error::new(status::EXECUTION, error.message).at_instr(batch, error.instr as u32);
            self.poisoned.extend(batch.bases.iter().map(|base| (base.id, error.clone())));
            error
        })
    }
}

impl Backend for Fake {
    fn base_ids(&self) -> Arc<AtomicU64> {
        self.ids.clone()
    }

    fn capabilities(&mut self) -> Capabilities {
        Capabilities { flags: self.log.flags, ..Capabilities::default() }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        assert!(blocks.is_empty());
        lock(&self.log.batches).push(batch.to_owned());
        lock(&self.log.threads).push(std::thread::current().id());
        validate(batch).map_err(|error| Error::new(status::BATCH, error.to_string()))?;
        if !self.log.tickets {
            self.log.gate.pass(self.between.as_deref());
        }
        lock(&self.access.store).run(batch)?;
        self.log.short_of_memory.store(false, Ordering::SeqCst);
        if self.log.tickets {
            let ticket = lock(&self.log.batches).len() as u64;
            self.open.insert(ticket);
            return Ok(Ticket(ticket));
        }
        Ok(Ticket::DONE)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        assert!(self.open.remove(&ticket.0), "{ticket:?} is waited for twice, or was never given");
        self.log.gate.pass(None);
        Ok(())
    }

    fn poll(&mut self, ticket: Ticket) -> Option<bool> {
        assert!(self.open.contains(&ticket.0));
        Some(!self.log.gate.is_closed())
    }

    fn shared_data(&mut self) -> Option<Arc<dyn SharedData>> {
        if self.log.shared { Some(Arc::new(self.access.clone())) } else { None }
    }

    fn data_between(&mut self, between: Box<Between>) -> Option<Arc<dyn SharedData>> {
        if !self.log.shared {
            return None;
        }
        self.between = Some(between);
        Some(Arc::new(self.access.clone()))
    }

    fn immediate_calls(&mut self) -> Option<(Arc<dyn SharedCalls>, Arc<Services>)> {
        let memory = bh_core::memory::Memory::new(MemorySettings::default());
        let services = Services::new(memory, None, 0, false);
        self.log.immediate.then(|| (Arc::new(FakeImmediate) as Arc<dyn SharedCalls>, services))
    }

    fn extmethod(&mut self, name: &str, _opcode: Opcode) -> Result<bool> {
        Ok(name.starts_with("known"))
    }

    fn message(&mut self, text: &str) -> Result<String> {
        match (text, self.log.device) {
            ("device memory", Some(bytes)) => Ok(bytes.to_string()),
            _ => Ok(format!("you said {text}")),
        }
    }
}

impl SharedData for Access {
    fn with(&self, work: &mut dyn FnMut(&mut dyn Data)) {
        work(&mut self.clone());
    }
}

impl Data for Access {
    fn map(&mut self, base: &Base, view: Option<&View>, mode: u32) -> Result<*mut u8> {
        assert!(view.is_none_or(|view| view.fits(base.len)));
        assert!(mode & (access::READ | access::WRITE) != 0, "a map that neither reads nor writes");
        lock(&self.log.maps).push(mode);
        let mut store = lock(&self.store);
        if let Some(error) = store.poisoned.get(&base.id)
            && mode & access::DISCARD == 0
        {
            return Err(error.clone());
        }
        let fresh = store.memory.get(base.id).is_none();
        if fresh && self.log.short_of_memory.load(Ordering::SeqCst) {
            return Err(Error::new(status::MEMORY, "no memory"));
        }
        *store.mapped.entry(base.id).or_default() += 1;
        if let Some(&(address, ..)) = store.adopted.get(&base.id) {
            return Ok(address as *mut u8);
        }
        if fresh {
            store.memory.insert(base.id, vec![0; base.bytes() as usize]);
        }
        Ok(store.memory.get_mut(base.id).map_or(std::ptr::null_mut(), |buffer| buffer.as_mut_ptr()))
    }

    fn unmap(&mut self, base: &Base) -> Result<()> {
        let mut store = lock(&self.store);
        let count = store.mapped.get_mut(&base.id).expect("mapped before");
        *count -= 1;
        Ok(())
    }

    unsafe fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()> {
        assert_eq!(base.has(base_flags::PINNED), adoption.mode() == adopt::SHARED);
        let (release, argument) = adoption.release();
        let mut store = lock(&self.store);
        store.memory.insert(base.id, vec![0; base.bytes() as usize]);
        store.adopted.insert(base.id, (adoption.data() as usize, release, argument as usize));
        Ok(())
    }

    fn pin(&mut self, _base: &Base, _pinned: bool) -> Result<()> {
        Ok(())
    }
}

impl Data for Fake {
    fn map(&mut self, base: &Base, view: Option<&View>, mode: u32) -> Result<*mut u8> {
        self.access.map(base, view, mode)
    }

    fn unmap(&mut self, base: &Base) -> Result<()> {
        self.access.unmap(base)
    }

    unsafe fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()> {
        // SAFETY: [`Data::adopt`] asks for the same.
        unsafe { self.access.adopt(base, adoption) }
    }

    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        self.access.pin(base, pinned)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        lock(&self.log.threads).push(std::thread::current().id());
    }
}

//! A stack made of the reference interpreter, which notes what it is asked to do.

use crate::{Backend, lock};
use bh_bytecode::interp::{self, Memory};
use bh_bytecode::{Base, Batch, BatchRef, Opcode, View, base_flags, validate};
use bh_core::abi::{Capabilities, ReleaseFn, access, status};
use bh_core::component::Ticket;
use bh_core::error::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

/// What the stack saw, shared with the test.
#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) batches: Arc<Mutex<Vec<Batch>>>,
    pub(crate) threads: Arc<Mutex<Vec<ThreadId>>>,
    pub(crate) flags: u64,
    /// Every ticket is left open until it is waited for.
    pub(crate) tickets: bool,
}

pub(crate) struct Fake {
    log: Log,
    ids: Arc<AtomicU64>,
    memory: Memory,
    adopted: HashMap<u64, (usize, Option<ReleaseFn>, usize)>,
    poisoned: HashMap<u64, Error>,
    open: HashSet<u64>,
    mapped: HashMap<u64, u32>,
}

impl Fake {
    pub(crate) fn new(log: Log) -> Fake {
        Fake {
            log,
            ids: Arc::new(AtomicU64::new(1)),
            memory: Memory::new(),
            adopted: HashMap::new(),
            poisoned: HashMap::new(),
            open: HashSet::new(),
            mapped: HashMap::new(),
        }
    }

    /// Adopted memory to the interpreter's (`inwards`), or back.
    fn exchange(&mut self, inwards: bool) {
        for (&id, &(address, ..)) in &self.adopted {
            let Some(buffer) = self.memory.get_mut(id) else { continue };
            // SAFETY: the test adopted memory of the base's size.
            let user = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, buffer.len()) };
            if inwards { buffer.copy_from_slice(user) } else { user.copy_from_slice(buffer) }
        }
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
        self.exchange(true);
        let result = interp::execute(batch, &mut self.memory);
        self.exchange(false);
        for base in batch.bases.iter().filter(|base| base.has(base_flags::DIES)) {
            if let Some((address, Some(release), argument)) = self.adopted.remove(&base.id) {
                // SAFETY: as the adopting test asked for.
                unsafe { release(argument as *mut c_void, address as *mut c_void) };
            }
        }
        if let Err(error) = result {
            let error = Error::new(status::EXECUTION, error.message).at_instr(batch, error.instr as u32);
            for base in batch.bases {
                self.poisoned.insert(base.id, error.clone());
            }
            return Err(error);
        }
        if self.log.tickets {
            let ticket = lock(&self.log.batches).len() as u64;
            self.open.insert(ticket);
            return Ok(Ticket(ticket));
        }
        Ok(Ticket::DONE)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        assert!(self.open.remove(&ticket.0), "{ticket:?} is waited for twice, or was never given");
        Ok(())
    }

    fn map(&mut self, base: &Base, view: Option<&View>, mode: u32) -> Result<*mut u8> {
        assert!(view.is_none_or(|view| view.fits(base.len)));
        if let Some(error) = self.poisoned.get(&base.id)
            && mode & access::DISCARD == 0
        {
            return Err(error.clone());
        }
        *self.mapped.entry(base.id).or_default() += 1;
        if let Some(&(address, ..)) = self.adopted.get(&base.id) {
            return Ok(address as *mut u8);
        }
        if self.memory.get(base.id).is_none() {
            self.memory.insert(base.id, vec![0; base.bytes() as usize]);
        }
        Ok(self.memory.get_mut(base.id).map_or(std::ptr::null_mut(), |buffer| buffer.as_mut_ptr()))
    }

    fn unmap(&mut self, base: &Base) -> Result<()> {
        let count = self.mapped.get_mut(&base.id).expect("mapped before");
        *count -= 1;
        Ok(())
    }

    unsafe fn adopt(
        &mut self,
        base: &Base,
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<()> {
        assert!(base.has(base_flags::PINNED));
        self.memory.insert(base.id, vec![0; base.bytes() as usize]);
        self.adopted.insert(base.id, (data as usize, release, argument as usize));
        Ok(())
    }

    fn pin(&mut self, _base: &Base, _pinned: bool) -> Result<()> {
        Ok(())
    }

    fn extmethod(&mut self, name: &str, _opcode: Opcode) -> Result<bool> {
        Ok(name == "known")
    }

    fn message(&mut self, text: &str) -> Result<String> {
        Ok(format!("you said {text}"))
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        lock(&self.log.threads).push(std::thread::current().id());
    }
}

//! Arrays that are made of the program's own memory of the device, and arrays that are lent to it as such.

use crate::attachment::Counters;
use crate::held::Held;
use crate::memory::{Memory, Pool};
use bh_bytecode::Base;
use bh_core::abi::{Adoption, Export, ExportRequest, access, adopt, export, status};
use bh_core::component::{Loan, Registry, SharedCalls};
use bh_core::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Where arrays of the device are known.
pub(crate) struct Space {
    pub(crate) registry: Registry,
    /// The engine's number at the registry.
    pub(crate) number: u32,
    pub(crate) counters: &'static Counters,
}

/// Serves the program's requests for device memory, from any thread.
pub(crate) struct Service {
    /// None if there is no device.
    pool: Option<Arc<Pool>>,
    /// The kind of its memory.
    kind: u32,
    space: OnceLock<Space>,
    /// Memory that both sides write to.
    pub(crate) held: Arc<Held>,
    lent: Mutex<Lent>,
}

/// Memory that the program uses, by token.
#[derive(Default)]
struct Lent {
    last: u64,
    all: HashMap<u64, (Arc<Memory>, u32)>,
}

impl Service {
    pub(crate) fn new(pool: Option<Arc<Pool>>, kind: u32) -> Service {
        Service { pool, kind, space: OnceLock::new(), held: Arc::default(), lent: Mutex::default() }
    }

    /// Learns the registry, once.
    pub(crate) fn bind(&self, space: Space) {
        let _ = self.space.set(space);
    }

    fn parts(&self, kind: u32) -> Result<(&Arc<Pool>, &Space)> {
        match (&self.pool, self.space.get()) {
            (Some(pool), Some(space)) if kind == self.kind => Ok((pool, space)),
            _ => Err(Error::new(status::UNSUPPORTED, "no engine of the stack has memory of this kind")),
        }
    }

    /// The array's own memory on the device, with its values; `writes`: the program may change them.
    fn own(&self, pool: &Arc<Pool>, space: &Space, base: &Base, writes: bool) -> Result<Arc<Memory>> {
        let mode = if writes { access::READ | access::WRITE } else { access::READ };
        let loan: Loan = space.registry.acquire_in(base, space.number, mode)?;
        // SAFETY: copies in this space are attached as `Memory`.
        let found = unsafe { loan.copy::<Memory>() };
        drop(loan);
        let (bytes, held) = (base.bytes() as usize, self.held.memory(base.id));
        if let Some(own) = found.as_ref().filter(|own| !(writes && own.is_read_only())) {
            return Ok(own.clone());
        }
        let own = held.map_or_else(|| pool.take(bytes).map(Arc::new), Ok)?;
        if let Some(before) = found {
            before.copy_to(&own, bytes)?;
        } else {
            let loan = space.registry.acquire(base, access::READ)?;
            // SAFETY: the loan holds the whole base until it is released.
            own.upload(unsafe { std::slice::from_raw_parts(loan.data().cast::<u8>(), bytes) })?;
        }
        // SAFETY: the counters live for ever.
        unsafe { space.registry.attach_copy(base, space.number, own.clone(), writes, space.counters)? };
        Ok(own)
    }
}

impl SharedCalls for Service {
    fn adopt(&self, base: &Base, adoption: &Adoption) -> Result<()> {
        let (pool, space) = self.parts(adoption.memory())?;
        if adoption.mode() > adopt::IMMUTABLE {
            return Err(Error::new(status::ARGUMENT, format!("adopt: there is no mode {}", adoption.mode())));
        }
        // SAFETY: the handle is a buffer with the base's bytes, valid until `release`, as [`Adoption::new`] asks.
        let buffer = unsafe { pool.gpu.driver.adopt(adoption.data(), base.bytes() as usize)? };
        pool.gpu.driver.settle()?;
        let (release, argument) = adoption.release();
        let memory = Arc::new(Memory::adopted(buffer, pool.clone(), release, argument, adoption.data()));
        if adoption.mode() == adopt::IMMUTABLE {
            memory.begin_reading();
        }
        // SAFETY: the counters live for ever.
        let outcome = unsafe { space.registry.attach_copy(base, space.number, memory.clone(), true, space.counters) };
        if let Err(error) = outcome {
            if let Some(memory) = Arc::into_inner(memory) {
                memory.refused();
            }
            return Err(error);
        }
        if adoption.mode() == adopt::SHARED {
            self.held.adopt(base, &memory);
        }
        Ok(())
    }

    /// A snapshot is a copy on the device: the array itself may be written to by kernels that are in the queue already.
    fn export_data(&self, base: &Base, request: &ExportRequest) -> Result<Export> {
        let (pool, space) = self.parts(request.memory)?;
        let bytes = base.bytes() as usize;
        let memory = match request.mode {
            export::SNAPSHOT => {
                let copy = Arc::new(pool.take(bytes)?);
                self.own(pool, space, base, false)?.copy_to(&copy, bytes)?;
                copy
            }
            export::READ_ONLY => {
                let own = self.own(pool, space, base, false)?;
                own.begin_reading();
                own
            }
            export::SHARED => {
                let own = self.own(pool, space, base, true)?;
                own.before_writing(0..usize::MAX)?;
                self.held.lend(base, &own);
                own
            }
            other => return Err(Error::new(status::ARGUMENT, format!("export: there is no mode {other}"))),
        };
        if pool.gpu.driver.shares_queue() {
            // The program enqueues its work later.
            pool.gpu.driver.flush()?;
        } else {
            pool.gpu.finish()?;
        }
        let data = memory.buffer().handle();
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.last += 1;
        let token = lent.last;
        lent.all.insert(token, (memory, request.mode));
        Ok(Export { data, bytes, token })
    }

    fn end_export(&self, base: &Base, token: u64) -> Result<()> {
        let ended = self.lent.lock().unwrap_or_else(PoisonError::into_inner).all.remove(&token);
        let unknown = || Error::new(status::HANDLE, format!("end of an export: there is none with number {token}"));
        let (memory, mode) = ended.ok_or_else(unknown)?;
        match mode {
            export::READ_ONLY => memory.end_reading(),
            export::SHARED => self.held.give_back(base.id),
            _ => {}
        }
        Ok(())
    }
}

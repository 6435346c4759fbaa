//! Arrays that are made of the program's own OpenCL memory, and arrays that are lent to it as such.

use crate::attachment::Counters;
use crate::memory::{Memory, Pool};
use crate::programs::failed;
use bh_bytecode::Base;
use bh_core::abi::{Adoption, Export, ExportRequest, access, adopt, export, memory, status};
use bh_core::component::{Loan, Registry, SharedCalls};
use bh_core::{Error, Result};
use opencl3::memory::ClMem;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Where arrays of the device are known.
pub(crate) struct Space {
    pub(crate) registry: Registry,
    /// The engine's number at the registry.
    pub(crate) number: u32,
    pub(crate) counters: &'static Counters,
}

/// What the program asks of the device's memory, from any thread.
pub(crate) struct Service {
    /// None if there is no device.
    pool: Option<Arc<Pool>>,
    space: OnceLock<Space>,
    lent: Mutex<Lent>,
}

/// Memory that the program uses, by token.
#[derive(Default)]
struct Lent {
    last: u64,
    all: HashMap<u64, Memory>,
}

impl Service {
    pub(crate) fn new(pool: Option<Arc<Pool>>) -> Service {
        Service { pool, space: OnceLock::new(), lent: Mutex::default() }
    }

    /// Learns the registry, once.
    pub(crate) fn bind(&self, space: Space) {
        let _ = self.space.set(space);
    }

    fn parts(&self, kind: u32) -> Result<(&Arc<Pool>, &Space)> {
        match (&self.pool, self.space.get()) {
            (Some(pool), Some(space)) if kind == memory::OPENCL => Ok((pool, space)),
            _ => Err(Error::new(status::UNSUPPORTED, "no engine of the stack has memory of this kind")),
        }
    }
}

impl SharedCalls for Service {
    fn adopt(&self, base: &Base, adoption: &Adoption) -> Result<()> {
        let (pool, space) = self.parts(adoption.memory())?;
        if adoption.mode() != adopt::DONATED {
            let text = "adopt: OpenCL memory is bh's until it is released, and cannot be used by both sides meanwhile";
            return Err(Error::new(status::UNSUPPORTED, text));
        }
        // SAFETY: whoever made the value vouches for the handle.
        let buffer = unsafe { pool.gpu.take_over(adoption.data(), base.bytes() as usize)? };
        let (release, argument) = adoption.release();
        let memory = Arc::new(Memory::adopted(buffer, pool.clone(), release, argument, adoption.data()));
        // SAFETY: the counters live for ever.
        let outcome = unsafe { space.registry.attach_copy(base, space.number, memory.clone(), true, space.counters) };
        if outcome.is_err()
            && let Some(memory) = Arc::into_inner(memory)
        {
            memory.refused();
        }
        outcome
    }

    /// A copy on the device: the array itself may be written to by kernels that are in the queue already.
    fn export_data(&self, base: &Base, request: &ExportRequest) -> Result<Export> {
        let (pool, space) = self.parts(request.memory)?;
        if request.mode == export::SHARED {
            let text = "export: OpenCL memory of an array is not shared; ask for a copy of it as it is now";
            return Err(Error::new(status::UNSUPPORTED, text));
        }
        let bytes = base.bytes() as usize;
        let copy = pool.take(bytes)?;
        let loan: Loan = space.registry.acquire_in(base, space.number, access::READ)?;
        // SAFETY: copies in this space are attached as `Memory`.
        match unsafe { loan.copy::<Memory>() } {
            Some(own) => own.copy_to(&copy, bytes)?,
            None => {
                let loan = space.registry.acquire(base, access::READ)?;
                // SAFETY: the loan holds the whole base until it is released.
                copy.upload(unsafe { std::slice::from_raw_parts(loan.data().cast::<u8>(), bytes) })?;
            }
        }
        if pool.gpu.shares_queue {
            // What the program enqueues comes later.
            pool.gpu.queue.flush().map_err(|why| failed("starting the queue", why))?;
        } else {
            pool.gpu.finish()?;
        }
        let data = copy.buffer().get();
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.last += 1;
        let token = lent.last;
        lent.all.insert(token, copy);
        Ok(Export { data, bytes, token })
    }

    fn end_export(&self, _base: &Base, token: u64) -> Result<()> {
        let ended = self.lent.lock().unwrap_or_else(PoisonError::into_inner).all.remove(&token);
        let unknown = || Error::new(status::HANDLE, format!("end of an export: there is none with number {token}"));
        ended.map(drop).ok_or_else(unknown)
    }
}

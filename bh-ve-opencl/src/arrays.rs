//! Arrays on the device: what the registry is told about them, transfers, and who makes room when memory is short.

use crate::memory::{Memory, Pool};
use bh_bytecode::Base;
use bh_core::abi::{AttachmentOps, ErrorRecord, Status, access, status};
use bh_core::{Counter, Error, Host, Registry, Result};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// The engine's side of the array registry.
pub(crate) struct Arrays {
    pub(crate) registry: Registry,
    space: u32,
    pool: Arc<Pool>,
    /// Bases that were on the device when they were last used, with the time of that.
    known: HashMap<u64, Known>,
    clock: u64,
    counters: &'static Counters,
    evictions: Counter,
}

/// A base with a copy on the device, which the registry may have dropped.
struct Known {
    base: Base,
    memory: Weak<Memory>,
    used: u64,
}

/// So many bases are remembered before those without a copy are forgotten.
const KNOWN: usize = 4096;

/// Counters that callbacks use; they live as long as the process, because copies may outlive the engine.
struct Counters {
    upload_bytes: Counter,
    upload_ns: Counter,
    download_bytes: Counter,
    download_ns: Counter,
}

impl Arrays {
    pub(crate) fn new(registry: Registry, pool: Arc<Pool>, host: &Host) -> Arrays {
        let counters = Counters {
            upload_bytes: host.counter("upload_bytes"),
            upload_ns: host.counter("upload_ns"),
            download_bytes: host.counter("download_bytes"),
            download_ns: host.counter("download_ns"),
        };
        let counters = Box::leak(Box::new(counters));
        let (space, evictions) = (registry.new_space(), host.counter("evictions"));
        Arrays { registry, space, pool, known: HashMap::new(), clock: 0, counters, evictions }
    }

    /// A new moment: what is used from now on is not evicted before the next one.
    pub(crate) fn tick(&mut self) {
        self.clock += 1;
    }

    fn used(&mut self, base: &Base, memory: &Arc<Memory>) {
        if self.known.len() >= KNOWN {
            self.known.retain(|_, known| known.memory.strong_count() > 0);
        }
        self.known.insert(base.id, Known { base: *base, memory: Arc::downgrade(memory), used: self.clock });
    }

    /// Memory of the device; arrays that were not used for longest make room for it.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<Memory> {
        loop {
            match self.pool.take(bytes) {
                Err(error) if error.status == status::MEMORY => {
                    if !self.evict()? {
                        return Err(error);
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Brings the array that was not used for longest back to host memory. False if there is none.
    fn evict(&mut self) -> Result<bool> {
        loop {
            let oldest = self.known.values().filter(|known| known.used < self.clock).min_by_key(|known| known.used);
            let Some(Known { base, memory, .. }) = oldest else { return Ok(false) };
            let (base, gone) = (*base, memory.strong_count() == 0);
            self.known.remove(&base.id);
            if gone {
                continue;
            }
            // Claiming the host's copy brings it up to date and drops the others.
            drop(self.registry.acquire(&base, access::READ | access::WRITE)?);
            self.evictions.add(1);
            return Ok(true);
        }
    }

    /// May the base have a copy on the device?
    pub(crate) fn is_known(&self, base: &Base) -> bool {
        self.known.get(&base.id).is_some_and(|known| known.memory.strong_count() > 0)
    }

    /// The valid copy of a base on the device, if there is one.
    pub(crate) fn attached(&self, base: &Base) -> Result<Option<Arc<Memory>>> {
        let loan = self.registry.acquire_in(base, self.space, access::READ)?;
        // SAFETY: handles in this space come from `attach` below, and the loan keeps this one.
        Ok((!loan.data().is_null()).then(|| unsafe { of_handle(loan.data()) }))
    }

    /// The base's memory with its current content.
    pub(crate) fn fetch(&mut self, base: &Base) -> Result<Arc<Memory>> {
        if let Some(memory) = self.attached(base)? {
            self.used(base, &memory);
            return Ok(memory);
        }
        let bytes = base.bytes() as usize;
        let memory = Arc::new(self.take(bytes)?);
        let loan = self.registry.acquire(base, access::READ)?;
        let begin = Instant::now();
        // SAFETY: the loan holds the whole base until it is released.
        let outcome = memory.upload(unsafe { std::slice::from_raw_parts(loan.data().cast::<u8>(), bytes) });
        drop(loan);
        outcome?;
        self.counters.upload_bytes.add(bytes as u64);
        self.counters.upload_ns.add(begin.elapsed().as_nanos() as u64);
        self.attach(base, memory.clone(), false)?;
        self.used(base, &memory);
        Ok(memory)
    }

    /// Makes `memory` the only valid copy of a base.
    pub(crate) fn claim(&mut self, base: &Base, memory: &Arc<Memory>) -> Result<()> {
        self.used(base, memory);
        let loan = self.registry.acquire_in(base, self.space, access::WRITE | access::DISCARD)?;
        let attached = std::ptr::eq(loan.data().cast_const().cast(), Arc::as_ptr(memory));
        drop(loan);
        // For memory that is attached, the acquisition has made the other copies stale.
        if attached { Ok(()) } else { self.attach(base, memory.clone(), true) }
    }

    /// Memory that a base is to be written to as a whole.
    pub(crate) fn fresh(&mut self, base: &Base) -> Result<Arc<Memory>> {
        self.take(base.bytes() as usize).map(Arc::new)
    }

    fn attach(&self, base: &Base, memory: Arc<Memory>, exclusive: bool) -> Result<()> {
        let operations = AttachmentOps {
            struct_size: size_of::<AttachmentOps>(),
            context: std::ptr::from_ref(self.counters).cast_mut().cast(),
            to_host,
            drop: drop_memory,
            read: None,
            write: None,
            prefetch: None,
            clone: None,
        };
        let handle = Arc::into_raw(memory).cast_mut().cast();
        // SAFETY: the handle holds a reference until the registry calls `drop`, and the counters live for ever.
        let outcome = unsafe { self.registry.attach(base, self.space, handle, exclusive, &operations) };
        if outcome.is_err() {
            // SAFETY: the registry did not take the reference.
            drop(unsafe { Arc::from_raw(handle.cast_const().cast::<Memory>()) });
        }
        outcome
    }
}

/// The memory behind a handle.
///
/// # Safety
/// The handle must come from [`Arrays::attach`] and not have been dropped.
unsafe fn of_handle(handle: *mut c_void) -> Arc<Memory> {
    let memory = handle.cast_const().cast::<Memory>();
    // SAFETY: promised by the caller; the count is raised for the new reference.
    unsafe {
        Arc::increment_strong_count(memory);
        Arc::from_raw(memory)
    }
}

unsafe extern "C" fn to_host(
    context: *mut c_void,
    handle: *mut c_void,
    data: *mut c_void,
    bytes: usize,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the registry passes the handles and the context it was given, and room for the base.
    let (counters, memory, target) = unsafe {
        let target = if bytes == 0 { &mut [] } else { std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes) };
        (&*context.cast_const().cast::<Counters>(), of_handle(handle), target)
    };
    let begin = Instant::now();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| memory.download(target)))
        .unwrap_or_else(|_| Err(Error::new(status::PANIC, "reading from the device panicked")));
    counters.download_bytes.add(bytes as u64);
    counters.download_ns.add(begin.elapsed().as_nanos() as u64);
    match outcome {
        Ok(()) => status::OK,
        // SAFETY: the registry's record is writable.
        Err(failure) => failure.write(unsafe { &mut *error }),
    }
}

unsafe extern "C" fn drop_memory(_context: *mut c_void, handle: *mut c_void) {
    // SAFETY: this ends the registry's reference, once.
    drop(unsafe { Arc::from_raw(handle.cast_const().cast::<Memory>()) });
}

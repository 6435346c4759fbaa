//! What the registry does with an array's copy on the device, from any thread: reads, writes, copies of views, its end.

use crate::memory::Memory;
use crate::moves;
use bh_bytecode::{Base, View};
use bh_core::abi::{AttachmentOps, ErrorRecord, HostMemory, Status, ViewSpec, status};
use bh_core::{Counter, Error, Host, Result};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;

/// Counters of transfers. They live as long as the process, because copies may outlive the engine.
pub(crate) struct Counters {
    pub(crate) upload_bytes: Counter,
    pub(crate) upload_ns: Counter,
    download_bytes: Counter,
    download_ns: Counter,
    clones: Counter,
}

impl Counters {
    pub(crate) fn new(host: &Host) -> &'static Counters {
        Box::leak(Box::new(Counters {
            upload_bytes: host.counter("upload_bytes"),
            upload_ns: host.counter("upload_ns"),
            download_bytes: host.counter("download_bytes"),
            download_ns: host.counter("download_ns"),
            clones: host.counter("copies on the device"),
        }))
    }

    /// The functions of a copy.
    pub(crate) fn operations(&'static self) -> AttachmentOps {
        AttachmentOps {
            struct_size: size_of::<AttachmentOps>(),
            context: std::ptr::from_ref(self).cast_mut().cast(),
            to_host,
            drop: drop_memory,
            read: Some(read),
            write: Some(write),
            prefetch: Some(prefetch),
            clone: Some(clone),
        }
    }

    fn download(&self, outcome: Result<usize>, begin: Instant) -> Result<()> {
        self.download_bytes.add(*outcome.as_ref().unwrap_or(&0) as u64);
        self.download_ns.add(begin.elapsed().as_nanos() as u64);
        outcome.map(drop)
    }
}

/// The handle of a buffer for the registry, which holds a reference.
pub(crate) fn handle(memory: Arc<Memory>) -> *mut c_void {
    Arc::into_raw(memory).cast_mut().cast()
}

/// The memory behind a handle.
///
/// # Safety
/// The handle must come from [`handle`] and not have been dropped.
pub(crate) unsafe fn of_handle(handle: *mut c_void) -> Arc<Memory> {
    let memory = handle.cast_const().cast::<Memory>();
    // SAFETY: promised by the caller; the count is raised for the new reference.
    unsafe {
        Arc::increment_strong_count(memory);
        Arc::from_raw(memory)
    }
}

/// Ends a reference that the registry has, or did not take.
///
/// # Safety
/// As [`of_handle`], once for each handle.
pub(crate) unsafe fn end(handle: *mut c_void) {
    // SAFETY: promised by the caller.
    drop(unsafe { Arc::from_raw(handle.cast_const().cast::<Memory>()) });
}

/// Runs the body of a callback on its memory and reports how it ended.
///
/// # Safety
/// The registry passes the context and a handle that it was given, and a writable record.
unsafe fn serve(
    context: *mut c_void,
    handle: *mut c_void,
    error: *mut ErrorRecord,
    body: impl FnOnce(&Counters, &Arc<Memory>) -> Result<()>,
) -> Status {
    // SAFETY: promised by the caller.
    let (counters, memory) = unsafe { (&*context.cast_const().cast::<Counters>(), of_handle(handle)) };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(counters, &memory)))
        .unwrap_or_else(|_| Err(Error::new(status::PANIC, "moving data of the device panicked")));
    match outcome {
        Ok(()) => status::OK,
        // SAFETY: promised by the caller.
        Err(failure) => failure.write(unsafe { &mut *error }),
    }
}

/// The view of a specification.
///
/// # Safety
/// The specification's arrays must be readable.
unsafe fn view_of(view: *const ViewSpec) -> Result<View> {
    // SAFETY: promised by the caller; without dimensions the pointers may be null.
    let (start, shape, stride) = unsafe {
        let ViewSpec { start, shape, stride, rank } = *view;
        let numbers = |first: *const i64| match rank {
            0 => &[][..],
            _ => std::slice::from_raw_parts(first, rank as usize),
        };
        (start, numbers(shape), numbers(stride))
    };
    View::new(start, shape, stride).map_err(|why| Error::new(status::ARGUMENT, why.to_string()))
}

unsafe extern "C" fn to_host(
    context: *mut c_void,
    handle: *mut c_void,
    data: *mut c_void,
    bytes: usize,
    error: *mut ErrorRecord,
) -> Status {
    let body = |counters: &Counters, memory: &Arc<Memory>| {
        let begin = Instant::now();
        // SAFETY: the registry gives room for the base.
        let target =
            unsafe { if bytes == 0 { &mut [] } else { std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes) } };
        counters.download(memory.download_at(0, target).map(|()| bytes), begin)
    };
    // SAFETY: called by the registry.
    unsafe { serve(context, handle, error, body) }
}

unsafe extern "C" fn read(
    context: *mut c_void,
    handle: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    memory: *const HostMemory,
    error: *mut ErrorRecord,
) -> Status {
    let body = |counters: &Counters, own: &Arc<Memory>| {
        let begin = Instant::now();
        // SAFETY: the registry passes a base, a view of it that was validated, and memory for its elements.
        let outcome = unsafe { moves::read(own, (*base).dtype(), &view_of(view)?, &*memory) };
        counters.download(outcome, begin)
    };
    // SAFETY: called by the registry.
    unsafe { serve(context, handle, error, body) }
}

unsafe extern "C" fn write(
    context: *mut c_void,
    handle: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    memory: *const HostMemory,
    error: *mut ErrorRecord,
) -> Status {
    let body = |counters: &Counters, own: &Arc<Memory>| {
        let begin = Instant::now();
        // SAFETY: as for `read`.
        let bytes = unsafe { moves::write(own, (*base).dtype(), &view_of(view)?, &*memory)? };
        counters.upload_bytes.add(bytes as u64);
        counters.upload_ns.add(begin.elapsed().as_nanos() as u64);
        Ok(())
    };
    // SAFETY: called by the registry.
    unsafe { serve(context, handle, error, body) }
}

/// The queue begins with what it has, so that a later read waits less.
unsafe extern "C" fn prefetch(_: *mut c_void, handle: *mut c_void, _: *const Base, _: *const ViewSpec) {
    // SAFETY: the registry passes a handle that it was given.
    let memory = unsafe { of_handle(handle) };
    // A queue that cannot begin says so to whoever reads.
    let _ = memory.pool.gpu.queue.flush();
}

unsafe extern "C" fn clone(
    context: *mut c_void,
    own: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    copy: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    let body = |counters: &Counters, memory: &Arc<Memory>| {
        // SAFETY: as for `read`; there is room for a handle.
        unsafe {
            let copied = moves::clone(memory, (*base).dtype(), &view_of(view)?)?;
            *copy = handle(Arc::new(copied));
        }
        counters.clones.add(1);
        Ok(())
    };
    // SAFETY: called by the registry.
    unsafe { serve(context, own, error, body) }
}

unsafe extern "C" fn drop_memory(_context: *mut c_void, handle: *mut c_void) {
    // SAFETY: this ends the registry's reference, once.
    unsafe { end(handle) };
}

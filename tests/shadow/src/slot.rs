//! The private heap: copies of bases that only tasks of the queue and the registry's callbacks touch.

use crate::heap::{Heap, Task};
use bh_bytecode::Base;
use bh_core::abi::{AttachmentOps, ErrorRecord, HostMemory, Status, ViewSpec, status};
use bh_core::error::{Error, Result};
use bh_core::strided;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a slot holds.
pub struct Content {
    pub bytes: Vec<u8>,
    /// Tasks in the queue that will change it.
    pub writers: u32,
    /// Tasks in the queue that will read it.
    pub readers: u32,
    /// What it should hold was lost.
    pub error: Option<Error>,
}

/// A copy of a base. The registry holds one reference through the attachment, every task in the queue another.
pub struct Slot {
    content: Mutex<Content>,
    settled: Condvar,
}

impl Slot {
    /// Room for so many bytes, which a task is going to fill.
    pub fn new(bytes: usize) -> Arc<Slot> {
        let content = Content { bytes: vec![0; bytes], writers: 0, readers: 0, error: None };
        Arc::new(Slot { content: Mutex::new(content), settled: Condvar::new() })
    }

    /// A copy that was lost before it came here.
    pub fn lost(bytes: usize, error: Error) -> Arc<Slot> {
        let slot = Slot::new(bytes);
        slot.lock().error = Some(error);
        slot
    }

    /// The content, whatever is still to come.
    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content once no task will change it any more, unless it is lost.
    fn settled(&self) -> Result<MutexGuard<'_, Content>> {
        let content = self.lock();
        let waited = self.settled.wait_while(content, |content| content.writers > 0);
        let content = waited.unwrap_or_else(PoisonError::into_inner);
        match &content.error {
            Some(error) => Err(error.clone()),
            None => Ok(content),
        }
    }

    /// The same once no task reads it either, so that it can be changed.
    fn idle(&self) -> Result<MutexGuard<'_, Content>> {
        let content = self.lock();
        let busy = |content: &mut Content| content.writers + content.readers > 0;
        let waited = self.settled.wait_while(content, busy);
        let content = waited.unwrap_or_else(PoisonError::into_inner);
        match &content.error {
            Some(error) => Err(error.clone()),
            None => Ok(content),
        }
    }

    /// Ends a task's claim to change it.
    pub fn settle(&self, outcome: Result<Vec<u8>>) {
        let mut content = self.lock();
        content.writers -= 1;
        match outcome {
            Ok(bytes) => (content.bytes, content.error) = (bytes, None),
            Err(error) => content.error = Some(error),
        }
        drop(content);
        self.settled.notify_all();
    }

    /// Ends a task's claim to read it.
    pub fn end_read(&self) {
        self.lock().readers -= 1;
        self.settled.notify_all();
    }

    /// The name of the slot at the registry, which keeps it alive until `drop` is called.
    pub fn into_handle(self: Arc<Slot>) -> *mut c_void {
        Arc::into_raw(self).cast_mut().cast()
    }

    /// The slot behind a handle.
    ///
    /// # Safety
    /// The handle must come from [`Slot::into_handle`] and not have been dropped.
    pub unsafe fn from_handle(handle: *mut c_void) -> Arc<Slot> {
        let slot = handle.cast_const().cast::<Slot>();
        // SAFETY: promised by the caller; the count is raised for the new reference.
        unsafe {
            Arc::increment_strong_count(slot);
            Arc::from_raw(slot)
        }
    }
}

/// What the registry calls for copies on this heap, which has to stay where it is while there are any.
pub fn operations(heap: &Arc<Heap>) -> AttachmentOps {
    AttachmentOps {
        struct_size: size_of::<AttachmentOps>(),
        context: Arc::as_ptr(heap).cast_mut().cast(),
        to_host,
        drop: drop_slot,
        read: Some(read),
        write: Some(write),
        prefetch: Some(prefetch),
        clone: Some(clone),
    }
}

/// The body of a callback: failures fill the record.
///
/// # Safety
/// The context must be that of [`operations`], the handle one that was attached and not dropped, and the record writable.
unsafe fn answer(
    context: *mut c_void,
    handle: *mut c_void,
    error: *mut ErrorRecord,
    work: impl FnOnce(&Heap, Arc<Slot>) -> Result<()>,
) -> Status {
    // SAFETY: promised by the caller.
    let outcome = unsafe { work(&*context.cast_const().cast::<Heap>(), Slot::from_handle(handle)) };
    match outcome {
        Ok(()) => status::OK,
        // SAFETY: promised by the caller.
        Err(cause) => cause.write(unsafe { &mut *error }),
    }
}

unsafe extern "C" fn to_host(
    context: *mut c_void,
    handle: *mut c_void,
    data: *mut c_void,
    bytes: usize,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the registry passes what it was given as long as it is attached, and its own record.
    unsafe {
        answer(context, handle, error, |heap, slot| {
            let content = slot.settled()?;
            if content.bytes.len() != bytes {
                let text = format!("a copy of {} bytes was asked for {bytes}", content.bytes.len());
                return Err(Error::new(status::DEVICE, text));
            }
            heap.counters.downloads.add(1);
            std::ptr::copy_nonoverlapping(content.bytes.as_ptr(), data.cast(), bytes);
            Ok(())
        })
    }
}

unsafe extern "C" fn drop_slot(context: *mut c_void, handle: *mut c_void) {
    // SAFETY: as above; this ends the registry's reference, once.
    unsafe {
        let slot = Arc::from_raw(handle.cast_const().cast::<Slot>());
        (*context.cast_const().cast::<Heap>()).detached(slot.lock().bytes.len());
    }
}

unsafe extern "C" fn read(
    context: *mut c_void,
    handle: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    memory: *const HostMemory,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: as above; the view was checked against the base, and the memory is the caller's.
    unsafe {
        answer(context, handle, error, |heap, slot| {
            let (view, content) = ((*view).view()?, slot.settled()?);
            heap.counters.region_reads.add(1);
            strided::load((*base).dtype(), &view, content.bytes.as_ptr(), &*memory);
            Ok(())
        })
    }
}

unsafe extern "C" fn write(
    context: *mut c_void,
    handle: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    memory: *const HostMemory,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: as above.
    unsafe {
        answer(context, handle, error, |heap, slot| {
            let (view, mut content) = ((*view).view()?, slot.idle()?);
            heap.counters.region_writes.add(1);
            strided::store((*base).dtype(), &view, content.bytes.as_mut_ptr(), &*memory);
            Ok(())
        })
    }
}

/// The heap is as near to the host as it gets; that the wish arrived is counted.
unsafe extern "C" fn prefetch(context: *mut c_void, _: *mut c_void, _: *const Base, _: *const ViewSpec) {
    // SAFETY: as above.
    unsafe { (*context.cast_const().cast::<Heap>()).counters.prefetches.add(1) };
}

unsafe extern "C" fn clone(
    context: *mut c_void,
    handle: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    copy: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: as above; the place for the copy's handle is the registry's.
    unsafe {
        answer(context, handle, error, |heap, slot| {
            let (view, dtype) = ((*view).view()?, (*base).dtype());
            let bytes = view.len() as usize * dtype.size();
            let to = Slot::new(bytes);
            slot.lock().readers += 1;
            to.lock().writers += 1;
            heap.push(Task::Clone { from: slot, to: to.clone(), dtype, view: Box::new(view) });
            heap.counters.clones.add(1);
            heap.attached(bytes);
            copy.write(to.into_handle());
            Ok(())
        })
    }
}

//! The private heap: copies of bases that only jobs and transfers touch.

use bh_core::abi::{AttachmentOps, ErrorRecord, Status, status};
use bh_core::error::Error;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a slot holds.
pub struct Content {
    pub bytes: Vec<u8>,
    /// Jobs in the queue that will change it.
    pub pending: u32,
    /// The job that should have filled it failed.
    pub error: Option<Error>,
}

/// A copy of a base. The registry holds one reference through the attachment, every job in the queue another.
pub struct Slot {
    content: Mutex<Content>,
    settled: Condvar,
}

impl Slot {
    /// A copy with this content.
    pub fn new(bytes: Vec<u8>) -> Arc<Slot> {
        Arc::new(Slot { content: Mutex::new(Content { bytes, pending: 0, error: None }), settled: Condvar::new() })
    }

    /// The content, whatever is still to come.
    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content once no job will change it any more.
    fn settled(&self) -> MutexGuard<'_, Content> {
        let content = self.lock();
        self.settled.wait_while(content, |content| content.pending > 0).unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a job's claim to change it.
    pub fn settle(&self, outcome: Result<Vec<u8>, Error>) {
        let mut content = self.lock();
        content.pending -= 1;
        match outcome {
            Ok(bytes) => (content.bytes, content.error) = (bytes, None),
            Err(error) => content.error = Some(error),
        }
        drop(content);
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

unsafe extern "C" fn to_host(
    _context: *mut c_void,
    handle: *mut c_void,
    data: *mut c_void,
    bytes: usize,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the registry passes the handles it was given, as long as they are attached.
    let slot = unsafe { Slot::from_handle(handle) };
    let content = slot.settled();
    if let Some(cause) = &content.error {
        // SAFETY: the registry's record is writable.
        return cause.write(unsafe { &mut *error });
    }
    if content.bytes.len() != bytes {
        let text = format!("a copy of {} bytes was asked for {bytes}", content.bytes.len());
        // SAFETY: as above.
        return Error::new(status::DEVICE, text).write(unsafe { &mut *error });
    }
    // SAFETY: the registry gives room for the base.
    unsafe { std::ptr::copy_nonoverlapping(content.bytes.as_ptr(), data.cast(), bytes) };
    status::OK
}

unsafe extern "C" fn drop_slot(_context: *mut c_void, handle: *mut c_void) {
    // SAFETY: this ends the registry's reference, once.
    drop(unsafe { Arc::from_raw(handle.cast_const().cast::<Slot>()) });
}

/// What the registry calls for copies in this engine's space.
pub const OPERATIONS: AttachmentOps = AttachmentOps {
    struct_size: size_of::<AttachmentOps>(),
    context: std::ptr::null_mut(),
    to_host,
    drop: drop_slot,
    read: None,
    write: None,
    prefetch: None,
    clone: None,
};

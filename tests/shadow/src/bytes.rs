//! The bytes of a copy: the engine's own, or memory that the application handed over. Whoever still reads them keeps them.

use bh_core::abi::{Adoption, ReleaseFn, adopt};
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;

/// Memory of a copy.
pub enum Bytes {
    /// The engine's.
    Own(Vec<u8>),
    /// The application's, until this value goes.
    Adopted(Adopted),
}

/// Memory of the application's, which is told when it is no longer used.
pub struct Adopted {
    data: *mut u8,
    bytes: usize,
    immutable: bool,
    release: Option<ReleaseFn>,
    argument: *mut c_void,
}

// SAFETY: the memory is used like a vector's until `release`, which may be called from any thread.
unsafe impl Send for Adopted {}
// SAFETY: as above; it is changed through exclusive references only.
unsafe impl Sync for Adopted {}

impl Bytes {
    /// Bytes of the application's.
    ///
    /// # Safety
    /// The adoption's memory must be valid for `bytes` bytes, as its mode says, until its `release` is called, which
    /// must work with its argument on any thread.
    pub unsafe fn adopt(adoption: &Adoption, bytes: usize) -> Bytes {
        let (release, argument) = adoption.release();
        let immutable = adoption.mode() == adopt::IMMUTABLE;
        Bytes::Adopted(Adopted { data: adoption.data().cast(), bytes, immutable, release, argument })
    }

    /// The bytes for writing, if nobody else relies on them.
    fn unshared(bytes: &mut Arc<Bytes>) -> Option<&mut [u8]> {
        match Arc::get_mut(bytes)? {
            Bytes::Own(bytes) => Some(bytes),
            Bytes::Adopted(memory) if memory.immutable => None,
            // SAFETY: the memory is valid for these bytes until `release`, as [`Bytes::adopt`] asks; the reference is
            // exclusive.
            Bytes::Adopted(memory) => Some(unsafe { std::slice::from_raw_parts_mut(memory.data, memory.bytes) }),
        }
    }

    /// Leaves memory to its owner, as if it had never been adopted.
    pub fn refuse(bytes: &mut Arc<Bytes>) {
        if let Some(Bytes::Adopted(memory)) = Arc::get_mut(bytes) {
            memory.release = None;
        }
    }

    /// Lets the bytes be changed; those that somebody else relies on are replaced by a copy before, and returned.
    pub fn change(bytes: &mut Arc<Bytes>, change: impl FnOnce(&mut [u8])) -> Option<Arc<Bytes>> {
        if let Some(own) = Bytes::unshared(bytes) {
            change(own);
            return None;
        }
        let mut copy = bytes.to_vec();
        change(&mut copy);
        Some(std::mem::replace(bytes, Arc::new(Bytes::Own(copy))))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Own(bytes) => bytes,
            // SAFETY: the memory is valid for these bytes until `release`, as [`Bytes::adopt`] asks, and changed
            // through exclusive references only.
            Bytes::Adopted(memory) => unsafe { std::slice::from_raw_parts(memory.data, memory.bytes) },
        }
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the function works with its argument, as [`Bytes::adopt`] asks; this is the end of the memory's
            // use.
            unsafe { release(self.argument, self.data.cast()) };
        }
    }
}

//! The bytes of a copy: the engine's own, or adopted memory of the application. Readers keep them alive.

use bh_core::abi::{Adoption, ReleaseFn, adopt};
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;

/// The memory of a copy.
pub enum Bytes {
    /// The engine's memory.
    Own(Vec<u8>),
    /// The application's memory, until this value is dropped.
    Adopted(Adopted),
}

/// Memory of the application, which is notified after its last use.
pub struct Adopted {
    data: *mut u8,
    bytes: usize,
    immutable: bool,
    release: Option<ReleaseFn>,
    argument: *mut c_void,
}

// SAFETY: the memory is used like a vector's until `release`, which may be called from any thread.
unsafe impl Send for Adopted {}
// SAFETY: shared references only read the memory.
unsafe impl Sync for Adopted {}

impl Bytes {
    /// Bytes in the application's memory.
    ///
    /// # Safety
    /// The adoption's memory must be valid for `bytes` bytes, according to its mode, until its `release` is called,
    /// which must work with its argument on any thread.
    pub unsafe fn adopt(adoption: &Adoption, bytes: usize) -> Bytes {
        let (release, argument) = adoption.release();
        let immutable = adoption.mode() == adopt::IMMUTABLE;
        Bytes::Adopted(Adopted { data: adoption.data().cast(), bytes, immutable, release, argument })
    }

    /// The bytes for writing, if this is the only reference and they are not immutable.
    fn unshared(bytes: &mut Arc<Bytes>) -> Option<&mut [u8]> {
        match Arc::get_mut(bytes)? {
            Bytes::Own(bytes) => Some(bytes),
            Bytes::Adopted(memory) if memory.immutable => None,
            // SAFETY: `adopt` requires memory that is valid until `release`; the reference is exclusive.
            Bytes::Adopted(memory) => Some(unsafe { std::slice::from_raw_parts_mut(memory.data, memory.bytes) }),
        }
    }

    /// Returns memory to its owner as if it had never been adopted.
    pub fn refuse(bytes: &mut Arc<Bytes>) {
        if let Some(Bytes::Adopted(memory)) = Arc::get_mut(bytes) {
            memory.release = None;
        }
    }

    /// Changes the bytes. If others rely on them, changes a copy and returns the old ones.
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
            // SAFETY: `adopt` requires memory that is valid until `release`, and only exclusive references change it.
            Bytes::Adopted(memory) => unsafe { std::slice::from_raw_parts(memory.data, memory.bytes) },
        }
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `adopt` requires a function that works with its argument; this ends the memory's use.
            unsafe { release(self.argument, self.data.cast()) };
        }
    }
}

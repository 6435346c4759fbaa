//! Work memory of methods: from the host, so that it counts against the limit and is an error where there is none.

use bh_core::abi::status;
use bh_core::{Error, Host, Result};
use std::ops::{Deref, DerefMut};

/// Elements of a type that any bits, zeros among them, are a value of.
pub(crate) struct Scratch<T: Copy> {
    host: Host,
    data: *mut T,
    len: usize,
    bytes: usize,
}

// SAFETY: it owns its memory.
unsafe impl<T: Copy + Send> Send for Scratch<T> {}
// SAFETY: shared, it is only read.
unsafe impl<T: Copy + Sync> Sync for Scratch<T> {}

impl<T: Copy> Scratch<T> {
    /// So many zeros.
    ///
    /// # Safety
    /// Zero bytes must be a value of the type.
    pub(crate) unsafe fn zeros(host: Option<Host>, len: usize) -> Result<Scratch<T>> {
        Scratch::take(host, len, true)
    }

    /// Memory that is counted while this lives, and touched by nobody: for what libraries allocate by themselves meanwhile.
    pub(crate) fn reserve(host: Option<Host>, len: usize) -> Result<Scratch<T>> {
        Scratch::take(host, len, false)
    }

    fn take(host: Option<Host>, len: usize, zeroed: bool) -> Result<Scratch<T>> {
        let host = host.ok_or_else(|| Error::new(status::MEMORY, "out of memory: there is no host to ask"))?;
        // What overflows is more than there is.
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        Ok(Scratch { host, data: host.alloc(bytes, zeroed)?.cast(), len, bytes })
    }
}

impl<T: Copy> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: it came from there with this size.
        unsafe { self.host.free(self.data.cast(), self.bytes) };
    }
}

impl<T: Copy> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds zeros, or values written since; reserved memory is not looked at.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T: Copy> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

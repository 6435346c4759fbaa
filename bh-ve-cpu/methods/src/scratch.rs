//! Work memory of methods: from the host, so that it counts against the limit and is an error where there is none.

use bh_bytecode::{Truth, c64, c128};
use bh_core::abi::status;
use bh_core::{Error, Host, Result};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicI64;

/// Types of which zero bytes are a value.
///
/// # Safety
/// All bytes zero must be a value of the type.
pub(crate) unsafe trait Zeroed: Sized {}

macro_rules! zeroed {
    ($($type:ty),*) => {$(
        // SAFETY: a number, or a truth value, of zero.
        unsafe impl Zeroed for $type {}
    )*};
}
zeroed!(Truth, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, c64, c128, faer::c32, faer::c64, AtomicI64);

// SAFETY: any bytes are a value.
unsafe impl<T> Zeroed for MaybeUninit<T> {}

// SAFETY: both are zeros, and bytes between them are anything.
unsafe impl<A: Zeroed, B: Zeroed> Zeroed for (A, B) {}

/// Memory that is counted while this lives, and touched by nobody: for what libraries allocate by themselves meanwhile.
pub(crate) struct Reserved {
    host: Host,
    data: *mut u8,
    bytes: usize,
}

// SAFETY: it owns its memory.
unsafe impl Send for Reserved {}
// SAFETY: shared, it does nothing.
unsafe impl Sync for Reserved {}

impl Reserved {
    /// Room for `len` elements.
    pub(crate) fn new<T>(host: Option<Host>, len: usize) -> Result<Reserved> {
        Reserved::take(host, len.saturating_mul(size_of::<T>()), false)
    }

    fn take(host: Option<Host>, bytes: usize, zeroed: bool) -> Result<Reserved> {
        let host = host.ok_or_else(|| Error::new(status::MEMORY, "out of memory: there is no host to ask"))?;
        // A size that overflows exceeds the memory.
        let bytes = bytes.max(1);
        Ok(Reserved { host, data: host.alloc(bytes, zeroed)?.cast(), bytes })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: `take` got the memory from this host, with these bytes, and nobody uses it any more.
        unsafe { self.host.free(self.data.cast(), self.bytes) };
    }
}

/// Elements that begin as zeros.
pub(crate) struct Scratch<T: Zeroed> {
    memory: Reserved,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Zeroed> Scratch<T> {
    /// `len` zeros.
    pub(crate) fn zeros(host: Option<Host>, len: usize) -> Result<Scratch<T>> {
        let memory = Reserved::take(host, len.saturating_mul(size_of::<T>()), true)?;
        Ok(Scratch { memory, len, of: std::marker::PhantomData })
    }
}

impl<T: Zeroed> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds `len` elements: zeros, or values written since. Hosts give memory for any type.
        unsafe { std::slice::from_raw_parts(self.memory.data.cast(), self.len) }
    }
}

impl<T: Zeroed> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the memory holds `len` elements, as for shared use, and the reference is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.data.cast(), self.len) }
    }
}

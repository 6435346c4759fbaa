//! Memory lent to the program: whole bases on rank 0, as far as they were asked for.

use crate::plan::boxes::Span;
use bh_bytecode::Base;
use bh_core::component::Host;
use bh_core::error::Result;

/// Memory of a whole base.
pub struct Staging {
    host: Host,
    data: *mut u8,
    bytes: usize,
    /// The elements that hold the array's values.
    pub filled: Span,
    /// The elements that may have been changed.
    pub changed: Span,
    /// How often it is mapped.
    pub maps: u32,
}

// SAFETY: the memory is the component's own, and calls into it are serialised.
unsafe impl Send for Staging {}

impl Staging {
    /// Zeros for a whole base.
    pub fn new(host: Host, base: &Base) -> Result<Staging> {
        let bytes = (base.bytes() as usize).max(1);
        let data = host.alloc(bytes, true)?;
        Ok(Staging { host, data, bytes, filled: Span::default(), changed: Span::default(), maps: 0 })
    }

    /// The address of element 0.
    pub fn address(&self) -> *mut u8 {
        self.data
    }

    /// The bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the memory is this value's.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.bytes) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: allocated with this size, and no longer lent.
        unsafe { self.host.free(self.data, self.bytes) };
    }
}

//! Copies of bases on rank 0 that the program has mapped.

use crate::plan::boxes::Span;
use bh_bytecode::Base;
use bh_core::component::Host;
use bh_core::error::Result;

/// A copy of a base, filled as far as the program has asked for it.
pub struct MapCopy {
    host: Host,
    data: *mut u8,
    bytes: usize,
    /// The elements with the array's values.
    pub filled: Span,
    /// The elements that the program may have changed.
    pub changed: Span,
    /// How many maps use it.
    pub maps: u32,
}

// SAFETY: the value owns its memory, and the cluster's lock serialises all access.
unsafe impl Send for MapCopy {}

impl MapCopy {
    /// Creates a copy of zeros.
    pub fn new(host: Host, base: &Base) -> Result<MapCopy> {
        let bytes = (base.bytes() as usize).max(1);
        let data = host.alloc(bytes, true)?;
        Ok(MapCopy { host, data, bytes, filled: Span::default(), changed: Span::default(), maps: 0 })
    }

    /// The address of element 0.
    pub fn address(&self) -> *mut u8 {
        self.data
    }

    /// The memory's bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `data` is an allocation of `bytes` initialised bytes that this value owns.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.bytes) }
    }
}

impl Drop for MapCopy {
    fn drop(&mut self) {
        // SAFETY: `alloc` returned this address for this size, and the program's maps have ended.
        unsafe { self.host.free(self.data, self.bytes) };
    }
}

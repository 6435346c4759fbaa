//! Working memory of one participant of a kernel. It grows when a kernel needs more, and is kept.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Bytes on a cache-line boundary.
pub(crate) struct Aligned {
    data: *mut u8,
    bytes: usize,
}

// SAFETY: it owns its memory.
unsafe impl Send for Aligned {}

impl Aligned {
    pub(crate) const fn empty() -> Aligned {
        Aligned { data: std::ptr::null_mut(), bytes: 0 }
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 64).unwrap_or_else(|_| handle_alloc_error(Layout::new::<u64>()))
    }

    /// At least this many bytes; what was there is lost if there were fewer.
    pub(crate) fn reserve(&mut self, bytes: usize) -> *mut u8 {
        if bytes > self.bytes {
            self.release();
            let bytes = bytes.next_power_of_two().max(4096);
            let layout = Aligned::layout(bytes);
            // SAFETY: the layout has a size.
            self.data = unsafe { alloc(layout) };
            if self.data.is_null() {
                handle_alloc_error(layout);
            }
            self.bytes = bytes;
        }
        self.data
    }

    fn release(&mut self) {
        if self.bytes > 0 {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.data, Aligned::layout(self.bytes)) };
            self.bytes = 0;
        }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        self.release();
    }
}

/// What one participant works with.
pub(crate) struct Scratch {
    /// Registers and constants.
    pub(crate) registers: Aligned,
    /// Lanes of folds.
    pub(crate) lanes: Aligned,
    /// The pointer table of the running program.
    pub(crate) table: Vec<*mut u8>,
    /// Slot positions at several levels of the loop nest.
    pub(crate) positions: [Vec<*mut u8>; 3],
    /// The slot position of each line operation when it last ran.
    pub(crate) line_marks: Vec<*mut u8>,
    /// Indices of the loops around lines.
    pub(crate) indices: [Vec<i64>; 2],
}

// SAFETY: the pointers are only meaningful while a kernel runs.
unsafe impl Send for Scratch {}

impl Scratch {
    pub(crate) const fn new() -> Scratch {
        Scratch {
            registers: Aligned::empty(),
            lanes: Aligned::empty(),
            table: Vec::new(),
            positions: [const { Vec::new() }; 3],
            line_marks: Vec::new(),
            indices: [const { Vec::new() }; 2],
        }
    }
}

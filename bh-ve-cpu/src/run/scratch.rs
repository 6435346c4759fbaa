//! Working memory of one participant of a kernel. It grows when a kernel needs more, and is kept.

use bh_core::abi::status;
use bh_core::{Error, Result};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// The size of the system's huge pages, on x86-64.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes that working memory of at least `bytes` has.
pub(crate) fn taken(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes.checked_next_power_of_two().unwrap_or(bytes).max(4096) }
}

/// Bytes on a cache-line boundary; many bytes on huge pages, where the first touch of all is one visit to the system.
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
        Aligned::try_layout(bytes).unwrap_or_else(|| handle_alloc_error(Layout::new::<u64>()))
    }

    fn try_layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, if bytes >= HUGE_PAGE { HUGE_PAGE } else { 64 }).ok()
    }

    /// At least this many bytes, of a size that kernels bound; what was there is lost if there were fewer.
    pub(crate) fn reserve(&mut self, bytes: usize) -> *mut u8 {
        self.try_reserve(bytes).unwrap_or_else(|_| handle_alloc_error(Aligned::layout(bytes)))
    }

    /// [`Aligned::reserve`] for sizes that arrays decide.
    pub(crate) fn try_reserve(&mut self, bytes: usize) -> Result<*mut u8> {
        if bytes > self.bytes {
            self.release();
            let wanted = taken(bytes);
            // SAFETY: the layout has a size.
            let data = Aligned::try_layout(wanted).map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) });
            if data.is_null() {
                let text = format!("out of memory: {bytes} bytes for intermediate results are not to be had");
                return Err(Error::new(status::MEMORY, text));
            }
            if wanted >= HUGE_PAGE {
                // SAFETY: whole pages of the allocation. Advice only: small pages are right too.
                unsafe { libc::madvise(data.cast(), wanted, libc::MADV_HUGEPAGE) };
            }
            (self.data, self.bytes) = (data, wanted);
        }
        Ok(self.data)
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

/// The parts of a [`Scratch`] that block operations work on.
pub(crate) struct FrameScratch {
    /// Registers and constants.
    pub(crate) registers: Aligned,
    /// The pointer table of the running program.
    pub(crate) table: Vec<*mut u8>,
    /// The slot position of each line operation when it last ran.
    pub(crate) line_marks: Vec<*mut u8>,
}

/// What one participant works with.
pub(crate) struct Scratch {
    pub(crate) frame: FrameScratch,
    /// Lanes of folds.
    pub(crate) lanes: Aligned,
    /// Where the lanes of each fold are.
    pub(crate) accumulators: Vec<*mut u8>,
    /// Slot positions at two levels of the loop nest.
    pub(crate) positions: [Vec<*mut u8>; 2],
    /// Indices of the loops around lines.
    pub(crate) indices: [Vec<i64>; 2],
    /// Rows of arrays that a sweep keeps out of memory.
    pub(crate) rows: Aligned,
    /// Where the slots of a sweep's nest begin.
    pub(crate) slots: Vec<*mut u8>,
}

/// What one nest needs of a [`Scratch`].
pub(crate) struct Parts<'a> {
    pub(crate) frame: &'a mut FrameScratch,
    pub(crate) lanes: &'a mut Aligned,
    pub(crate) accumulators: &'a mut Vec<*mut u8>,
    pub(crate) positions: &'a mut [Vec<*mut u8>; 2],
    pub(crate) indices: &'a mut [Vec<i64>; 2],
}

// SAFETY: the pointers are only meaningful while a kernel runs.
unsafe impl Send for Scratch {}

impl Scratch {
    pub(crate) const fn new() -> Scratch {
        Scratch {
            frame: FrameScratch { registers: Aligned::empty(), table: Vec::new(), line_marks: Vec::new() },
            lanes: Aligned::empty(),
            accumulators: Vec::new(),
            positions: [const { Vec::new() }; 2],
            indices: [const { Vec::new() }; 2],
            rows: Aligned::empty(),
            slots: Vec::new(),
        }
    }

    /// What one nest needs.
    pub(crate) fn parts(&mut self) -> Parts<'_> {
        let Scratch { frame, lanes, accumulators, positions, indices, .. } = self;
        Parts { frame, lanes, accumulators, positions, indices }
    }
}

//! Working memory that grows when a kernel needs more, and is kept.

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
                let text = format!("out of memory: cannot allocate {bytes} bytes for intermediate results");
                return Err(Error::new(status::MEMORY, text));
            }
            if wanted >= HUGE_PAGE {
                // SAFETY: whole pages of the allocation. Advice only: small pages are right too.
                #[cfg(target_os = "linux")]
                unsafe {
                    libc::madvise(data.cast(), wanted, libc::MADV_HUGEPAGE)
                };
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

/// Working memory of block operations.
pub(crate) struct BlockScratch {
    /// Registers and constants.
    pub(crate) registers: Aligned,
    /// The pointer table of the running program.
    pub(crate) table: Vec<*mut u8>,
    /// The slot position of each line operation when it last ran.
    pub(crate) line_marks: Vec<*mut u8>,
}

impl BlockScratch {
    pub(crate) const fn new() -> BlockScratch {
        BlockScratch { registers: Aligned::empty(), table: Vec::new(), line_marks: Vec::new() }
    }
}

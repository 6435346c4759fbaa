//! Large buffers, mapped directly from the system.
//!
//! Successive buffers begin at different offsets in a page. Kernels walk many arrays in step, and rows at the same
//! offset would compete for the same few cache sets.

use super::LINE;
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the largest ordinary pages of any system (AArch64): the parts of a mapping that are unmapped begin and end
/// at page boundaries.
const LARGEST_PAGE: usize = 64 << 10;
const HUGE_PAGE: usize = 2 << 20;
/// Buffers of at least this size are on huge pages.
const HUGE: usize = 2 * HUGE_PAGE;
/// The number of different offsets of successive buffers and their distance: a page for the sets of second-level
/// caches, and five lines for those of first-level caches.
const COLOURS: usize = 64;
const APART: usize = 4096 + 5 * LINE;

/// The header in the cache line before a buffer.
#[derive(Clone, Copy)]
struct Mapping {
    start: *mut u8,
    bytes: usize,
}

/// At least `bytes` zeroed bytes, aligned to 64; `huge_pages` requests huge pages if the size justifies them.
pub(super) fn map(bytes: usize, huge_pages: bool) -> Option<*mut u8> {
    static COLOUR: AtomicUsize = AtomicUsize::new(0);
    const { assert!(size_of::<Mapping>() <= LINE) };
    let colour = COLOUR.fetch_add(1, Ordering::Relaxed) % COLOURS;
    let skew = LINE + colour * APART;
    let mapping = map_pages(bytes.checked_add(skew)?, huge_pages && bytes >= HUGE)?;
    // SAFETY: the mapping has room for the skew, a multiple of a line that is at least one, and for the buffer.
    unsafe {
        let data = mapping.start.add(skew);
        data.sub(LINE).cast::<Mapping>().write(mapping);
        Some(data)
    }
}

/// Returns a buffer to the system.
///
/// # Safety
/// `data` must come from [`map`], must not have been unmapped, and must not be used afterwards.
pub(super) unsafe fn unmap(data: *mut u8) {
    // SAFETY: `map` wrote the mapping to the line before `data`, and nobody uses its pages any more, as `# Safety`
    // asks.
    unsafe {
        let Mapping { start, bytes } = data.sub(LINE).cast::<Mapping>().read();
        libc::munmap(start.cast(), bytes);
    }
}

/// Zeroed pages; huge ones begin at a multiple of their size.
fn map_pages(bytes: usize, huge: bool) -> Option<Mapping> {
    let slack = if huge { HUGE_PAGE } else { 0 };
    let bytes = bytes.checked_next_multiple_of(LARGEST_PAGE)?;
    let total = bytes.checked_add(slack)?;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous mapping touches nothing that exists.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), total, access, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    let start: *mut u8 = mapped.cast();
    if !huge {
        return Some(Mapping { start, bytes });
    }
    let head = start.align_offset(HUGE_PAGE);
    // SAFETY: head and tail are whole pages of the mapping above, outside the part that is returned.
    unsafe {
        if head > 0 {
            libc::munmap(start.cast(), head);
        }
        let start = start.add(head);
        if slack > head {
            libc::munmap(start.add(bytes).cast(), slack - head);
        }
        // Only a hint: a system without huge pages refuses, and small pages work too.
        #[cfg(target_os = "linux")]
        libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
        Some(Mapping { start, bytes })
    }
}

//! A memory reserve: if the system has no memory, small allocations of Rust code use the reserve instead of ending the
//! process, and new calls are refused from then on.
//!
//! Rust ends a process whose allocation fails. This allocator asks the system and, if that fails, a reserve in the
//! library's own data, so that running work can be finished or abandoned in order. Arrays never use it.

use crate::abi::status;
use crate::error::{Error, Result};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of the reserve. Unused pages take no memory.
const SIZE: usize = 4 << 20;
/// The allocation unit of the reserve in bytes, and its strictest alignment: two cache lines, as thread queues request.
const PIECE: usize = 128;
const PIECES: usize = SIZE / PIECE;
/// The largest allocation from the reserve in bytes: larger ones are for data, made by code that handles failures.
const LARGEST: usize = 1 << 20;

#[repr(align(128))]
struct Bytes(UnsafeCell<[u8; SIZE]>);

/// The units in use, one bit each.
struct Taken(UnsafeCell<[u64; PIECES / 64]>);

// SAFETY: a unit is used only by its current owner.
unsafe impl Sync for Bytes {}
// SAFETY: used under the lock alone.
unsafe impl Sync for Taken {}

static BYTES: Bytes = Bytes(UnsafeCell::new([0; SIZE]));
static TAKEN: Taken = Taken(UnsafeCell::new([0; PIECES / 64]));
static LOCKED: AtomicBool = AtomicBool::new(false);
/// The number of units in use.
static USED: AtomicUsize = AtomicUsize::new(0);

#[cfg(debug_assertions)]
thread_local! {
    static COUNT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[inline(always)]
fn count() {
    #[cfg(debug_assertions)]
    COUNT.set(COUNT.get() + 1);
}

/// Allocations of this thread so far, for tests; 0 without debug assertions.
pub fn allocations() -> usize {
    #[cfg(debug_assertions)]
    return COUNT.get();
    #[cfg(not(debug_assertions))]
    0
}

/// The allocator of every library and program that contains bh-core.
pub struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: either the system's memory or the reserve's, each given back to where it came from.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: `System.alloc` asks for what `GlobalAlloc::alloc` asks: a layout whose size is not 0.
        let data = unsafe { System.alloc(layout) };
        if data.is_null() { take(layout) } else { data }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `System.alloc_zeroed` asks for what `GlobalAlloc::alloc_zeroed` asks: a layout whose size is not 0.
        let data = unsafe { System.alloc_zeroed(layout) };
        if !data.is_null() {
            return data;
        }
        let data = take(layout);
        if !data.is_null() {
            // SAFETY: the pieces have as many bytes.
            unsafe { ptr::write_bytes(data, 0, layout.size()) };
        }
        data
    }

    #[inline]
    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        if is_reserve(data) {
            give_back(data, layout);
        } else {
            // SAFETY: memory outside the reserve was allocated by `System`, and with this layout, as
            // `GlobalAlloc::dealloc` asks.
            unsafe { System.dealloc(data, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, data: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_reserve(data) {
            // SAFETY: memory outside the reserve was allocated by `System`, and with this layout, as
            // `GlobalAlloc::realloc` asks; so is `size` not 0, and legal for the alignment.
            let moved = unsafe { System.realloc(data, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: `size` is not 0, and legal for the alignment, as `GlobalAlloc::realloc` asks; the new block is no
        // part of the old one, and both have the smaller of their sizes.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(data, moved, layout.size().min(size));
                self.dealloc(data, layout);
            }
            moved
        }
    }
}

#[inline]
fn is_reserve(data: *mut u8) -> bool {
    data.addr().wrapping_sub(BYTES.0.get().addr()) < SIZE
}

/// Runs `body` on the bits.
fn with_bits<R>(body: impl FnOnce(&mut [u64; PIECES / 64]) -> R) -> R {
    while LOCKED.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::hint::spin_loop();
    }
    // SAFETY: the lock is held.
    let result = body(unsafe { &mut *TAKEN.0.get() });
    LOCKED.store(false, Ordering::Release);
    result
}

/// Memory from the reserve; null if no run of free units is long enough.
#[cold]
fn take(layout: Layout) -> *mut u8 {
    let wanted = layout.size().div_ceil(PIECE).max(1);
    if layout.size() > LARGEST || layout.align() > PIECE {
        return ptr::null_mut();
    }
    let first = with_bits(|bits| {
        let mut free = 0;
        for piece in 0..PIECES {
            free = if bits[piece / 64] >> (piece % 64) & 1 == 0 { free + 1 } else { 0 };
            if free == wanted {
                let first = piece + 1 - wanted;
                (first..=piece).for_each(|piece| bits[piece / 64] |= 1 << (piece % 64));
                return Some(first);
            }
        }
        None
    });
    let Some(first) = first else { return ptr::null_mut() };
    USED.fetch_add(wanted, Ordering::Relaxed);
    BYTES.0.get().cast::<u8>().wrapping_add(first * PIECE)
}

#[cold]
fn give_back(data: *mut u8, layout: Layout) {
    let count = layout.size().div_ceil(PIECE).max(1);
    let first = (data.addr() - BYTES.0.get().addr()) / PIECE;
    with_bits(|bits| (first..first + count).for_each(|piece| bits[piece / 64] &= !(1 << (piece % 64))));
    USED.fetch_sub(count, Ordering::Relaxed);
}

/// Fails if half of the reserve is in use: no new work may begin then.
#[inline]
pub fn check() -> Result<()> {
    if USED.load(Ordering::Relaxed) < PIECES / 2 { Ok(()) } else { Err(short()) }
}

#[cold]
fn short() -> Error {
    Error::new(
        status::MEMORY,
        "out of memory: the system has none for what bh keeps about the program; free some first",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_given_out_once_and_come_back() {
        let layouts =
            [1, 128, 129, 5000, LARGEST].map(|size| Layout::from_size_align(size, [8, 128][size % 2]).unwrap());
        let before = USED.load(Ordering::Relaxed);
        let blocks: Vec<(*mut u8, Layout)> = layouts.iter().map(|&layout| (take(layout), layout)).collect();
        for (number, &(data, layout)) in blocks.iter().enumerate() {
            assert!(is_reserve(data) && data.addr().is_multiple_of(PIECE));
            // SAFETY: the block was just given out.
            unsafe { ptr::write_bytes(data, number as u8, layout.size()) };
        }
        for (number, &(data, layout)) in blocks.iter().enumerate() {
            assert!(
                // SAFETY: as above, and written.
                unsafe { std::slice::from_raw_parts(data, layout.size()) }.iter().all(|&byte| byte == number as u8)
            );
        }
        assert!(take(Layout::from_size_align(LARGEST + 1, 8).unwrap()).is_null());
        assert!(take(Layout::from_size_align(8, 4096).unwrap()).is_null());
        for (data, layout) in blocks {
            // SAFETY: each is given back once, the last one after it moved to the system's memory.
            unsafe {
                let data = Allocator.realloc(data, layout, 3 * layout.size());
                assert!(!is_reserve(data));
                Allocator.dealloc(data, Layout::from_size_align(3 * layout.size(), layout.align()).unwrap());
            }
        }
        assert_eq!(USED.load(Ordering::Relaxed), before);
        let most: Vec<*mut u8> = (0..3).map(|_| take(Layout::from_size_align(LARGEST, 8).unwrap())).collect();
        assert_eq!(check().unwrap_err().status, status::MEMORY);
        most.into_iter().for_each(|data| give_back(data, Layout::from_size_align(LARGEST, 8).unwrap()));
        check().unwrap();
    }
}

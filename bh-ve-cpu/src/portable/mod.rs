//! Block primitives in plain Rust, expanded from the opcode table: every opcode and type, one element at a time.
//!
//! They are the reference for the vector primitives and serve what those leave out.

mod elementwise;
mod moves;

pub(crate) use elementwise::lookup;
pub(crate) use moves::{copy_streaming, fill, gather_strided, iota, philox, scatter_strided};

/// An element-wise operation on `n` elements. `dst` may be exactly equal to an input of the same element size, and is
/// otherwise disjoint from the inputs; pointers need no alignment.
pub(crate) type PrimFn = unsafe fn(n: usize, dst: *mut u8, a: *const u8, b: *const u8, c: *const u8);
/// `lanes[i % 32] = op(lanes[i % 32], a[i])` for `i < n`.
pub(crate) type LanesFn = unsafe fn(n: usize, lanes: *mut u8, a: *const u8);
/// A copy with a stride in bytes on one side.
pub(crate) type StridedFn = unsafe fn(n: usize, dst: *mut u8, src: *const u8, stride: isize);
/// `dst[i] = start + i * stride`, converted.
pub(crate) type IotaFn = unsafe fn(n: usize, dst: *mut u8, start: i64, stride: i64);
/// `dst[i]` = the random number of `start + i * stride` under a key.
pub(crate) type PhiloxFn = unsafe fn(n: usize, dst: *mut u8, start: i64, stride: i64, key: u32);
/// All of `dst` becomes the element at `value`.
pub(crate) type FillFn = unsafe fn(n: usize, dst: *mut u8, value: *const u8);

/// Lanes of a fold: part of the fixed reduction tree, whatever the instruction set.
pub(crate) const LANES: usize = 32;

/// Reads element `i` of an unaligned array.
///
/// # Safety
/// The element must be readable; bools must be 0 or 1.
#[inline(always)]
unsafe fn get<T: Copy>(array: *const u8, i: usize) -> T {
    // SAFETY: promised by the caller.
    unsafe { array.cast::<T>().add(i).read_unaligned() }
}

/// Writes element `i` of an unaligned array.
///
/// # Safety
/// The element must be writable.
#[inline(always)]
unsafe fn put<T>(array: *mut u8, i: usize, value: T) {
    // SAFETY: promised by the caller.
    unsafe { array.cast::<T>().add(i).write_unaligned(value) }
}

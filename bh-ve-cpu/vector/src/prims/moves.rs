//! Copies with strides, copies that bypass the caches, and fills.

use super::levels::{at_level, entry, for_each_level};
use crate::simd::Isa;
use bh_bytecode::c128;
use std::mem::MaybeUninit;

/// A copy of `n` elements with a stride in bytes on one side.
///
/// # Safety
/// The dense side must be valid for `n` elements, the other at every multiple of the stride up to `n - 1`; both need the
/// alignment of their elements, and they must not overlap. The level must be available.
pub type StridedFn = unsafe extern "C" fn(n: usize, dst: *mut u8, src: *const u8, stride: isize);

/// All `n` elements at `dst` become the element at `value`.
///
/// # Safety
/// `dst` must be valid for `n` elements and `value` for one, apart from `dst`.
pub type FillFn = unsafe extern "C" fn(n: usize, dst: *mut u8, value: *const u8);

/// A copy of bytes.
///
/// # Safety
/// Both sides must be valid for the bytes, and they must not overlap.
pub type CopyFn = unsafe extern "C" fn(bytes: usize, dst: *mut u8, src: *const u8);

/// Evaluates an expression with a plain type of an element size: 1, 2, 4, 8 or 16 bytes.
macro_rules! with_size {
    ($size:expr, $type:ident => $body:expr) => {
        match $size {
            1 => {
                type $type = u8;
                $body
            }
            2 => {
                type $type = u16;
                $body
            }
            4 => {
                type $type = u32;
                $body
            }
            8 => {
                type $type = u64;
                $body
            }
            _ => {
                // The largest element's alignment is that of its parts.
                type $type = c128;
                $body
            }
        }
    };
}

/// # Safety
/// As [`StridedFn`].
#[inline(always)]
unsafe fn gather_block<T: Copy>(n: usize, dst: *mut u8, src: *const u8, stride: isize) {
    let size = size_of::<T>() as isize;
    // SAFETY: `dst` has room for `n` aligned elements apart from `src`, which has one at each multiple of the stride
    // below `n`, as [`StridedFn`] asks; MaybeUninit takes any memory.
    unsafe {
        let out = std::slice::from_raw_parts_mut(dst.cast::<MaybeUninit<T>>(), n);
        if stride == size {
            dst.copy_from_nonoverlapping(src, n * size_of::<T>());
        } else if stride == 0 {
            fill_with::<T>(n, dst, src);
        } else if stride == -size {
            every::<T, -1>(out, src);
        } else if stride == 2 * size {
            every::<T, 2>(out, src);
        } else if stride == 3 * size {
            every::<T, 3>(out, src);
        } else if stride == 4 * size {
            every::<T, 4>(out, src);
        } else {
            for (i, out) in out.iter_mut().enumerate() {
                out.write(*src.offset(i as isize * stride).cast::<T>());
            }
        }
    }
}

/// Elements at a distance that is known when this is compiled: read in whole vectors.
///
/// # Safety
/// `src` must be valid for reading an aligned element at `STEP` elements' distance from each other, as many as `out`
/// has.
#[inline(always)]
unsafe fn every<T: Copy, const STEP: isize>(out: &mut [MaybeUninit<T>], src: *const u8) {
    for (i, out) in out.iter_mut().enumerate() {
        // SAFETY: there is an element at every multiple of the stride.
        out.write(unsafe { *src.cast::<T>().offset(i as isize * STEP) });
    }
}

macro_rules! level {
    ($module:ident, $bytes:literal $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            entry!([$($feature)?] gather [T: Copy](
                n: usize, dst: *mut u8, src: *const u8, stride: isize,
            ) = gather_block::<T>);
        }
    };
}
for_each_level!(level);

unsafe extern "C" fn scatter<T: Copy>(n: usize, dst: *mut u8, src: *const u8, stride: isize) {
    // SAFETY: `src` has `n` aligned elements, and `dst` room for one at each multiple of the stride below `n`, apart
    // from them, as [`StridedFn`] asks.
    unsafe {
        if stride == size_of::<T>() as isize {
            dst.copy_from_nonoverlapping(src, n * size_of::<T>());
        } else {
            for (i, &value) in std::slice::from_raw_parts(src.cast::<T>(), n).iter().enumerate() {
                dst.offset(i as isize * stride).cast::<T>().write(value);
            }
        }
    }
}

unsafe extern "C" fn fill_with<T: Copy>(n: usize, dst: *mut u8, value: *const u8) {
    // SAFETY: `value` leads to an element, and `dst` has room for `n` aligned ones, as [`FillFn`] asks; MaybeUninit
    // takes any memory.
    unsafe {
        let value = value.cast::<T>().read_unaligned();
        std::slice::from_raw_parts_mut(dst.cast::<MaybeUninit<T>>(), n).fill(MaybeUninit::new(value));
    }
}

/// Copies from a strided source to a dense block, for elements of a size in bytes.
pub fn gather_strided(isa: Isa, size: usize) -> StridedFn {
    with_size!(size, T => at_level!(isa, gather::<T> as StridedFn))
}

/// Copies from a dense block to a strided destination, for elements of a size in bytes.
pub fn scatter_strided(size: usize) -> StridedFn {
    with_size!(size, T => scatter::<T>)
}

/// Fills blocks with elements of a size in bytes.
pub fn fill(size: usize) -> FillFn {
    with_size!(size, T => fill_with::<T>)
}

/// Does [`copy_streaming`] bypass the caches?
pub const STREAMS: bool = cfg!(target_arch = "x86_64");

/// A copy whose stores bypass the caches where the machine can do that. The data is visible to other threads only after
/// [`fence`], so call that before a part of an array is handed on.
pub fn copy_streaming() -> CopyFn {
    #[cfg(target_arch = "x86_64")]
    return streaming;
    #[cfg(not(target_arch = "x86_64"))]
    return plain;
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn plain(bytes: usize, dst: *mut u8, src: *const u8) {
    // SAFETY: `src` is readable and `dst` writable for `bytes` bytes, and they are apart, as [`CopyFn`] asks.
    unsafe { dst.copy_from_nonoverlapping(src, bytes) }
}

/// The streaming store of the baseline is as fast as wider ones: the memory is the limit.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn streaming(bytes: usize, dst: *mut u8, src: *const u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let head = dst.align_offset(64).min(bytes);
    let lines = (bytes - head) / 64;
    // SAFETY: head, lines and tail make up `bytes`; the lines are aligned.
    unsafe {
        dst.copy_from_nonoverlapping(src, head);
        let (line_dst, line_src) = (dst.add(head).cast::<__m128i>(), src.add(head).cast::<__m128i>());
        for line in 0..lines {
            for part in 0..4 {
                _mm_stream_si128(line_dst.add(line * 4 + part), _mm_loadu_si128(line_src.add(line * 4 + part)));
            }
        }
        let done = head + lines * 64;
        dst.add(done).copy_from_nonoverlapping(src.add(done), bytes - done);
    }
}

/// Makes streamed data visible before anything that follows.
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

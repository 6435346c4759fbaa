//! Copies, fills and generated numbers.

use super::{FillFn, IotaFn, PhiloxFn, StridedFn, get, put};
use bh_bytecode::philox::Random;
use bh_bytecode::{CastFrom, DType, Element, c128, types_of};

/// Evaluates an expression with a plain type of the given element size.
macro_rules! with_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = c128;
                $body
            }
        }
    };
}

/// Copies from a strided source to a dense destination, for elements of this size.
pub(crate) fn gather_strided(size: usize) -> StridedFn {
    unsafe fn run<T: Copy>(n: usize, dst: *mut u8, src: *const u8, stride: isize) {
        for i in 0..n {
            // SAFETY: promised by the caller.
            unsafe { put::<T>(dst, i, get(src.offset(i as isize * stride), 0)) }
        }
    }
    with_size!(size, T => run::<T>)
}

/// Copies from a dense source to a strided destination, for elements of this size.
pub(crate) fn scatter_strided(size: usize) -> StridedFn {
    unsafe fn run<T: Copy>(n: usize, dst: *mut u8, src: *const u8, stride: isize) {
        for i in 0..n {
            // SAFETY: promised by the caller.
            unsafe { put::<T>(dst.offset(i as isize * stride), 0, get(src, i)) }
        }
    }
    with_size!(size, T => run::<T>)
}

/// Sets all elements of this size to one.
pub(crate) fn fill(size: usize) -> FillFn {
    unsafe fn run<T: Copy>(n: usize, dst: *mut u8, value: *const u8) {
        // SAFETY: promised by the caller.
        let value: T = unsafe { get(value, 0) };
        for i in 0..n {
            // SAFETY: promised by the caller.
            unsafe { put(dst, i, value) }
        }
    }
    with_size!(size, T => run::<T>)
}

/// Copies bytes to memory that is not read again soon.
///
/// # Safety
/// The ranges must be valid and equal or disjoint.
pub(crate) unsafe fn copy_streaming(bytes: usize, dst: *mut u8, src: *const u8) {
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy(src, dst, bytes) }
}

/// RANGE on a block.
pub(crate) fn iota(dtype: DType) -> Option<IotaFn> {
    unsafe fn run<T: Element + CastFrom<i64>>(n: usize, dst: *mut u8, start: i64, stride: i64) {
        for i in 0..n {
            let number = start.wrapping_add((i as i64).wrapping_mul(stride));
            // SAFETY: promised by the caller.
            unsafe { put(dst, i, T::cast_from(number)) }
        }
    }
    macro_rules! arms {
        ([$(($type:ty, $variant:ident)),*]) => {
            match dtype {
                $(DType::$variant => Some(run::<$type>),)*
                _ => None,
            }
        };
    }
    types_of!(REAL, arms)
}

/// RANDOM on a block.
pub(crate) fn philox(dtype: DType) -> Option<PhiloxFn> {
    unsafe fn run<T: Random>(n: usize, dst: *mut u8, start: i64, stride: i64, key: u32) {
        for i in 0..n {
            let number = start.wrapping_add((i as i64).wrapping_mul(stride));
            // SAFETY: promised by the caller.
            unsafe { put(dst, i, T::random(number as u64, key)) }
        }
    }
    macro_rules! arms {
        ([$(($type:ty, $variant:ident)),*]) => {
            match dtype {
                $(DType::$variant => Some(run::<$type>),)*
                _ => None,
            }
        };
    }
    types_of!(RANDOM, arms)
}

//! Block entry points: loops over vectors, instantiated per function and instruction-set level.

use super::{Binary, PrimFn, Unary};
use crate::simd::{Isa, MAX_LANES, Vector};

/// Element types that blocks hold; all are computed in `f64` lanes.
pub(crate) trait Lane: Copy + 'static {
    /// May the functions use their short `f32` forms?
    const SINGLE: bool;
    /// Fills unused lanes; harmless for every function.
    const PADDING: Self;
    /// Reads one vector.
    ///
    /// # Safety
    /// `p` must be valid for `LANES` elements.
    unsafe fn load<V: Vector>(p: *const Self) -> V;
    /// Writes one vector.
    ///
    /// # Safety
    /// `p` must be valid for `LANES` elements.
    unsafe fn store<V: Vector>(v: V, p: *mut Self);
}

impl Lane for f64 {
    const SINGLE: bool = false;
    const PADDING: f64 = 0.75;
    #[inline(always)]
    unsafe fn load<V: Vector>(p: *const f64) -> V {
        // SAFETY: the caller vouches for `p`.
        unsafe { V::load(p) }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(v: V, p: *mut f64) {
        // SAFETY: the caller vouches for `p`.
        unsafe { v.store(p) }
    }
}

impl Lane for f32 {
    const SINGLE: bool = true;
    const PADDING: f32 = 0.75;
    #[inline(always)]
    unsafe fn load<V: Vector>(p: *const f32) -> V {
        // SAFETY: the caller vouches for `p`.
        unsafe { V::load_f32(p) }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(v: V, p: *mut f32) {
        // SAFETY: the caller vouches for `p`.
        unsafe { v.store_f32(p) }
    }
}

/// What a unary function does to one vector of elements of type T.
#[inline(always)]
fn apply_unary<V: Vector, K: Unary, T: Lane>(x: V) -> V {
    if T::SINGLE { K::eval::<V, true>(x) } else { K::eval::<V, false>(x) }
}

#[inline(always)]
fn apply_binary<V: Vector, K: Binary, T: Lane>(x: V, y: V) -> V {
    if T::SINGLE { K::eval::<V, true>(x, y) } else { K::eval::<V, false>(x, y) }
}

/// # Safety
/// See [`PrimFn`]; the level must be available.
#[inline(always)]
unsafe fn unary_block<V: Vector, K: Unary, T: Lane>(n: usize, dst: *mut T, a: *const T) {
    let whole = n - n % V::LANES;
    let mut i = 0;
    // SAFETY: `i + LANES <= n`; the tail goes through arrays of at least LANES elements.
    unsafe {
        while i < whole {
            T::store(apply_unary::<V, K, T>(T::load(a.add(i))), dst.add(i));
            i += V::LANES;
        }
        if i < n {
            let mut padded = [T::PADDING; MAX_LANES];
            a.add(i).copy_to_nonoverlapping(padded.as_mut_ptr(), n - i);
            T::store(apply_unary::<V, K, T>(T::load(padded.as_ptr())), padded.as_mut_ptr());
            dst.add(i).copy_from_nonoverlapping(padded.as_ptr(), n - i);
        }
    }
}

/// # Safety
/// See [`PrimFn`]; the level must be available.
#[inline(always)]
unsafe fn binary_block<V: Vector, K: Binary, T: Lane>(n: usize, dst: *mut T, a: *const T, b: *const T) {
    let whole = n - n % V::LANES;
    let mut i = 0;
    // SAFETY: `i + LANES <= n`; the tail goes through arrays of at least LANES elements.
    unsafe {
        while i < whole {
            T::store(apply_binary::<V, K, T>(T::load(a.add(i)), T::load(b.add(i))), dst.add(i));
            i += V::LANES;
        }
        if i < n {
            let (mut left, mut right) = ([T::PADDING; MAX_LANES], [T::PADDING; MAX_LANES]);
            a.add(i).copy_to_nonoverlapping(left.as_mut_ptr(), n - i);
            b.add(i).copy_to_nonoverlapping(right.as_mut_ptr(), n - i);
            T::store(apply_binary::<V, K, T>(T::load(left.as_ptr()), T::load(right.as_ptr())), left.as_mut_ptr());
            dst.add(i).copy_from_nonoverlapping(left.as_ptr(), n - i);
        }
    }
}

/// The entry points of one level.
macro_rules! level {
    ($module:ident, $vector:ident $(, $feature:literal)?) => {
        mod $module {
            use super::*;
            use crate::simd::$vector;

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn unary<K: Unary, T: Lane>(
                n: usize, dst: *mut u8, a: *const u8, _b: *const u8, _c: *const u8,
            ) {
                // SAFETY: the contract of PrimFn.
                unsafe { unary_block::<$vector, K, T>(n, dst.cast(), a.cast()) }
            }

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn binary<K: Binary, T: Lane>(
                n: usize, dst: *mut u8, a: *const u8, b: *const u8, _c: *const u8,
            ) {
                // SAFETY: the contract of PrimFn.
                unsafe { binary_block::<$vector, K, T>(n, dst.cast(), a.cast(), b.cast()) }
            }
        }
    };
}

level!(portable, Portable);
#[cfg(target_arch = "x86_64")]
level!(sse2, Sse2);
#[cfg(target_arch = "x86_64")]
level!(avx2, Avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
level!(avx512, Avx512, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma");

/// The entry point of a unary function; levels foreign to this architecture get the portable one.
pub(super) fn unary<K: Unary, T: Lane>(isa: Isa) -> PrimFn {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Sse2 => sse2::unary::<K, T>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::unary::<K, T>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::unary::<K, T>,
        _ => portable::unary::<K, T>,
    }
}

/// The entry point of a binary function; levels foreign to this architecture get the portable one.
pub(super) fn binary<K: Binary, T: Lane>(isa: Isa) -> PrimFn {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Sse2 => sse2::binary::<K, T>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::binary::<K, T>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::binary::<K, T>,
        _ => portable::binary::<K, T>,
    }
}

//! Sums of many blocks, or of their squares, in one pass, with the bits of additions one after the other.

use super::levels::{at_level, for_each_level};
use crate::simd::Isa;
use bh_bytecode::DType;
use std::mem::MaybeUninit;
use std::sync::atomic::{Ordering, compiler_fence};

/// `dst[i] = (((t0[i] + t1[i]) + t2[i]) + ...) * single` for each of `n` elements, or the sum of the terms' squares, plus
/// `single`; without a single element if it is null.
///
/// # Safety
/// `terms` must be valid for `count` pointers (at least one), each valid for `n` aligned elements, `single` null or valid
/// for one element and `dst` for `n`; `dst` may be one of the terms but must not overlap any otherwise. The level must be
/// available.
pub type SumFn = unsafe extern "C" fn(n: usize, dst: *mut u8, terms: *const *const u8, count: usize, single: *const u8);

/// What sums can be made of.
trait Number: Copy + Default {
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                bh_bytecode::scalar::add(self, other)
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                bh_bytecode::scalar::multiply(self, other)
            }
        }
    )*};
}
numbers! { f64 f32 i64 i32 }

/// `K` vectors of `V` elements.
type Vectors<T, const V: usize, const K: usize> = [[T; V]; K];

/// Writes the elements of the sum from `at` on to `out`: they stay in vector registers from the first term to the last.
///
/// # Safety
/// As [`SumFn`], for the `K` vectors of `V` elements that are written.
#[inline(always)]
unsafe fn part<T: Number, const SQUARES: bool, const V: usize, const K: usize>(
    at: usize,
    terms: &[*const u8],
    single: Option<T>,
    out: *mut T,
) {
    // SAFETY: promised by the caller.
    let load = |term: *const u8| unsafe { term.cast::<T>().add(at).cast::<Vectors<T, V, K>>().read_unaligned() };
    // Squares have no negative zeros, so that a sum of them may begin with zero, which keeps all in vectors.
    let (mut sum, rest) = if SQUARES { ([[T::default(); V]; K], terms) } else { (load(terms[0]), &terms[1..]) };
    for &term in rest {
        let values = load(term);
        for vector in 0..K {
            for lane in 0..V {
                let value = values[vector][lane];
                sum[vector][lane] = sum[vector][lane].add(if SQUARES { value.multiply(value) } else { value });
            }
        }
        // The compiler may change the order of integers' sums, and would gather the same lane of several terms.
        compiler_fence(Ordering::SeqCst);
    }
    // Written vector by vector, as the compiler sends the whole by way of the stack.
    for (number, mut vector) in sum.into_iter().enumerate() {
        if let Some(single) = single {
            vector = vector.map(|element| if SQUARES { element.add(single) } else { element.multiply(single) });
        }
        // SAFETY: promised by the caller.
        unsafe { out.add(number * V).cast::<[T; V]>().write_unaligned(vector) };
    }
}

/// The sum in parts of `K` vectors from `at` on, as long as they fit; returns where the rest begins.
///
/// # Safety
/// As [`SumFn`].
#[inline(always)]
unsafe fn parts<T: Number, const SQUARES: bool, const V: usize, const K: usize>(
    mut at: usize,
    n: usize,
    dst: *mut T,
    terms: &[*const u8],
    single: Option<T>,
) -> usize {
    while at + V * K <= n {
        // SAFETY: promised by the caller; the part ends at `n` or before.
        unsafe { part::<T, SQUARES, V, K>(at, terms, single, dst.add(at)) };
        at += V * K;
    }
    at
}

/// Sums in parts of eight vectors of `V` elements, which hide the latency of additions, and of fewer at the end.
///
/// # Safety
/// As [`SumFn`].
#[inline(always)]
unsafe fn sum<T: Number, const SQUARES: bool, const V: usize>(
    n: usize,
    dst: *mut u8,
    terms: *const *const u8,
    count: usize,
    single: *const u8,
) {
    // SAFETY: promised by the caller; all parts end at `n` or before.
    unsafe {
        let terms = std::slice::from_raw_parts(terms, count);
        let dst = dst.cast::<T>();
        let single = (!single.is_null()).then(|| single.cast::<T>().read_unaligned());
        if n < V {
            parts::<T, SQUARES, 1, 1>(0, n, dst, terms, single);
            return;
        }
        // The last vector lies over the one before it. What it needs may be overwritten by then, so it is made first.
        let tail = !n.is_multiple_of(V);
        let mut last = MaybeUninit::<[T; V]>::uninit();
        if tail {
            part::<T, SQUARES, V, 1>(n - V, terms, single, last.as_mut_ptr().cast());
        }
        let at = parts::<T, SQUARES, V, 8>(0, n, dst, terms, single);
        let at = parts::<T, SQUARES, V, 4>(at, n, dst, terms, single);
        let at = parts::<T, SQUARES, V, 2>(at, n, dst, terms, single);
        parts::<T, SQUARES, V, 1>(at, n, dst, terms, single);
        if tail {
            dst.add(n - V).cast::<[T; V]>().write_unaligned(last.assume_init());
        }
    }
}

macro_rules! level {
    ($module:ident, $bytes:literal $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            macro_rules! entry {
                ($name:ident, $type:ty, $squares:literal) => {
                    $(#[target_feature(enable = $feature)])?
                    pub(super) unsafe extern "C" fn $name(
                        n: usize,
                        dst: *mut u8,
                        terms: *const *const u8,
                        count: usize,
                        single: *const u8,
                    ) {
                        // SAFETY: the contract of SumFn.
                        unsafe { sum::<$type, $squares, { $bytes / size_of::<$type>() }>(n, dst, terms, count, single) }
                    }
                };
            }
            entry!(of_f64, f64, false);
            entry!(of_f32, f32, false);
            entry!(of_i64, i64, false);
            entry!(of_i32, i32, false);
            entry!(squares_of_f64, f64, true);
            entry!(squares_of_f32, f32, true);
        }
    };
}
for_each_level!(level);

/// The sum of blocks of a type, or of their squares, where there is one.
pub fn lookup_sum(isa: Isa, dtype: DType, squares: bool) -> Option<SumFn> {
    macro_rules! of {
        ($name:ident) => {
            at_level!(isa, $name as SumFn)
        };
    }
    match (dtype, squares) {
        (DType::F64, false) => Some(of!(of_f64)),
        (DType::F32, false) => Some(of!(of_f32)),
        (DType::I64, false) => Some(of!(of_i64)),
        (DType::I32, false) => Some(of!(of_i32)),
        (DType::F64, true) => Some(of!(squares_of_f64)),
        (DType::F32, true) => Some(of!(squares_of_f32)),
        _ => None,
    }
}

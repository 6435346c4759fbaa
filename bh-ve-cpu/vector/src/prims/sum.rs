//! Sums of many blocks, and of the squares of a few, in one pass, with the bits of additions one after the other.

use super::levels::{at_level, entry, for_each_level};
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

/// The most blocks whose squares are added.
pub const MOST_SQUARES: usize = 4;

/// The numbers that can be summed.
trait Number: Copy {
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
unsafe fn part<T: Number, const V: usize, const K: usize>(
    at: usize,
    terms: &[*const u8],
    factor: Option<T>,
    out: *mut T,
) {
    // SAFETY: each term has the elements that are written.
    let load = |term: *const u8| unsafe { term.cast::<T>().add(at).cast::<Vectors<T, V, K>>().read_unaligned() };
    let mut sum = load(terms[0]);
    for &term in &terms[1..] {
        let values = load(term);
        for vector in 0..K {
            for lane in 0..V {
                sum[vector][lane] = sum[vector][lane].add(values[vector][lane]);
            }
        }
        // The compiler may change the order of integers' sums, and would gather the same lane of several terms.
        compiler_fence(Ordering::SeqCst);
    }
    // Written vector by vector, as the compiler sends the whole by way of the stack.
    for (number, mut vector) in sum.into_iter().enumerate() {
        if let Some(factor) = factor {
            vector = vector.map(|element| element.multiply(factor));
        }
        // SAFETY: there is room for `K` vectors.
        unsafe { out.add(number * V).cast::<[T; V]>().write_unaligned(vector) };
    }
}

/// The sum in parts of `K` vectors from `at` on, as long as they fit; returns where the rest begins.
///
/// # Safety
/// As [`SumFn`].
#[inline(always)]
unsafe fn parts<T: Number, const V: usize, const K: usize>(
    mut at: usize,
    n: usize,
    dst: *mut T,
    terms: &[*const u8],
    factor: Option<T>,
) -> usize {
    while at + V * K <= n {
        // SAFETY: the part ends at `n` or before.
        unsafe { part::<T, V, K>(at, terms, factor, dst.add(at)) };
        at += V * K;
    }
    at
}

/// Sums in parts of eight vectors of `V` elements, which hide the latency of additions, and of fewer at the end.
///
/// # Safety
/// As [`SumFn`].
#[inline(always)]
unsafe fn sum<T: Number, const V: usize>(
    n: usize,
    dst: *mut u8,
    terms: *const *const u8,
    count: usize,
    factor: *const u8,
) {
    // SAFETY: there are `count` terms; all parts end at `n` or before.
    unsafe {
        let terms = std::slice::from_raw_parts(terms, count);
        let dst = dst.cast::<T>();
        let factor = (!factor.is_null()).then(|| factor.cast::<T>().read_unaligned());
        if n < V {
            parts::<T, 1, 1>(0, n, dst, terms, factor);
            return;
        }
        // The last vector overlaps the one before it. Its elements may be overwritten by then, so it is computed first.
        let tail = !n.is_multiple_of(V);
        let mut last = MaybeUninit::<[T; V]>::uninit();
        if tail {
            part::<T, V, 1>(n - V, terms, factor, last.as_mut_ptr().cast());
        }
        let at = parts::<T, V, 8>(0, n, dst, terms, factor);
        let at = parts::<T, V, 4>(at, n, dst, terms, factor);
        let at = parts::<T, V, 2>(at, n, dst, terms, factor);
        parts::<T, V, 1>(at, n, dst, terms, factor);
        if tail {
            dst.add(n - V).cast::<[T; V]>().write_unaligned(last.assume_init());
        }
    }
}

/// The sum of the squares of `N` blocks.
///
/// # Safety
/// As [`SumFn`].
#[inline(always)]
unsafe fn squares<T: Number, const N: usize>(n: usize, dst: *mut T, terms: *const *const u8, single: Option<T>) {
    // SAFETY: there are `N` terms, of `n` elements each, as `dst` has; what is overwritten has been read.
    unsafe {
        let blocks: [*const T; N] = std::array::from_fn(|term| terms.add(term).read().cast());
        for i in 0..n {
            let square = |block: *const T| {
                let element = block.add(i).read();
                element.multiply(element)
            };
            let sum = blocks[1..].iter().fold(square(blocks[0]), |sum, &block| sum.add(square(block)));
            dst.add(i).write(single.map_or(sum, |single| sum.add(single)));
        }
    }
}

/// The sum of the squares of two to [`MOST_SQUARES`] blocks.
///
/// # Safety
/// As [`SumFn`].
#[inline(always)]
unsafe fn sum_of_squares<T: Number>(n: usize, dst: *mut u8, terms: *const *const u8, count: usize, single: *const u8) {
    // SAFETY: `single` is null or an element, and there are `count` terms.
    unsafe {
        let single = (!single.is_null()).then(|| single.cast::<T>().read_unaligned());
        match count {
            2 => squares::<T, 2>(n, dst.cast(), terms, single),
            3 => squares::<T, 3>(n, dst.cast(), terms, single),
            _ => squares::<T, MOST_SQUARES>(n, dst.cast(), terms, single),
        }
    }
}

macro_rules! level {
    ($module:ident, $bytes:literal $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            macro_rules! sums {
                ($name:ident, $sum:expr) => {
                    entry!([$($feature)?] $name [](
                        n: usize, dst: *mut u8, terms: *const *const u8, count: usize, single: *const u8,
                    ) = $sum);
                };
            }
            sums!(of_f64, sum::<f64, { $bytes / size_of::<f64>() }>);
            sums!(of_f32, sum::<f32, { $bytes / size_of::<f32>() }>);
            sums!(of_i64, sum::<i64, { $bytes / size_of::<i64>() }>);
            sums!(of_i32, sum::<i32, { $bytes / size_of::<i32>() }>);
            sums!(squares_of_f64, sum_of_squares::<f64>);
            sums!(squares_of_f32, sum_of_squares::<f32>);
        }
    };
}
for_each_level!(level);

/// The sum of blocks of a type, or of the squares of up to [`MOST_SQUARES`], where there is one.
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

//! Sums of products of blocks in one pass, with the bits of the operations one after the other.

use super::SumFn;
use super::levels::{at_level, for_each_level};
use crate::simd::Isa;
use bh_bytecode::{DType, scalar};
use std::mem::MaybeUninit;

/// What a sum of products is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductSum {
    /// How many products there are: from two to [`MOST_PRODUCTS`].
    pub products: usize,
    /// Is there a block that the first product is added to? It is the first term.
    pub start: bool,
    /// Are the products squares? Each is one term then, and two otherwise.
    pub squares: bool,
}

impl ProductSum {
    /// How many terms there are.
    const fn terms(self) -> usize {
        self.start as usize + self.products * if self.squares { 1 } else { 2 }
    }

    /// The terms that make a product.
    const fn factors(self, product: usize) -> [usize; 2] {
        let first = self.start as usize + product * if self.squares { 1 } else { 2 };
        [first, if self.squares { first } else { first + 1 }]
    }
}

/// The most products of a sum.
pub const MOST_PRODUCTS: usize = 4;
/// The most terms.
const MOST_TERMS: usize = 1 + 2 * MOST_PRODUCTS;
/// Elements that are computed beside the terms where the result replaces one of them.
const BOUNCE: usize = 256;

/// A sum of products as a type.
trait Shape: 'static {
    const SUM: ProductSum;
}

struct Products<const PRODUCTS: usize, const START: bool, const SQUARES: bool>;

impl<const PRODUCTS: usize, const START: bool, const SQUARES: bool> Shape for Products<PRODUCTS, START, SQUARES> {
    const SUM: ProductSum = ProductSum { products: PRODUCTS, start: START, squares: SQUARES };
}

/// The blocks of a sum; as many as it has terms count.
type Blocks = [*const u8; MOST_TERMS];

/// The loop proper; `end` makes the results of the sums.
///
/// # Safety
/// The blocks must have as many elements as `out`, and not overlap it.
#[inline(always)]
unsafe fn fill<S: Shape, T: scalar::Numeric>(out: &mut [MaybeUninit<T>], blocks: &Blocks, end: impl Fn(T) -> T) {
    let blocks = *blocks;
    for (i, out) in out.iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        let at = |term: usize| unsafe { blocks[term].cast::<T>().add(i).read() };
        let product = |number: usize| {
            let [a, b] = S::SUM.factors(number);
            scalar::multiply(at(a), at(b))
        };
        let mut sum = if S::SUM.start { scalar::add(at(0), product(0)) } else { product(0) };
        for number in 1..S::SUM.products {
            sum = scalar::add(sum, product(number));
        }
        out.write(end(sum));
    }
}

macro_rules! level {
    ($module:ident, $bytes:literal $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            $(#[target_feature(enable = $feature)])?
            #[inline(never)]
            unsafe fn apart<S: Shape, T: scalar::Numeric>(
                out: &mut [MaybeUninit<T>],
                blocks: &Blocks,
                single: *const u8,
            ) {
                // SAFETY: the caller vouches for all of them.
                unsafe {
                    if single.is_null() {
                        fill::<S, T>(out, blocks, #[inline(always)] |sum| sum);
                    } else {
                        let single = single.cast::<T>().read_unaligned();
                        fill::<S, T>(out, blocks, #[inline(always)] |sum| scalar::add(sum, single));
                    }
                }
            }

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn entry<S: Shape, T: scalar::Numeric>(
                n: usize,
                dst: *mut u8,
                terms: *const *const u8,
                _: usize,
                single: *const u8,
            ) {
                let mut blocks = [std::ptr::null(); MOST_TERMS];
                // SAFETY: the contract of SumFn; in the second case, terms are read before `dst` overwrites them, at the
                // same indices only.
                unsafe {
                    (0..S::SUM.terms()).for_each(|term| blocks[term] = terms.add(term).read());
                    if !blocks[..S::SUM.terms()].contains(&dst.cast_const()) {
                        let out = std::slice::from_raw_parts_mut(dst.cast::<MaybeUninit<T>>(), n);
                        return apart::<S, T>(out, &blocks, single);
                    }
                    let mut bounce = [const { MaybeUninit::<T>::uninit() }; BOUNCE];
                    for first in (0..n).step_by(BOUNCE) {
                        let count = BOUNCE.min(n - first);
                        let here = blocks.map(|block| block.wrapping_add(first * size_of::<T>()));
                        apart::<S, T>(&mut bounce[..count], &here, single);
                        dst.cast::<T>().add(first).copy_from_nonoverlapping(bounce.as_ptr().cast(), count);
                    }
                }
            }
        }
    };
}
for_each_level!(level);

fn at_level<S: Shape, T: scalar::Numeric>(isa: Isa) -> SumFn {
    at_level!(isa, entry::<S, T>)
}

/// The sum of products of blocks of `f32` or `f64`, one after the other. At its end the single element is added, if any, and
/// not multiplied by.
pub fn lookup_product_sum(isa: Isa, sum: ProductSum, dtype: DType) -> Option<SumFn> {
    macro_rules! shapes {
        ($type:ty, [$($products:literal),*]) => {
            match (sum.products, sum.start, sum.squares) {
                $(
                    ($products, false, false) => Some(at_level::<Products<$products, false, false>, $type>(isa)),
                    ($products, true, false) => Some(at_level::<Products<$products, true, false>, $type>(isa)),
                    ($products, false, true) => Some(at_level::<Products<$products, false, true>, $type>(isa)),
                    ($products, true, true) => Some(at_level::<Products<$products, true, true>, $type>(isa)),
                )*
                _ => None,
            }
        };
    }
    match dtype {
        DType::F64 => shapes!(f64, [2, 3, 4]),
        DType::F32 => shapes!(f32, [2, 3, 4]),
        _ => None,
    }
}

//! Sums of products of blocks in one pass, with the bits of the operations one after the other.

use super::SumFn;
use super::levels::{at_level, for_each_level};
use crate::simd::Isa;
use bh_bytecode::{DType, scalar};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// What a sum of products is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductSum {
    /// How many products there are: from two to [`MOST_PRODUCTS`].
    pub products: usize,
    /// Is there a block that the first product is added to? It is the first term.
    pub start: bool,
    /// What is multiplied.
    pub factors: Factors,
}

/// What each product of a sum is made of, and the terms that it has for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    /// Two blocks: two terms.
    Blocks,
    /// A block and itself: one term.
    Squares,
    /// A block less a single element, and that itself: two terms, of which the second is one element.
    Differences,
}

impl Factors {
    /// How many terms a product has.
    pub(crate) const fn terms(self) -> usize {
        match self {
            Factors::Squares => 1,
            Factors::Blocks | Factors::Differences => 2,
        }
    }
}

impl ProductSum {
    /// How many terms there are.
    const fn terms(self) -> usize {
        self.start as usize + self.products * self.factors.terms()
    }

    /// The first term of a product.
    const fn first(self, product: usize) -> usize {
        self.start as usize + product * self.factors.terms()
    }

    /// Is a term one element?
    pub const fn is_single(self, term: usize) -> bool {
        matches!(self.factors, Factors::Differences)
            && term > self.start as usize
            && (term - self.start as usize) % 2 == 1
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

struct Products<const PRODUCTS: usize, const START: bool, F>(PhantomData<fn() -> F>);

/// [`Factors`] as types.
trait Kind: 'static {
    const FACTORS: Factors;
}

macro_rules! kinds {
    ($($kind:ident)*) => {$(
        struct $kind;
        impl Kind for $kind {
            const FACTORS: Factors = Factors::$kind;
        }
    )*};
}
kinds! { Blocks Squares Differences }

impl<const PRODUCTS: usize, const START: bool, F: Kind> Shape for Products<PRODUCTS, START, F> {
    const SUM: ProductSum = ProductSum { products: PRODUCTS, start: START, factors: F::FACTORS };
}

/// The terms of a sum; as many as it has count.
type Terms = [*const u8; MOST_TERMS];

/// The loop proper; `end` makes the results of the sums.
///
/// # Safety
/// The blocks must have as many elements as `out`, and not overlap it.
#[inline(always)]
unsafe fn fill<S: Shape, T: scalar::Numeric>(out: &mut [MaybeUninit<T>], terms: &Terms, end: impl Fn(T) -> T) {
    let terms = *terms;
    // SAFETY: promised by the caller.
    let at = |term: usize, i: usize| unsafe { terms[term].cast::<T>().add(i).read() };
    let mut singles = [None; MOST_PRODUCTS];
    if S::SUM.factors == Factors::Differences && !out.is_empty() {
        (0..S::SUM.products).for_each(|number| singles[number] = Some(at(S::SUM.first(number) + 1, 0)));
    }
    for (i, out) in out.iter_mut().enumerate() {
        let product = |number: usize| {
            let first = S::SUM.first(number);
            let a = at(first, i);
            match (S::SUM.factors, singles[number]) {
                (Factors::Blocks, _) => scalar::multiply(a, at(first + 1, i)),
                (Factors::Differences, Some(single)) => {
                    let difference = scalar::subtract(a, single);
                    scalar::multiply(difference, difference)
                }
                _ => scalar::multiply(a, a),
            }
        };
        let mut sum = if S::SUM.start { scalar::add(at(0, i), product(0)) } else { product(0) };
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
                terms: &Terms,
                single: *const u8,
            ) {
                // SAFETY: the caller vouches for all of them.
                unsafe {
                    if single.is_null() {
                        fill::<S, T>(out, terms, #[inline(always)] |sum| sum);
                    } else {
                        let single = single.cast::<T>().read_unaligned();
                        fill::<S, T>(out, terms, #[inline(always)] |sum| scalar::add(sum, single));
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
                let mut all = [std::ptr::null(); MOST_TERMS];
                // SAFETY: the contract of SumFn; in the second case, terms are read before `dst` overwrites them, at the
                // same indices only.
                unsafe {
                    (0..S::SUM.terms()).for_each(|term| all[term] = terms.add(term).read());
                    if !all[..S::SUM.terms()].contains(&dst.cast_const()) {
                        let out = std::slice::from_raw_parts_mut(dst.cast::<MaybeUninit<T>>(), n);
                        return apart::<S, T>(out, &all, single);
                    }
                    let mut bounce = [const { MaybeUninit::<T>::uninit() }; BOUNCE];
                    for first in (0..n).step_by(BOUNCE) {
                        let count = BOUNCE.min(n - first);
                        let mut here = all;
                        for term in (0..S::SUM.terms()).filter(|&term| !S::SUM.is_single(term)) {
                            here[term] = all[term].wrapping_add(first * size_of::<T>());
                        }
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
            match (sum.products, sum.start, sum.factors) {
                $(
                    ($products, false, Factors::Blocks) => shapes!(@ $products, false, Blocks, $type),
                    ($products, true, Factors::Blocks) => shapes!(@ $products, true, Blocks, $type),
                    ($products, false, Factors::Squares) => shapes!(@ $products, false, Squares, $type),
                    ($products, true, Factors::Squares) => shapes!(@ $products, true, Squares, $type),
                    ($products, false, Factors::Differences) => shapes!(@ $products, false, Differences, $type),
                    ($products, true, Factors::Differences) => shapes!(@ $products, true, Differences, $type),
                )*
                _ => None,
            }
        };
        (@ $products:literal, $start:literal, $factors:ident, $type:ty) => {
            Some(at_level::<Products<$products, $start, $factors>, $type>(isa))
        };
    }
    match dtype {
        DType::F64 => shapes!(f64, [2, 3, 4]),
        DType::F32 => shapes!(f32, [2, 3, 4]),
        _ => None,
    }
}

//! Norms of `f64`: roots of sums of squares, and what is divided by them or by their cubes, as distances and the forces
//! between particles are, with the bits of the operations one after the other. While the divider works on one vector, the sum
//! and the root of the next are made.

use super::entry::{SumEntry, block, sum_at_level};
use super::root::sqrt;
use crate::prims::{Factors, ProductSum, SumFn};
use crate::simd::{Isa, Vector};
use std::marker::PhantomData;

/// What is made of a sum of squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Its root.
    Root,
    /// The dividend, divided by its root.
    OverRoot(Dividend),
    /// The dividend, divided by the product of it and its root.
    OverCube(Dividend),
}

/// What is divided: the last term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dividend {
    /// A block.
    Block,
    /// A single element.
    Single,
}

/// Makes a result of a sum and a dividend.
trait End: 'static {
    const DIVIDES: bool;
    fn apply<V: Vector>(sum: V, dividend: V) -> V;
}

macro_rules! ends {
    ($($name:ident, $divides:literal = |$sum:ident, $dividend:ident| $value:expr;)*) => {$(
        struct $name;
        impl End for $name {
            const DIVIDES: bool = $divides;
            #[inline(always)]
            fn apply<V: Vector>($sum: V, $dividend: V) -> V {
                $value
            }
        }
    )*};
}
ends! {
    Root, false = |sum, _dividend| sqrt::<V, false>(sum);
    OverRoot, true = |sum, dividend| dividend / sqrt::<V, false>(sum);
    OverCube, true = |sum, dividend| dividend / (sum * sqrt::<V, false>(sum));
}

/// A norm as a type. If `BLOCK`, the dividend is a block.
struct Norms<const PRODUCTS: usize, const DIFFERENCES: bool, const BLOCK: bool, E>(PhantomData<fn() -> E>);

impl<const PRODUCTS: usize, const DIFFERENCES: bool, const BLOCK: bool, E: End> Norms<PRODUCTS, DIFFERENCES, BLOCK, E> {
    /// All of it. The sum takes a single element at its end, if any.
    ///
    /// # Safety
    /// As [`SumFn`].
    #[inline(always)]
    unsafe fn of<V: Vector>(n: usize, dst: *mut u8, terms: *const *const u8, single: Option<V>) {
        // SAFETY: promised by the caller.
        unsafe {
            match PRODUCTS + usize::from(BLOCK) {
                2 => Self::over::<V, 2>(n, dst, terms, single),
                3 => Self::over::<V, 3>(n, dst, terms, single),
                _ => Self::over::<V, 4>(n, dst, terms, single),
            }
        }
    }

    /// The loop over `N` blocks: those that are squared, and the dividend if it is one.
    ///
    /// # Safety
    /// As [`SumFn`].
    #[inline(always)]
    unsafe fn over<V: Vector, const N: usize>(n: usize, dst: *mut u8, terms: *const *const u8, single: Option<V>) {
        let terms = terms.cast::<*const f64>();
        let step = if DIFFERENCES { Factors::Differences } else { Factors::Squares }.terms();
        // SAFETY: promised by the caller.
        unsafe {
            let blocks: [*const f64; N] = std::array::from_fn(|number| terms.add(number * step).read());
            let subtrahends: [V; PRODUCTS] = std::array::from_fn(|number| {
                if DIFFERENCES { V::splat(terms.add(number * step + 1).read().read()) } else { V::splat(0.0) }
            });
            let dividend = if E::DIVIDES && !BLOCK { terms.add(PRODUCTS * step).read().read() } else { 0.0 };
            let dividend = V::splat(dividend);
            block(
                n,
                dst.cast::<f64>(),
                blocks,
                #[inline(always)]
                |operands| {
                    let square = |number: usize| {
                        let x: V = operands[number];
                        let x = if DIFFERENCES { x - subtrahends[number] } else { x };
                        x * x
                    };
                    let mut sum = square(0);
                    for number in 1..PRODUCTS {
                        sum = sum + square(number);
                    }
                    if let Some(single) = single {
                        sum = sum + single;
                    }
                    E::apply(sum, if BLOCK { operands[PRODUCTS] } else { dividend })
                },
            );
        }
    }
}

impl<const PRODUCTS: usize, const DIFFERENCES: bool, const BLOCK: bool, E: End> SumEntry
    for Norms<PRODUCTS, DIFFERENCES, BLOCK, E>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(n: usize, dst: *mut u8, terms: *const *const u8, single: *const u8) {
        // SAFETY: promised by the caller.
        unsafe {
            if single.is_null() {
                Self::of::<V>(n, dst, terms, None);
            } else {
                Self::of::<V>(n, dst, terms, Some(V::splat(single.cast::<f64>().read())));
            }
        }
    }
}

/// The norm of a sum of two or three squares of blocks, or of their differences with single elements. Its terms are those of
/// the sum, then the dividend, if any.
pub fn lookup_norm(isa: Isa, sum: ProductSum, norm: Norm) -> Option<SumFn> {
    macro_rules! of {
        ($products:literal, $differences:literal) => {
            Some(match norm {
                Norm::Root => sum_at_level::<Norms<$products, $differences, false, Root>>(isa),
                Norm::OverRoot(Dividend::Block) => sum_at_level::<Norms<$products, $differences, true, OverRoot>>(isa),
                Norm::OverRoot(Dividend::Single) => {
                    sum_at_level::<Norms<$products, $differences, false, OverRoot>>(isa)
                }
                Norm::OverCube(Dividend::Block) => sum_at_level::<Norms<$products, $differences, true, OverCube>>(isa),
                Norm::OverCube(Dividend::Single) => {
                    sum_at_level::<Norms<$products, $differences, false, OverCube>>(isa)
                }
            })
        };
    }
    match (sum.products, sum.start, sum.factors) {
        (2, false, Factors::Squares) => of!(2, false),
        (3, false, Factors::Squares) => of!(3, false),
        (2, false, Factors::Differences) => of!(2, true),
        (3, false, Factors::Differences) => of!(3, true),
        _ => None,
    }
}

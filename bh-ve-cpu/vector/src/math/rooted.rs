//! Square roots of `f64` with the two operations after them, as in m / (√v + e), with the bits of the three in turn. While
//! the divider works on one vector, the root of the next is made by multiplications.

use super::PrimFn;
use super::entry::{Entry, at_level, block};
use super::root::sqrt;
use crate::simd::{Isa, Vector};
use bh_bytecode::Opcode;
use std::marker::PhantomData;

/// The two operations.
trait Pair: 'static {
    fn apply<V: Vector>(root: V, b: V, c: V) -> V;
}

macro_rules! pairs {
    ($($name:ident = |$root:ident, $b:ident, $c:ident| $value:expr;)*) => {$(
        struct $name;
        impl Pair for $name {
            #[inline(always)]
            fn apply<V: Vector>($root: V, $b: V, $c: V) -> V {
                $value
            }
        }
    )*};
}
pairs! {
    SumTimes = |root, b, c| (root + b) * c;
    SumBy = |root, b, c| (root + b) / c;
    OverSum = |root, b, c| c / (root + b);
    ProductPlus = |root, b, c| root * b + c;
    ProductTimes = |root, b, c| root * b * c;
    ProductBy = |root, b, c| root * b / c;
    OverProduct = |root, b, c| c / (root * b);
}

/// The primitive of a pair; if `SINGLE`, its last operand is one element.
struct Rooted<P, const SINGLE: bool>(PhantomData<fn() -> P>);

impl<P: Pair, const SINGLE: bool> Entry for Rooted<P, SINGLE> {
    #[inline(always)]
    unsafe fn run<V: Vector>(n: usize, dst: *mut u8, operands: [*const u8; 3]) {
        let [a, b, c] = operands.map(|operand| operand.cast::<f64>());
        // SAFETY: the blocks are as [`PrimFn`] says, and the level is available.
        unsafe {
            if SINGLE {
                let c = V::splat(if n > 0 { *c } else { 0.0 });
                block(
                    n,
                    dst.cast::<f64>(),
                    [a, b],
                    #[inline(always)]
                    |[a, b]| P::apply(sqrt::<V, false>(a), b, c),
                );
            } else {
                block(
                    n,
                    dst.cast::<f64>(),
                    [a, b, c],
                    #[inline(always)]
                    |[a, b, c]| P::apply(sqrt::<V, false>(a), b, c),
                );
            }
        }
    }
}

/// The primitive `second(first(√a, b), c)`, or `second(c, first(√a, b))` if `swapped`, of `f64`, for the pairs that there are.
/// If `single`, `c` points to a single element.
pub fn lookup_rooted(isa: Isa, first: Opcode, second: Opcode, swapped: bool, single: bool) -> Option<PrimFn> {
    macro_rules! of {
        ($pair:ident) => {
            Some(if single { at_level::<Rooted<$pair, true>>(isa) } else { at_level::<Rooted<$pair, false>>(isa) })
        };
    }
    match (first, second, swapped) {
        (Opcode::Add, Opcode::Multiply, _) => of!(SumTimes),
        (Opcode::Add, Opcode::Divide, false) => of!(SumBy),
        (Opcode::Add, Opcode::Divide, true) => of!(OverSum),
        (Opcode::Multiply, Opcode::Add, _) => of!(ProductPlus),
        (Opcode::Multiply, Opcode::Multiply, _) => of!(ProductTimes),
        (Opcode::Multiply, Opcode::Divide, false) => of!(ProductBy),
        (Opcode::Multiply, Opcode::Divide, true) => of!(OverProduct),
        _ => None,
    }
}

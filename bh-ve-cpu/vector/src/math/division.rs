//! Remainders and whole quotients of floats. A remainder is exact: with q the truncated quotient, x - q y is a number
//! of the format when q is right, and differs from it by one y when q was rounded up.

use super::dd::two_prod;
use crate::simd::{Alone, Scalar, Vector};

/// Quotients from here on, and operands outside 1e-250..1e250, take the scalar path.
const QUOTIENT_END: f64 = 4_503_599_627_370_496.0;

/// C's fmod: the remainder with the sign of `x`.
#[inline(always)]
pub(crate) fn fmod<V: Vector, const SINGLE: bool>(x: V, y: V) -> V {
    let (over, under) = (x.abs(), y.abs());
    let q = (over / under).trunc();
    let product = two_prod(q, under);
    let rest = (over - product.hi) - product.lo;
    let rest = V::select(rest.lt(V::splat(0.0)), rest + under, rest);
    // An x below y is its own remainder; this also covers every tiny x.
    let result = V::select(over.lt(under), over, rest).copysign(x);
    let (low, high) = (V::splat(1e-250), V::splat(1e250));
    let in_range = V::mask_and(
        V::mask_and(under.gt(low), under.lt(high)),
        V::mask_and(over.lt(high), q.lt(V::splat(QUOTIENT_END))),
    );
    let others = V::mask_not(in_range);
    if V::any(others) {
        let [result] = V::alone::<Rest, 2, 1>(others, [x, y], [result]);
        return result;
    }
    result
}

/// C's fmod of any numbers.
struct Rest;

impl Alone<2, 1> for Rest {
    fn of<S: Scalar>([x, y]: [S; 2]) -> [S; 1] {
        [x.fmod(y)]
    }
}

/// Lanes whose remainder must move by one `y` to get the sign of `y`.
#[inline(always)]
fn is_opposed<V: Vector>(rest: V, y: V) -> V::Mask {
    let opposed = rest.bits_xor(y).sign_bit().bits_or(V::splat(1.0)).lt(V::splat(0.0));
    V::mask_and(V::mask_not(rest.eq(V::splat(0.0))), opposed)
}

/// Python's %: the remainder with the sign of `y`.
#[inline(always)]
pub(crate) fn remainder<V: Vector, const SINGLE: bool>(x: V, y: V) -> V {
    let zero = V::splat(0.0);
    let rest = fmod::<V, SINGLE>(x, y);
    let moved = V::select(is_opposed(rest, y), rest + y, rest);
    V::select(rest.eq(zero), zero.copysign(y), moved)
}

/// The operations of the scalar function one by one, each rounded as in the element type.
#[inline(always)]
fn rounded<V: Vector, const SINGLE: bool>(x: V) -> V {
    if SINGLE { x.round_f32() } else { x }
}

/// The largest whole number not above x / y; x / y itself for y = 0.
#[inline(always)]
pub(crate) fn floor_divide<V: Vector, const SINGLE: bool>(x: V, y: V) -> V {
    let zero = V::splat(0.0);
    let one = V::splat(1.0);
    let rest = fmod::<V, SINGLE>(x, y);
    let quotient = rounded::<V, SINGLE>(rounded::<V, SINGLE>(x - rest) / y);
    let quotient = V::select(is_opposed(rest, y), rounded::<V, SINGLE>(quotient - one), quotient);
    let whole = quotient.floor();
    let whole = V::select((quotient - whole).gt(V::splat(0.5)), whole + one, whole);
    let ratio = x / y;
    let result = V::select(quotient.eq(zero), zero.copysign(ratio), whole);
    V::select(y.eq(zero), ratio, result)
}

//! Exponentials and hyperbolic functions: x = k ln 2 + r with |r| ≤ ln 2 / 2, a polynomial in r, and scaling by 2^k
//! (the argument reduction of W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980).

use super::coefficients as c;
use super::dd::{Dd, fast_two_sum, polynomial, two_prod, two_sum};
use crate::simd::{ROUND_MAGIC, Vector};
use std::f64::consts::{LN_2, LOG2_E};

/// ln 2 to 32 bits, so that products with exponents are exact.
pub(crate) const LN2_HI: f64 = 0.6931471803691238;
/// The rest of ln 2.
pub(crate) const LN2_LO: f64 = 1.9082149292705877e-10;
/// ln 2 beyond `f64`.
const LN2_TAIL: f64 = 2.3190468138462996e-17;

/// `rint(x · factor)` for small results.
#[inline(always)]
fn nearest_multiple<V: Vector>(x: V, factor: f64) -> V {
    let magic = V::splat(ROUND_MAGIC);
    x.mul_add(V::splat(factor), magic) - magic
}

/// Confines the argument to where the exponent stays scalable; beyond, results are infinite or zero all the same.
#[inline(always)]
fn confine<V: Vector, const SINGLE: bool>(x: V) -> V {
    let (low, high) = if SINGLE { (-300.0, 300.0) } else { (-760.0, 720.0) };
    x.at_most(V::splat(high)).at_least(V::splat(low))
}

/// Scaling by 2^k; `f32` arguments never leave the normal range of `f64`.
#[inline(always)]
fn scale<V: Vector, const SINGLE: bool>(x: V, k: V) -> V {
    if SINGLE { x * k.pow2() } else { x.scale(k) }
}

/// The exponent k and e^r - 1 (as r and a smaller term) for x = k ln 2 + r; `CAREFUL` keeps the rounding error of r.
#[inline(always)]
fn reduced<V: Vector, const SINGLE: bool, const CAREFUL: bool>(x: V) -> (V, Dd<V>) {
    let k = nearest_multiple(x, LOG2_E);
    if SINGLE {
        let r = k.neg_mul_add(V::splat(LN_2), x);
        return (k, Dd { hi: r, lo: r * r * polynomial(r, &c::EXP_SINGLE) });
    }
    let coarse = k.neg_mul_add(V::splat(LN2_HI), x);
    let r = k.neg_mul_add(V::splat(LN2_LO), coarse);
    let square = r * r;
    if CAREFUL {
        let r_lo = k.neg_mul_add(V::splat(LN2_LO), coarse - r);
        return (k, Dd { hi: r, lo: square.mul_add(polynomial(r, &c::EXPM1), r_lo.mul_add(r, r_lo)) });
    }
    (k, Dd { hi: r, lo: square * polynomial(r, &c::EXP) })
}

/// e^x.
#[inline(always)]
pub(crate) fn exp<V: Vector, const SINGLE: bool>(x: V) -> V {
    let (k, tail) = reduced::<V, SINGLE, false>(confine::<V, SINGLE>(x));
    scale::<V, SINGLE>(V::splat(1.0) + tail.value(), k)
}

/// e^(hi + lo) · factor with one rounding at the end more, for a `lo` that is tiny beside 1.
#[inline(always)]
pub(crate) fn exp_of_sum<V: Vector>(x: Dd<V>, factor: V) -> V {
    let hi = confine::<V, false>(x.hi);
    let k = nearest_multiple(hi, LOG2_E);
    let coarse = k.neg_mul_add(V::splat(LN2_HI), hi);
    let low = two_prod(k, V::splat(LN2_LO));
    let near = two_sum(coarse, -low.hi);
    // Out of range the low part may be infinite or NaN; the result is settled by `hi` alone then.
    let lo = V::select(x.lo.abs().lt(V::splat(1.0)), x.lo, V::splat(0.0));
    let r = fast_two_sum(near.hi, near.lo + (lo - low.lo));
    let tail = (r.hi * r.hi).mul_add(polynomial(r.hi, &c::EXP), r.lo.mul_add(r.hi, r.lo));
    let one = fast_two_sum(V::splat(1.0), r.hi);
    ((one.hi + (one.lo + tail)) * factor).scale(k)
}

/// 2^x.
#[inline(always)]
pub(crate) fn exp2<V: Vector, const SINGLE: bool>(x: V) -> V {
    let x = x.at_most(V::splat(1030.0)).at_least(V::splat(-1100.0));
    let k = x.rint_small();
    let r = x - k;
    if SINGLE {
        let p = (r * r).mul_add(polynomial(r, &c::EXP2_SINGLE), r.mul_add(V::splat(LN_2), V::splat(1.0)));
        // 2^k alone may leave the range of `f64` for arguments that `f32` cannot represent anyway.
        return p.scale(k);
    }
    let low = r.mul_add(V::splat(LN2_TAIL), r * r * polynomial(r, &c::EXP2));
    (V::splat(1.0) + r.mul_add(V::splat(LN_2), low)).scale(k)
}

/// e^x - 1 as (hi + lo) · 2^k.
#[inline(always)]
fn expm1_parts<V: Vector, const SINGLE: bool>(x: V) -> (Dd<V>, V) {
    let (k, tail) = reduced::<V, SINGLE, true>(x);
    // (e^r - 1) · 2^k + 2^k - 1, divided by 2^k. From 2^-60 on the power is lost in rounding.
    let inverse = (-k).at_least(V::splat(-60.0)).pow2();
    let shift = V::splat(1.0) - inverse;
    if SINGLE {
        return (Dd { hi: shift + tail.value(), lo: V::splat(0.0) }, k);
    }
    let head = two_sum(shift, tail.hi);
    (fast_two_sum(head.hi, head.lo + tail.lo), k)
}

/// e^x - 1.
#[inline(always)]
pub(crate) fn expm1<V: Vector, const SINGLE: bool>(x: V) -> V {
    let confined = confine::<V, SINGLE>(x).at_least(V::splat(-40.0));
    let (m, k) = expm1_parts::<V, SINGLE>(confined);
    scale::<V, SINGLE>(m.value(), k).copysign(x)
}

/// Hyperbolic sine: (t + t/(t+1))/2 with t = e^|x| - 1.
#[inline(always)]
pub(crate) fn sinh<V: Vector, const SINGLE: bool>(x: V) -> V {
    let one = V::splat(1.0);
    let (m, k) = expm1_parts::<V, SINGLE>(confine::<V, SINGLE>(x.abs()));
    // With t = m 2^k and t + 1 = (m + 2^-k) 2^k: sinh = (m + m / (m + 2^-k) · 2^-k) 2^(k-1).
    let inverse = (-k).at_least(V::splat(-200.0)).pow2();
    let sum = if SINGLE {
        m.hi + m.hi / (m.hi + inverse) * inverse
    } else {
        let divisor = two_sum(inverse, m.hi);
        let quotient = m.div(Dd { hi: divisor.hi, lo: divisor.lo + m.lo });
        m.hi + quotient.hi.mul_add(inverse, quotient.lo.mul_add(inverse, m.lo))
    };
    scale::<V, SINGLE>(sum, k - one).copysign(x)
}

/// Hyperbolic cosine: (e^|x| + e^-|x|)/2.
#[inline(always)]
pub(crate) fn cosh<V: Vector, const SINGLE: bool>(x: V) -> V {
    let one = V::splat(1.0);
    let (k, tail) = reduced::<V, SINGLE, false>(confine::<V, SINGLE>(x.abs()));
    let head = fast_two_sum(one, tail.hi);
    let low = head.lo + tail.lo;
    let power = head.hi + low;
    // e^-x = 2^-2k / power in units of 2^k.
    let inverse = (-(k + k)).at_least(V::splat(-200.0)).pow2();
    let sum = head.hi + (inverse / power + low);
    scale::<V, SINGLE>(sum, k - one)
}

/// Hyperbolic tangent: t/(t+2) with t = e^(2|x|) - 1.
#[inline(always)]
pub(crate) fn tanh<V: Vector, const SINGLE: bool>(x: V) -> V {
    // Beyond 20 the result rounds to 1.
    let doubled = x.abs().at_most(V::splat(20.0)) * V::splat(2.0);
    let (m, k) = expm1_parts::<V, SINGLE>(doubled);
    let divisor = two_sum((-k + V::splat(1.0)).pow2(), m.hi);
    let quotient = if SINGLE {
        m.value() / (divisor.hi + m.lo)
    } else {
        m.div(Dd { hi: divisor.hi, lo: divisor.lo + m.lo }).value()
    };
    quotient.copysign(x)
}

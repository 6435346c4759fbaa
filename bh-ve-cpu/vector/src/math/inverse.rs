//! Inverse trigonometric functions: arguments folded to where a short polynomial does (√((1-x)/2) for sine and cosine,
//! 1/x and (x-1)/(x+1) for the tangent, as in Sun's fdlibm).

use super::coefficients as c;
use super::dd::{fast_two_sum, polynomial, two_prod, two_sum};
use crate::simd::Vector;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// π/2 beyond `f64`.
const HALF_PI_LO: f64 = 6.123233995736766e-17;
/// π/4 beyond `f64`.
const QUARTER_PI_LO: f64 = 3.061616997868383e-17;
/// π beyond `f64`.
const PI_LO: f64 = 1.2246467991473532e-16;

/// arcsin(x) - x for x² = z ≤ 1/4.
#[inline(always)]
fn arcsin_rest<V: Vector, const SINGLE: bool>(x: V, z: V) -> V {
    let p = if SINGLE { polynomial(z, &c::ASIN_SINGLE) } else { polynomial(z, &c::ASIN) };
    x * z * p
}

/// For |x| > 1/2: s = √((1-|x|)/2) and what must be added to it for arcsin(s); for smaller ones |x| and likewise.
#[inline(always)]
fn folded<V: Vector, const SINGLE: bool>(magnitude: V) -> (V::Mask, V, V) {
    let outer = magnitude.gt(V::splat(0.5));
    let z_outer = magnitude.neg_mul_add(V::splat(0.5), V::splat(0.5));
    let z = V::select(outer, z_outer, magnitude * magnitude);
    let s = V::select(outer, z_outer.sqrt(), magnitude);
    let rest = arcsin_rest::<V, SINGLE>(s, z);
    if SINGLE {
        return (outer, s, rest);
    }
    // The square root's own rounding error; nothing for s = 0.
    let square = two_prod(s, s);
    let error = ((z - square.hi) - square.lo) / (s + s).at_least(V::splat(1e-300));
    (outer, s, rest + V::select(outer, error, V::splat(0.0)))
}

/// Inverse sine.
#[inline(always)]
pub(crate) fn asin<V: Vector, const SINGLE: bool>(x: V) -> V {
    let (outer, s, rest) = folded::<V, SINGLE>(x.abs());
    let lead = s * V::splat(-2.0);
    let sum = fast_two_sum(V::splat(FRAC_PI_2), lead);
    let from_end = sum.hi + (sum.lo + rest.mul_add(V::splat(-2.0), V::splat(HALF_PI_LO)));
    V::select(outer, from_end, s + rest).copysign(x)
}

/// Inverse cosine.
#[inline(always)]
pub(crate) fn acos<V: Vector, const SINGLE: bool>(x: V) -> V {
    let (outer, s, rest) = folded::<V, SINGLE>(x.abs());
    let zero = V::splat(0.0);
    let negative = x.lt(zero);
    // Outside: 2 arcsin(s), or π minus that. Inside: π/2 - arcsin(x).
    let factor = V::select(outer, V::splat(2.0), V::splat(-1.0));
    let sign = V::select(negative, -factor, factor);
    let base = V::select(outer, V::select(negative, V::splat(PI), zero), V::splat(FRAC_PI_2));
    let base_lo = V::select(outer, V::select(negative, V::splat(PI_LO), zero), V::splat(HALF_PI_LO));
    let lead = s * sign;
    let sum = base + lead;
    // |base| is zero or the larger one.
    let error = V::select(base.eq(zero), zero, lead - (sum - base));
    sum + (error + sign.mul_add(rest, base_lo))
}

/// arctan(over / under) for over, under ≥ 0, with the quotient in [0, ∞]; both in a range where their sum is normal.
#[inline(always)]
fn arctan_ratio<V: Vector, const SINGLE: bool>(over: V, under: V) -> V {
    let zero = V::splat(0.0);
    // tan(π/8) and tan(3π/8) bound the three ranges.
    let middle = over.gt(under * V::splat(0.41421356237309503));
    let upper = over.gt(under * V::splat(2.414213562373095));
    let difference = two_sum(over, -under);
    let total = two_sum(over, under);
    let numerator = V::select(upper, -under, V::select(middle, difference.hi, over));
    let denominator = V::select(upper, over, V::select(middle, total.hi, under));
    let base = V::select(upper, V::splat(FRAC_PI_2), V::select(middle, V::splat(FRAC_PI_4), zero));
    let t = numerator / denominator;
    let z = t * t;
    if SINGLE {
        return base + (t * z).mul_add(polynomial(z, &c::ATAN_SINGLE), t);
    }
    let base_lo = V::select(upper, V::splat(HALF_PI_LO), V::select(middle, V::splat(QUARTER_PI_LO), zero));
    // In the middle range the quotient's operands were rounded; elsewhere its own rounding error is small enough.
    let missed = V::select(middle, t.neg_mul_add(total.lo, difference.lo), zero);
    let t_lo = V::select(upper, zero, missed) / denominator;
    let rest = (t * z).mul_add(polynomial(z, &c::ATAN), base_lo + t_lo);
    base + (t + rest)
}

/// Inverse tangent.
#[inline(always)]
pub(crate) fn atan<V: Vector, const SINGLE: bool>(x: V) -> V {
    // Beyond 2^66 the result is π/2 to the last bit.
    let magnitude = x.abs().at_most(V::splat(7.378697629483821e19));
    let result = arctan_ratio::<V, SINGLE>(magnitude, V::splat(1.0));
    result.copysign(x)
}

/// Angle of the point (x, y).
#[inline(always)]
pub(crate) fn atan2<V: Vector, const SINGLE: bool>(y: V, x: V) -> V {
    let zero = V::splat(0.0);
    let (over, under) = (y.abs(), x.abs());
    // Zeros, infinities, NaN, and magnitudes whose sum might leave the normal range.
    let (low, high) = (V::splat(1e-140), V::splat(1e140));
    let usable = V::mask_and(V::mask_and(over.gt(low), over.lt(high)), V::mask_and(under.gt(low), under.lt(high)));
    let special = V::mask_not(usable);
    let has_special = V::any(special);
    let (over, under) = if has_special { with_normal_sum(over, under) } else { (over, under) };
    let angle = arctan_ratio::<V, SINGLE>(over, under);
    // π - angle, with the rest of π; its rounding is the only one that counts.
    let mirrored = V::splat(PI) - (angle - V::splat(PI_LO));
    let mut left = x.lt(zero);
    let mut result = V::select(left, mirrored, angle);
    if has_special {
        // Zeros above and below have the sign of x, and a right angle has no error that is known.
        let sign = V::select(y.eq(zero), V::splat(1.0).copysign(x), x);
        left = V::mask_and(sign.lt(zero), V::mask_not(angle.eq(V::splat(FRAC_PI_2))));
        let known = V::select(left, mirrored, angle);
        let known = V::select(V::mask_and(x.eq(x), y.eq(y)), known, x + y);
        result = V::select(special, known, result);
    }
    result.copysign(y)
}

/// Magnitudes with the same angle: two large ones scaled down, two small ones scaled up, infinities as 1 beside 0 or 1, and a zero
/// beside 1. Others stay: of two that differ much, the smaller one has no influence on the sum.
#[inline(always)]
fn with_normal_sum<V: Vector>(over: V, under: V) -> (V, V) {
    let (zero, one, infinity) = (V::splat(0.0), V::splat(1.0), V::splat(f64::INFINITY));
    let both = |limit: f64, beyond: fn(V, V) -> V::Mask| {
        let limit = V::splat(limit);
        V::mask_and(beyond(over, limit), beyond(under, limit))
    };
    let factor = V::select(both(1e140, V::gt), V::splat(2f64.powi(-600)), one);
    let factor = V::select(both(1e-140, V::lt), V::splat(2f64.powi(600)), factor);
    let endless = V::mask_or(over.eq(infinity), under.eq(infinity));
    let finite = |number: V| V::select(endless, V::select(number.eq(infinity), one, zero), number * factor);
    let nothing = V::mask_and(over.eq(zero), under.eq(zero));
    (finite(over), V::select(nothing, one, finite(under)))
}

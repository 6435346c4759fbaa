//! Logarithms and inverse hyperbolic functions: x = 2^k (1 + f) with 1 + f in [√½, √2], and
//! log(1 + f) = 2 artanh(f / (2 + f)) with f taken out first, so that the polynomial's rounding errors stay small
//! (the scheme of Sun's fdlibm, K. C. Ng, 1993).

use super::coefficients as c;
use super::dd::{Dd, fast_two_sum, polynomial, two_prod, two_sum};
use super::exponential::{LN2_HI, LN2_LO};
use crate::simd::Vector;
use std::f64::consts::LN_2;

const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;
/// 2^52: adding small integers to its bits makes the integer a number.
const TWO_52_BITS: u64 = 0x4330_0000_0000_0000;
const TWO_52: f64 = 4_503_599_627_370_496.0;
const TWO_54: f64 = 18_014_398_509_481_984.0;

/// 1/ln 2 to 21 bits and the rest; likewise below.
const INV_LN2_HI: f64 = 1.4426946640014648;
const INV_LN2_LO: f64 = 3.768874985636099e-07;
const INV_LN10_HI: f64 = 0.4342944622039795;
const INV_LN10_LO: f64 = 1.9699272335463627e-08;
const LOG10_2_HI: f64 = 0.3010299955494702;
const LOG10_2_LO: f64 = 1.1451100898021838e-10;

/// A positive normal number as 2^k · m with m in [√½, √2).
#[inline(always)]
fn split<V: Vector>(x: V) -> (V, V) {
    let shifted = x.bits_add(V::splat_bits(ONE_BITS - SQRT_HALF_BITS));
    let k = shifted.bits_shr::<52>().bits_or(V::splat_bits(TWO_52_BITS)) - V::splat(TWO_52 + 1023.0);
    let m = shifted.bits_and(V::splat_bits(MANTISSA)).bits_add(V::splat_bits(SQRT_HALF_BITS));
    (k, m)
}

/// An argument made positive, finite and normal, what that changed in the exponent, and which lanes are special.
struct Prepared<V: Vector> {
    x: V,
    exponent: V,
    special: V::Mask,
}

#[inline(always)]
fn prepare<V: Vector, const SINGLE: bool>(x: V) -> Prepared<V> {
    let lowest = if SINGLE { f64::from_bits(1) } else { f64::MIN_POSITIVE };
    let normal = V::mask_and(x.ge(V::splat(lowest)), x.lt(V::splat(f64::INFINITY)));
    let special = V::mask_not(normal);
    let mut out = Prepared { x, exponent: V::splat(0.0), special };
    if !SINGLE && V::any(special) {
        let tiny = V::mask_and(x.gt(V::splat(0.0)), x.lt(V::splat(f64::MIN_POSITIVE)));
        out.x = V::select(tiny, x * V::splat(TWO_54), x);
        out.exponent = V::select(tiny, V::splat(-54.0), V::splat(0.0));
        out.special = V::mask_and(special, V::mask_not(tiny));
    }
    out
}

impl<V: Vector> Prepared<V> {
    /// Puts the limits in: log 0 = -∞, log ∞ = ∞, NaN for the rest.
    #[inline(always)]
    fn finish(&self, result: V) -> V {
        if !V::any(self.special) {
            return result;
        }
        let zero = self.x.eq(V::splat(0.0));
        let infinite = self.x.eq(V::splat(f64::INFINITY));
        let other = V::select(infinite, self.x, V::splat(f64::NAN));
        V::select(self.special, V::select(zero, V::splat(f64::NEG_INFINITY), other), result)
    }
}

/// log(1 + f) for f in [√½ - 1, √2 - 1], as f - `rest`: returns (f²/2, s (f²/2 + R)) with rest = their difference.
#[inline(always)]
fn log_rest<V: Vector, const SINGLE: bool>(f: V) -> (V, V) {
    let s = f / (f + V::splat(2.0));
    let z = s * s;
    let p = if SINGLE { polynomial(z, &c::LOG_SINGLE) } else { polynomial(z, &c::LOG) };
    let half_square = f * f * V::splat(0.5);
    (half_square, s * z.mul_add(p, half_square))
}

/// k ln 2 + log(1 + f) + low.
#[inline(always)]
fn assemble<V: Vector, const SINGLE: bool>(k: V, f: V, low: V) -> V {
    let (half_square, product) = log_rest::<V, SINGLE>(f);
    if SINGLE {
        return k.mul_add(V::splat(LN_2), f - (half_square - product) + low);
    }
    let low = k.mul_add(V::splat(LN2_LO), low);
    k.mul_add(V::splat(LN2_HI), f - (half_square - (product + low)))
}

/// Natural logarithm.
#[inline(always)]
pub(crate) fn log<V: Vector, const SINGLE: bool>(x: V) -> V {
    let prepared = prepare::<V, SINGLE>(x);
    let (k, m) = split(prepared.x);
    let result = assemble::<V, SINGLE>(k + prepared.exponent, m - V::splat(1.0), V::splat(0.0));
    prepared.finish(result)
}

/// Logarithm of a sum whose high part is positive, finite and normal.
#[inline(always)]
fn log_of_sum<V: Vector, const SINGLE: bool>(x: Dd<V>, exponent: V) -> V {
    let (k, m) = split(x.hi);
    // Two factors: k may be as large as 1024.
    let half = (-k * V::splat(0.5)).rint_small();
    let low = x.lo * half.pow2() * (-k - half).pow2() / m;
    assemble::<V, SINGLE>(k + exponent, m - V::splat(1.0), low)
}

/// log(1 + x).
#[inline(always)]
pub(crate) fn log1p<V: Vector, const SINGLE: bool>(x: V) -> V {
    let one = V::splat(1.0);
    let inside = V::mask_and(x.gt(-one), x.lt(V::splat(f64::INFINITY)));
    let mut result = log_of_sum::<V, SINGLE>(two_sum(one, x), V::splat(0.0)).copysign(x);
    if V::any(V::mask_not(inside)) {
        let infinite = x.abs().eq(V::splat(f64::INFINITY));
        let limit = V::select(x.eq(-one), V::splat(f64::NEG_INFINITY), V::splat(f64::NAN));
        let limit = V::select(V::mask_and(infinite, x.gt(one)), x, limit);
        result = V::select(inside, result, limit);
    }
    result
}

/// log(m) · 1/ln b as a sum, with 1/ln b given in two parts of which the first has 21 bits.
#[inline(always)]
fn scaled_log<V: Vector>(f: V, inverse_hi: f64, inverse_lo: f64) -> (V, V) {
    let (half_square, product) = log_rest::<V, false>(f);
    // The upper half of f - f²/2, so that its product with 21 bits is exact.
    let hi = (f - half_square).bits_and(V::splat_bits(0xffff_ffff_0000_0000));
    let lo = ((f - hi) - half_square) + product;
    let low = (lo + hi).mul_add(V::splat(inverse_lo), lo * V::splat(inverse_hi));
    (hi * V::splat(inverse_hi), low)
}

/// Logarithm to base 2.
#[inline(always)]
pub(crate) fn log2<V: Vector, const SINGLE: bool>(x: V) -> V {
    let prepared = prepare::<V, SINGLE>(x);
    let (k, m) = split(prepared.x);
    let k = k + prepared.exponent;
    let f = m - V::splat(1.0);
    let result = if SINGLE {
        let (half_square, product) = log_rest::<V, true>(f);
        (f - (half_square - product)).mul_add(V::splat(std::f64::consts::LOG2_E), k)
    } else {
        let (hi, low) = scaled_log(f, INV_LN2_HI, INV_LN2_LO);
        let sum = two_sum(k, hi);
        sum.hi + (sum.lo + low)
    };
    prepared.finish(result)
}

/// Logarithm to base 10.
#[inline(always)]
pub(crate) fn log10<V: Vector, const SINGLE: bool>(x: V) -> V {
    let prepared = prepare::<V, SINGLE>(x);
    let (k, m) = split(prepared.x);
    let k = k + prepared.exponent;
    let f = m - V::splat(1.0);
    let result = if SINGLE {
        let (half_square, product) = log_rest::<V, true>(f);
        let fraction = (f - (half_square - product)) * V::splat(std::f64::consts::LOG10_E);
        k.mul_add(V::splat(std::f64::consts::LOG10_2), fraction)
    } else {
        let (hi, low) = scaled_log(f, INV_LN10_HI, INV_LN10_LO);
        let sum = two_sum(k * V::splat(LOG10_2_HI), hi);
        sum.hi + (sum.lo + k.mul_add(V::splat(LOG10_2_LO), low))
    };
    prepared.finish(result)
}

/// log |x| of a positive, finite, normal x times 2^exponent, to about 2^-66, for powers.
#[inline(always)]
pub(crate) fn log_extended<V: Vector>(x: V, exponent: V) -> Dd<V> {
    let (k, m) = split(x);
    let k = k + exponent;
    let f = m - V::splat(1.0);
    let zero = V::splat(0.0);
    let s = Dd { hi: f, lo: zero }.div(two_sum(V::splat(2.0), f));
    let z = s.mul(s);
    let cube = z.mul(s);
    let two_thirds = Dd { hi: V::splat(0.6666666666666666), lo: V::splat(3.700743415417188e-17) };
    let second = cube.mul(two_thirds);
    let rest = cube.hi * z.hi * polynomial(z.hi, &c::LOG_DD);
    let head = fast_two_sum(s.hi + s.hi, second.hi);
    let sum = two_sum(k * V::splat(LN2_HI), head.hi);
    let low = rest + (head.lo + (second.lo + (s.lo + s.lo)));
    fast_two_sum(sum.hi, sum.lo + k.mul_add(V::splat(LN2_LO), low))
}

/// Inverse hyperbolic sine: log(|x| + √(x² + 1)).
#[inline(always)]
pub(crate) fn asinh<V: Vector, const SINGLE: bool>(x: V) -> V {
    let one = V::splat(1.0);
    let magnitude = x.abs();
    // From 2^28 on √(x² + 1) is x; from 2^-14 down three terms of the series do.
    let large = magnitude.gt(V::splat(268_435_456.0));
    let small = magnitude.lt(V::splat(6.103515625e-5));
    let bounded = V::select(large, one, magnitude);
    let square = two_prod(bounded, bounded);
    let root = square.add(one).sqrt();
    let sum = two_sum(root.hi, bounded);
    let argument = fast_two_sum(sum.hi, sum.lo + root.lo);
    let hi = V::select(large, magnitude, argument.hi);
    let lo = V::select(large, V::splat(0.0), argument.lo);
    let result = log_of_sum::<V, SINGLE>(Dd { hi, lo }, V::select(large, one, V::splat(0.0)));
    let z = bounded * bounded;
    let series = bounded * z * z.mul_add(V::splat(3.0 / 40.0), V::splat(-1.0 / 6.0));
    let result = V::select(small, bounded + series, result);
    // The logarithm does not see infinities and NaN.
    V::select(magnitude.lt(V::splat(f64::INFINITY)), result, magnitude).copysign(x)
}

/// Inverse hyperbolic cosine: log(x + √(x² - 1)).
#[inline(always)]
pub(crate) fn acosh<V: Vector, const SINGLE: bool>(x: V) -> V {
    let one = V::splat(1.0);
    let zero = V::splat(0.0);
    let large = x.gt(V::splat(268_435_456.0));
    let inside = V::mask_and(x.gt(one), V::mask_not(large));
    // Two, where the root is not wanted, keeps it away from zero.
    let bounded = V::select(inside, x, V::splat(2.0));
    let square = two_prod(bounded, bounded);
    let root = square.add(-one).sqrt();
    let sum = two_sum(bounded, root.hi);
    let argument = fast_two_sum(sum.hi, sum.lo + root.lo);
    let hi = V::select(large, x, argument.hi);
    let lo = V::select(large, zero, argument.lo);
    let result = log_of_sum::<V, SINGLE>(Dd { hi, lo }, V::select(large, one, zero));
    let result = V::select(x.eq(one), zero, V::select(x.ge(one), result, V::splat(f64::NAN)));
    V::select(x.eq(V::splat(f64::INFINITY)), x, result)
}

/// Inverse hyperbolic tangent: log((1 + |x|) / (1 - |x|)) / 2.
#[inline(always)]
pub(crate) fn atanh<V: Vector, const SINGLE: bool>(x: V) -> V {
    let one = V::splat(1.0);
    let magnitude = x.abs();
    let small = magnitude.lt(V::splat(6.103515625e-5));
    let inside = magnitude.lt(one);
    let bounded = V::select(inside, magnitude, V::splat(0.5));
    let ratio = two_sum(one, bounded).div(two_sum(one, -bounded));
    let ratio = fast_two_sum(ratio.hi, ratio.lo);
    let result = log_of_sum::<V, SINGLE>(ratio, V::splat(0.0)) * V::splat(0.5);
    let z = bounded * bounded;
    let series = bounded * z * z.mul_add(V::splat(0.2), V::splat(1.0 / 3.0));
    let result = V::select(small, bounded + series, result);
    let limit = V::select(magnitude.eq(one), V::splat(f64::INFINITY), V::splat(f64::NAN));
    V::select(inside, result, limit).copysign(x)
}

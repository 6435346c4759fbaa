//! Powers: exp(y log |x|) with a logarithm of about 66 bits.

use super::dd::{Dd, two_prod};
use super::exponential::{exp, exp_of_sum};
use super::logarithm::{log, log_extended};
use crate::simd::Vector;

/// Beyond this exponent every power of a number other than 1 overflows or vanishes.
const HUGE_EXPONENT: f64 = 1e25;

/// Makes subnormal numbers normal.
const TWO_POW_54: f64 = 18_014_398_509_481_984.0;

/// x^y, with C's special cases.
#[inline(always)]
pub(crate) fn pow<V: Vector, const SINGLE: bool>(x: V, y: V) -> V {
    let magnitude = x.abs();
    let zero = V::splat(0.0);
    let usable = V::mask_and(
        V::mask_and(magnitude.gt(zero), magnitude.lt(V::splat(f64::INFINITY))),
        y.abs().lt(V::splat(HUGE_EXPONENT)),
    );
    let base = V::select(usable, magnitude, V::splat(1.0));
    let mut result = if SINGLE {
        exp::<V, false>(log::<V, false>(base) * y)
    } else {
        let subnormal = base.lt(V::splat(f64::MIN_POSITIVE));
        let normal = V::select(subnormal, base * V::splat(TWO_POW_54), base);
        let logarithm = log_extended(normal, V::select(subnormal, V::splat(-54.0), zero));
        let product = two_prod(logarithm.hi, y);
        let low = logarithm.lo.mul_add(y, product.lo);
        exp_of_sum(Dd { hi: product.hi, lo: low }, V::splat(1.0))
    };
    let negative = x.lt(zero);
    if V::any(V::mask_or(negative, V::mask_not(usable))) {
        let whole = y.trunc().eq(y);
        let half = y * V::splat(0.5);
        let odd = V::mask_and(whole, V::mask_not(half.trunc().eq(half)));
        let signed = V::select(odd, -result, result);
        let of_negative = V::select(whole, signed, V::splat(f64::NAN));
        result = V::select(negative, of_negative, result);
        result = V::select(usable, result, special(x, y, odd));
    }
    result
}

/// C's x^y for zeros, infinities, NaN, and exponents so huge that powers of all numbers but 1 are infinite or zero. `odd`: y is an
/// odd number.
#[inline(always)]
fn special<V: Vector>(x: V, y: V, odd: V::Mask) -> V {
    let (zero, one, infinity) = (V::splat(0.0), V::splat(1.0), V::splat(f64::INFINITY));
    let magnitude = x.abs();
    // Large numbers with positive exponents, and small ones with negative exponents.
    let larger = V::select(y.gt(zero), magnitude, one).gt(one);
    let smaller = V::select(y.lt(zero), magnitude, one).lt(one);
    let grown = V::select(V::mask_or(larger, smaller), infinity, zero);
    let size = V::select(magnitude.eq(one), one, grown);
    let signed = V::select(odd, size.copysign(x), size);
    let known = V::select(V::mask_and(x.eq(x), y.eq(y)), signed, V::splat(f64::NAN));
    V::select(V::mask_or(y.eq(zero), x.eq(one)), one, known)
}

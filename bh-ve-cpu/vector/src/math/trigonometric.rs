//! Sine, cosine and tangent: reduction modulo π/2 to a remainder in two parts, then polynomials on [-π/4, π/4].

use super::coefficients as c;
use super::dd::{Dd, fast_two_sum, polynomial, two_sum};
use super::payne_hanek::Reduce;
use crate::simd::{ROUND_MAGIC, Vector};
use std::f64::consts::FRAC_2_PI;

/// π/2 in parts of 33 bits, whose products with a 20-bit multiple are exact, and the rest.
const HALF_PI: [f64; 4] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32];
/// π/2 beyond its first part.
const HALF_PI_REST: f64 = 6.077100506506192e-11;

/// From here on the reduction needs more digits of π.
const LARGE: f64 = 1_000_000.0;

/// Which quadrant (in the low two bits of `quadrant`) and the remainder there.
struct Angle<V> {
    quadrant: V,
    r: Dd<V>,
}

#[inline(always)]
fn reduce<V: Vector, const SINGLE: bool>(x: V) -> Angle<V> {
    let magic = V::splat(ROUND_MAGIC);
    let quadrant = x.mul_add(V::splat(FRAC_2_PI), magic);
    let k = quadrant - magic;
    let first = k.neg_mul_add(V::splat(HALF_PI[0]), x);
    let r = if SINGLE {
        Dd { hi: k.neg_mul_add(V::splat(HALF_PI_REST), first), lo: V::splat(0.0) }
    } else {
        let second = two_sum(first, -(k * V::splat(HALF_PI[1])));
        let third = two_sum(second.hi, -(k * V::splat(HALF_PI[2])));
        let low = k.neg_mul_add(V::splat(HALF_PI[3]), second.lo + third.lo);
        fast_two_sum(third.hi, low)
    };
    let far = V::mask_not(x.abs().lt(V::splat(LARGE)));
    if V::any(far) {
        let [quadrant, hi, lo] = V::alone::<Reduce, 1, 3>(far, [x], [quadrant, r.hi, r.lo]);
        return Angle { quadrant, r: Dd { hi, lo } };
    }
    Angle { quadrant, r }
}

/// Sine and cosine of the remainder, each as a leading term and a correction.
#[inline(always)]
fn sine_cosine<V: Vector, const SINGLE: bool>(r: Dd<V>) -> (Dd<V>, Dd<V>) {
    let one = V::splat(1.0);
    let z = r.hi * r.hi;
    let cos_hi = z.mul_add(V::splat(-0.5), one);
    if SINGLE {
        let sin_lo = r.hi * z * polynomial(z, &c::SIN_SINGLE);
        let cos_lo = z * z * polynomial(z, &c::COS_SINGLE);
        return (Dd { hi: r.hi, lo: sin_lo }, Dd { hi: cos_hi, lo: cos_lo });
    }
    let half = z * V::splat(0.5);
    let cos_hi_plain = one - half;
    let cos_error = (one - cos_hi_plain) - half;
    let sin_lo = (r.hi * z).mul_add(polynomial(z, &c::SIN), r.lo * cos_hi);
    let cos_lo = (z * z).mul_add(polynomial(z, &c::COS), r.hi.neg_mul_add(r.lo, cos_error));
    (Dd { hi: r.hi, lo: sin_lo }, Dd { hi: cos_hi_plain, lo: cos_lo })
}

/// Lanes whose quadrant is odd.
#[inline(always)]
fn is_odd<V: Vector>(quadrant: V) -> V::Mask {
    quadrant.bits_shl::<63>().bits_or(V::splat(1.0)).lt(V::splat(0.0))
}

/// Sine in a quadrant: sin, cos, -sin, -cos.
#[inline(always)]
fn in_quadrant<V: Vector, const SINGLE: bool>(quadrant: V, r: Dd<V>) -> V {
    let (sin, cos) = sine_cosine::<V, SINGLE>(r);
    let odd = is_odd(quadrant);
    let value = V::select(odd, cos.hi, sin.hi) + V::select(odd, cos.lo, sin.lo);
    value.bits_xor(quadrant.bits_shl::<62>().sign_bit())
}

/// Sine.
#[inline(always)]
pub(crate) fn sin<V: Vector, const SINGLE: bool>(x: V) -> V {
    let angle = reduce::<V, SINGLE>(x);
    let result = in_quadrant::<V, SINGLE>(angle.quadrant, angle.r);
    // Keeps the sign of zero.
    V::select(x.eq(V::splat(0.0)), x, result)
}

/// Cosine: the sine one quadrant on.
#[inline(always)]
pub(crate) fn cos<V: Vector, const SINGLE: bool>(x: V) -> V {
    let angle = reduce::<V, SINGLE>(x);
    in_quadrant::<V, SINGLE>(angle.quadrant.bits_add(V::splat_bits(1)), angle.r)
}

/// Sine and cosine.
#[inline(always)]
pub(crate) fn sin_cos<V: Vector, const SINGLE: bool>(x: V) -> (V, V) {
    let angle = reduce::<V, SINGLE>(x);
    let sin = in_quadrant::<V, SINGLE>(angle.quadrant, angle.r);
    let cos = in_quadrant::<V, SINGLE>(angle.quadrant.bits_add(V::splat_bits(1)), angle.r);
    (V::select(x.eq(V::splat(0.0)), x, sin), cos)
}

/// Tangent: sine over cosine, or minus cosine over sine in odd quadrants.
#[inline(always)]
pub(crate) fn tan<V: Vector, const SINGLE: bool>(x: V) -> V {
    let angle = reduce::<V, SINGLE>(x);
    let (sin, cos) = sine_cosine::<V, SINGLE>(angle.r);
    let odd = is_odd(angle.quadrant);
    let over = Dd { hi: V::select(odd, cos.hi, sin.hi), lo: V::select(odd, cos.lo, sin.lo) };
    let under = Dd { hi: V::select(odd, sin.hi, cos.hi), lo: V::select(odd, sin.lo, cos.lo) };
    let quotient = if SINGLE {
        over.value() / under.value()
    } else {
        let over = fast_two_sum(over.hi, over.lo);
        over.div(fast_two_sum(under.hi, under.lo)).value()
    };
    let signed = quotient.bits_xor(angle.quadrant.bits_shl::<63>());
    V::select(x.eq(V::splat(0.0)), x, signed)
}

//! Error functions: a polynomial in x² up to 1, beyond that erfc(x) = e^(-x²) g((x-4)/(x+4)) / (1 + 2x) with one polynomial
//! g for the whole range (M. Shepherd and J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x²) erfc x",
//! Mathematics of Computation 36, 1981; the coefficients are our own).

use super::coefficients as c;
use super::dd::{Dd, polynomial, two_prod, two_sum};
use super::exponential::{exp, exp_of_sum};
use crate::simd::Vector;

/// Where erfc has vanished (it does at 27.3).
const ERFC_END: f64 = 28.0;

/// erf(x) for |x| ≤ 1, as x plus a correction.
#[inline(always)]
fn erf_rest<V: Vector, const SINGLE: bool>(x: V) -> V {
    let z = x * x;
    x * if SINGLE { polynomial(z, &c::ERF_SINGLE) } else { polynomial(z, &c::ERF) }
}

/// erfc(x) for 1 ≤ x ≤ 28.
#[inline(always)]
fn erfc_tail<V: Vector, const SINGLE: bool>(x: V) -> V {
    let four = V::splat(4.0);
    let one = V::splat(1.0);
    let (over, under) = (x - four, x + four);
    let scale = x.mul_add(V::splat(2.0), one);
    // One division serves both quotients.
    let inverse = one / (under * scale);
    let t = over * (inverse * scale);
    let shrink = inverse * under;
    if SINGLE {
        return exp::<V, false>(-(x * x)) * (polynomial(t, &c::ERFCX_SINGLE) * shrink);
    }
    let g = polynomial(t, &c::ERFCX);
    // The quotient g / (1 + 2x), corrected once.
    let q = g * shrink;
    let back = two_prod(q, scale);
    let q = ((g - back.hi) - back.lo).mul_add(shrink, q);
    let square = two_prod(x, x);
    exp_of_sum(Dd { hi: -square.hi, lo: -square.lo }, q)
}

/// Error function.
#[inline(always)]
pub(crate) fn erf<V: Vector, const SINGLE: bool>(x: V) -> V {
    let one = V::splat(1.0);
    let magnitude = x.abs();
    let inner = magnitude.lt(one);
    let mut result = magnitude + erf_rest::<V, SINGLE>(magnitude);
    if V::any(V::mask_not(inner)) {
        // From 6 on the result rounds to 1.
        let outer = one - erfc_tail::<V, SINGLE>(magnitude.at_least(one).at_most(V::splat(6.0)));
        result = V::select(inner, result, outer);
    }
    result.copysign(x)
}

/// Complementary error function.
#[inline(always)]
pub(crate) fn erfc<V: Vector, const SINGLE: bool>(x: V) -> V {
    let one = V::splat(1.0);
    let magnitude = x.abs();
    let inner = magnitude.lt(one);
    let sum = two_sum(one, -x);
    let mut result = sum.hi + (sum.lo - erf_rest::<V, SINGLE>(x));
    if V::any(V::mask_not(inner)) {
        let tail = erfc_tail::<V, SINGLE>(magnitude.at_least(one).at_most(V::splat(ERFC_END)));
        let outer = V::select(x.lt(V::splat(0.0)), V::splat(2.0) - tail, tail);
        result = V::select(inner, result, outer);
    }
    result
}

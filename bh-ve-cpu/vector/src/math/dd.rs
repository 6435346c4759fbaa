//! Sums and products that keep their rounding error, and polynomial evaluation (T. J. Dekker, "A floating-point technique
//! for extending the available precision", 1971; D. E. Knuth, TAOCP 2, 4.2.2).

use crate::simd::Vector;

/// An unevaluated sum of two numbers; `hi` is the rounded sum.
#[derive(Clone, Copy)]
pub(crate) struct Dd<V> {
    /// The rounded value.
    pub hi: V,
    /// The rounding error.
    pub lo: V,
}

/// `a + b` exactly, for any magnitudes.
#[inline(always)]
pub(crate) fn two_sum<V: Vector>(a: V, b: V) -> Dd<V> {
    let hi = a + b;
    let b_part = hi - a;
    Dd { hi, lo: (a - (hi - b_part)) + (b - b_part) }
}

/// `a + b` exactly, for |a| ≥ |b| or a = 0.
#[inline(always)]
pub(crate) fn fast_two_sum<V: Vector>(a: V, b: V) -> Dd<V> {
    let hi = a + b;
    Dd { hi, lo: b - (hi - a) }
}

/// `a · b` exactly, for magnitudes below 2^990 and products above 2^-900.
#[inline(always)]
pub(crate) fn two_prod<V: Vector>(a: V, b: V) -> Dd<V> {
    let hi = a * b;
    if V::FUSED {
        return Dd { hi, lo: a.mul_add(b, -hi) };
    }
    let (a1, a2) = halves(a);
    let (b1, b2) = halves(b);
    Dd { hi, lo: a2 * b2 - (((hi - a1 * b1) - a2 * b1) - a1 * b2) }
}

/// The upper 26 bits and the rest.
#[inline(always)]
fn halves<V: Vector>(x: V) -> (V, V) {
    let big = x * V::splat(134_217_729.0);
    let upper = big - (big - x);
    (upper, x - upper)
}

impl<V: Vector> Dd<V> {
    /// The value plus a number that is smaller or of like size, to about 2^-100.
    #[inline(always)]
    pub(crate) fn add(self, b: V) -> Self {
        let sum = two_sum(self.hi, b);
        fast_two_sum(sum.hi, sum.lo + self.lo)
    }

    /// Product of two sums, to about 2^-100.
    #[inline(always)]
    pub(crate) fn mul(self, b: Self) -> Self {
        let product = two_prod(self.hi, b.hi);
        let cross = self.hi.mul_add(b.lo, self.lo * b.hi);
        fast_two_sum(product.hi, product.lo + cross)
    }

    /// Quotient of two sums as a quotient and its correction, to about 2^-100; the divisor's inverse must be normal.
    #[inline(always)]
    pub(crate) fn div(self, b: Self) -> Self {
        // One division: its error and that of the product below are both in the correction.
        let inverse = V::splat(1.0) / b.hi;
        let hi = self.hi * inverse;
        let product = two_prod(hi, b.hi);
        let rest = ((self.hi - product.hi) - product.lo) + hi.neg_mul_add(b.lo, self.lo);
        Dd { hi, lo: rest * inverse }
    }

    /// Square root, to about 2^-100; the value must be positive and normal.
    #[inline(always)]
    pub(crate) fn sqrt(self) -> Self {
        let hi = self.hi.sqrt();
        let square = two_prod(hi, hi);
        let rest = ((self.hi - square.hi) - square.lo) + self.lo;
        fast_two_sum(hi, rest / (hi + hi))
    }

    /// The sum, rounded.
    #[inline(always)]
    pub(crate) fn value(self) -> V {
        self.hi + self.lo
    }
}

/// Σ coefficients[i] · x^i by Horner's rule.
#[inline(always)]
pub(crate) fn polynomial<V: Vector, const N: usize>(x: V, coefficients: &[f64; N]) -> V {
    let mut sum = V::splat(coefficients[N - 1]);
    for &coefficient in coefficients[..N - 1].iter().rev() {
        sum = sum.mul_add(x, V::splat(coefficient));
    }
    sum
}

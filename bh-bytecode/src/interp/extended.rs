//! Sums and products in more precision than their type: f32 in f64, f64 in unevaluated pairs of f64.

use crate::complex::{Complex, c64, c128};
use crate::scalar::Arithmetic;
use crate::truth::Truth;

/// A number as a rounded value and the error of rounding.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    high: f64,
    low: f64,
}

impl Pair {
    fn new(value: f64) -> Pair {
        Pair { high: value, low: 0.0 }
    }

    /// high + low as a pair. Infinity and NaN have no error that could be added.
    fn settled(high: f64, low: f64) -> Pair {
        let sum = high + low;
        if high.is_finite() && sum.is_finite() { Pair { high: sum, low: low - (sum - high) } } else { Pair::new(high) }
    }

    fn add(self, other: Pair) -> Pair {
        let high = self.high + other.high;
        let virtual_other = high - self.high;
        let error = (self.high - (high - virtual_other)) + (other.high - virtual_other);
        let low = error + self.low + other.low;
        Pair::settled(high, low)
    }

    fn multiply(self, factor: f64) -> Pair {
        let high = self.high * factor;
        let low = self.high.mul_add(factor, -high) + self.low * factor;
        Pair::settled(high, low)
    }

    fn negated(self) -> Pair {
        Pair { high: -self.high, low: -self.low }
    }

    fn rounded(self) -> f64 {
        self.high
    }
}

/// Elements whose sums and products the oracle computes in a wider type.
pub(super) trait Widened: Arithmetic {
    /// The wider type.
    type Wide: Copy;
    /// The value in the wider type.
    fn widen(self) -> Self::Wide;
    /// Back, rounded.
    fn narrow(wide: Self::Wide) -> Self;
    /// wide + self.
    fn add_to(self, wide: Self::Wide) -> Self::Wide;
    /// wide · self.
    fn multiply_to(self, wide: Self::Wide) -> Self::Wide;
    /// The sum of two in the wider type.
    fn add_wide(one: Self::Wide, other: Self::Wide) -> Self::Wide;
    /// The absolute value of what is finite of it, or NaN, if it matters for a tolerance.
    fn magnitude(self) -> Option<f64>;
}

/// The absolute value of a finite number, 0 for infinities, and NaN.
fn finite_magnitude(value: f64) -> f64 {
    if value.is_infinite() { 0.0 } else { value.abs() }
}

macro_rules! exact {
    ($($type:ident),*) => {$(
        impl Widened for $type {
            type Wide = $type;

            fn widen(self) -> $type {
                self
            }

            fn narrow(wide: $type) -> $type {
                wide
            }

            fn add_to(self, wide: $type) -> $type {
                wide.add(self)
            }

            fn multiply_to(self, wide: $type) -> $type {
                wide.multiply(self)
            }

            fn add_wide(one: $type, other: $type) -> $type {
                one.add(other)
            }

            fn magnitude(self) -> Option<f64> {
                None
            }
        }
    )*};
}

exact!(Truth, i8, i16, i32, i64, u8, u16, u32, u64);

impl Widened for f32 {
    type Wide = f64;

    fn widen(self) -> f64 {
        self as f64
    }

    fn narrow(wide: f64) -> f32 {
        wide as f32
    }

    fn add_to(self, wide: f64) -> f64 {
        wide + self as f64
    }

    fn multiply_to(self, wide: f64) -> f64 {
        wide * self as f64
    }

    fn add_wide(one: f64, other: f64) -> f64 {
        one + other
    }

    fn magnitude(self) -> Option<f64> {
        Some(finite_magnitude(self as f64))
    }
}

impl Widened for f64 {
    type Wide = Pair;

    fn widen(self) -> Pair {
        Pair::new(self)
    }

    fn narrow(wide: Pair) -> f64 {
        wide.rounded()
    }

    fn add_to(self, wide: Pair) -> Pair {
        wide.add(Pair::new(self))
    }

    fn multiply_to(self, wide: Pair) -> Pair {
        wide.multiply(self)
    }

    fn add_wide(one: Pair, other: Pair) -> Pair {
        one.add(other)
    }

    fn magnitude(self) -> Option<f64> {
        Some(finite_magnitude(self))
    }
}

macro_rules! complex {
    ($type:ident, $part:ident, $wide:ident, $minus:expr, $plus:expr, $times:expr) => {
        impl Widened for $type {
            type Wide = Complex<$wide>;

            fn widen(self) -> Complex<$wide> {
                Complex::new(self.re.widen(), self.im.widen())
            }

            fn narrow(wide: Complex<$wide>) -> $type {
                Complex::new($part::narrow(wide.re), $part::narrow(wide.im))
            }

            fn add_to(self, wide: Complex<$wide>) -> Complex<$wide> {
                Complex::new(self.re.add_to(wide.re), self.im.add_to(wide.im))
            }

            fn multiply_to(self, wide: Complex<$wide>) -> Complex<$wide> {
                let (re, im) = (self.re as f64, self.im as f64);
                Complex::new(
                    $minus($times(wide.re, re), $times(wide.im, im)),
                    $plus($times(wide.re, im), $times(wide.im, re)),
                )
            }

            fn add_wide(one: Complex<$wide>, other: Complex<$wide>) -> Complex<$wide> {
                Complex::new($plus(one.re, other.re), $plus(one.im, other.im))
            }

            fn magnitude(self) -> Option<f64> {
                Some(finite_magnitude(self.re as f64).hypot(finite_magnitude(self.im as f64)))
            }
        }
    };
}

complex!(c64, f32, f64, |a: f64, b: f64| a - b, |a: f64, b: f64| a + b, |a: f64, b: f64| a * b);
complex!(c128, f64, Pair, |a: Pair, b: Pair| a.add(b.negated()), Pair::add, Pair::multiply);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_what_f64_loses() {
        let values = [1e16, 1.0, -1e16, 1.0, 1e-20];
        let sum = values.iter().fold(0f64.widen(), |sum, value| value.add_to(sum));
        assert_eq!(f64::narrow(sum), 2.0);
        let infinite = [f64::INFINITY, 1.0].iter().fold(0f64.widen(), |sum, value| value.add_to(sum));
        assert_eq!(f64::narrow(infinite), f64::INFINITY);
    }

    #[test]
    fn products_keep_what_f64_loses() {
        let third = 1.0 / 3.0;
        let product = [3.0, third, 3.0].iter().fold(third.widen(), |product, value| value.multiply_to(product));
        assert_eq!(f64::narrow(product), 1.0 - 1.0 / 2f64.powi(53));
        let i = Complex::new(0.0f32, 1.0);
        assert_eq!(c64::narrow(i.multiply_to(i.widen())), Complex::new(-1.0, 0.0));
    }
}

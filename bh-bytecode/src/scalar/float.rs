//! Scalar functions of f32 and f64.
//!
//! Functions of f32 are computed in f64 and rounded, so that they are correctly rounded but for rare ties.

use super::{Arithmetic, Classify, Float, FloatFunctions, Inexact, Numeric, Ordered, Real};

macro_rules! float_arithmetic {
    ($($type:ident),*) => {$(
        impl Arithmetic for $type {
            const ZERO: $type = 0.0;
            const ONE: $type = 1.0;

            #[inline(always)]
            fn add(self, other: $type) -> $type {
                self + other
            }

            #[inline(always)]
            fn multiply(self, other: $type) -> $type {
                self * other
            }
        }

        impl Numeric for $type {
            type Abs = $type;

            #[inline(always)]
            fn subtract(self, other: $type) -> $type {
                self - other
            }

            #[inline(always)]
            fn divide(self, other: $type) -> $type {
                self / other
            }

            #[inline]
            fn power(self, exponent: $type) -> $type {
                f64::powf(self as f64, exponent as f64) as $type
            }

            #[inline(always)]
            fn absolute(self) -> $type {
                self.abs()
            }

            #[inline(always)]
            fn sign(self) -> $type {
                if self > 0.0 {
                    1.0
                } else if self < 0.0 {
                    -1.0
                } else if self == 0.0 {
                    0.0
                } else {
                    self
                }
            }
        }

        impl Ordered for $type {
            const HIGHEST: $type = $type::INFINITY;
            const LOWEST: $type = $type::NEG_INFINITY;

            #[inline(always)]
            fn maximum(self, other: $type) -> $type {
                if self >= other || self.is_nan() { self } else { other }
            }

            #[inline(always)]
            fn minimum(self, other: $type) -> $type {
                if self <= other || self.is_nan() { self } else { other }
            }
        }

        impl Real for $type {
            #[inline]
            fn floor_divide(self, other: $type) -> $type {
                if other == 0.0 {
                    return self / other;
                }
                let rest = self % other;
                // self - rest is nearly a multiple of other, so the quotient is nearly whole.
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $type).copysign(self / other);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }

            #[inline(always)]
            fn fmod(self, other: $type) -> $type {
                self % other
            }

            #[inline]
            fn remainder(self, other: $type) -> $type {
                let rest = self % other;
                if other == 0.0 {
                    rest
                } else if rest == 0.0 {
                    (0.0 as $type).copysign(other)
                } else if (rest < 0.0) != (other < 0.0) {
                    rest + other
                } else {
                    rest
                }
            }
        }

        impl Classify for $type {
            #[inline(always)]
            fn isnan(self) -> bool {
                self.is_nan()
            }

            #[inline(always)]
            fn isinf(self) -> bool {
                self.is_infinite()
            }

            #[inline(always)]
            fn isfinite(self) -> bool {
                self.is_finite()
            }
        }

        impl Float for $type {
            #[inline]
            fn arctan2(self, x: $type) -> $type {
                f64::atan2(self as f64, x as f64) as $type
            }

            #[inline(always)]
            fn signbit(self) -> bool {
                self.is_sign_negative()
            }
        }
    )*};
}

float_arithmetic!(f32, f64);

/// Implements unary functions, each by a function of f64.
macro_rules! float_functions {
    ($type:ident: $($trait:ident { $($name:ident = $function:path),* $(,)? })*) => {$(
        impl $trait for $type {
            $(
                #[inline]
                fn $name(self) -> $type {
                    $function(self as f64) as $type
                }
            )*
        }
    )*};
}

/// The table of functions, once for each type.
macro_rules! all_float_functions {
    ($($type:ident),*) => {$(
        float_functions! { $type:
            // std's own inverse hyperbolic functions lose digits near their zeros, and it has no error functions.
            Inexact {
                cos = f64::cos,
                sin = f64::sin,
                tan = f64::tan,
                cosh = f64::cosh,
                sinh = f64::sinh,
                tanh = f64::tanh,
                exp = f64::exp,
                log = f64::ln,
                log10 = f64::log10,
                sqrt = f64::sqrt,
                arcsin = f64::asin,
                arccos = f64::acos,
                arctan = f64::atan,
                arcsinh = libm::asinh,
                arccosh = arccosh,
                arctanh = libm::atanh,
                exp2 = f64::exp2,
                expm1 = f64::exp_m1,
                log2 = f64::log2,
                log1p = f64::ln_1p,
            }
            FloatFunctions {
                cbrt = libm::cbrt,
                ceil = f64::ceil,
                trunc = f64::trunc,
                floor = f64::floor,
                rint = f64::round_ties_even,
                erf = libm::erf,
                erfc = libm::erfc,
            }
        }
    )*};
}

all_float_functions!(f32, f64);

/// libm's function gives numbers for most arguments below its domain.
fn arccosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

#[cfg(test)]
mod tests {
    use crate::scalar::*;

    #[test]
    fn maxima_propagate_nan_and_keep_the_first() {
        assert!(maximum(f64::NAN, 1.0).is_nan() && maximum(1.0, f64::NAN).is_nan());
        assert!(minimum(f32::NAN, 1.0).is_nan() && minimum(1.0, f32::NAN).is_nan());
        assert!(maximum(-0.0, 0.0f64).is_sign_negative() && minimum(0.0, -0.0f64).is_sign_positive());
    }

    #[test]
    fn arccosh_has_a_domain() {
        assert!([-580.0f64, -7.0, -1.0, 0.999].iter().all(|&x| arccosh(x).is_nan() && arccosh(x as f32).is_nan()));
        assert_eq!(arccosh(1.0), 0.0);
    }

    #[test]
    fn floor_division_is_numpys() {
        assert_eq!((floor_divide(7.5, 2.0), floor_divide(-7.5, 2.0), floor_divide(7.5, -2.0)), (3.0, -4.0, -4.0));
        assert_eq!(floor_divide(1.0, 0.1), 9.0);
        assert_eq!(floor_divide(1.0, 0.0), f64::INFINITY);
        assert!(floor_divide(0.0, 0.0f32).is_nan() && floor_divide(f64::INFINITY, 2.0).is_nan());
        assert!(floor_divide(-0.0, 2.0f64).is_sign_negative());
        assert_eq!((remainder(-1.0, 3.0), remainder(1.0, -3.0), fmod(-1.0, 3.0)), (2.0, -2.0, -1.0));
        assert!(remainder(4.0, -2.0f32).is_sign_negative());
        assert_eq!(remainder(1.0, f64::INFINITY), 1.0);
        assert_eq!(remainder(-1.0, f64::INFINITY), f64::INFINITY);
        assert!(remainder(1.0, 0.0f64).is_nan());
    }

    #[test]
    fn special_values() {
        assert!(sign(f64::NAN).is_nan() && sign(-0.0f64).is_sign_positive());
        assert_eq!((rint(2.5), rint(-1.5), trunc(-1.5), ceil(1.2)), (2.0, -2.0, -1.0, 2.0));
        let all =
            [isnan(f32::NAN), isinf(f64::NEG_INFINITY), !isfinite(f64::NAN), isfinite(1.0f32), signbit(-f64::NAN)];
        assert!(all.into_iter().all(Truth::get));
        assert_eq!(power(-2.0, 3.0), -8.0);
        assert!(power(-2.0, 0.5f64).is_nan());
        assert_eq!(erf(f64::INFINITY), 1.0);
        let step = 2f64.powi(-30);
        assert!((arccosh(1.0 + step) - (2.0 * step).sqrt() * (1.0 - step / 12.0)).abs() < 1e-19);
        assert_eq!(sin(1.0f32), 1f64.sin() as f32);
    }
}

//! Scalar functions of complex numbers. Products and quotients are NumPy's formulas in the type itself; the functions
//! of c64 are those of c128, rounded.

use super::complex_functions as functions;
use super::{Arithmetic, Classify, ComplexElement, Inexact, Numeric};
use crate::complex::{Complex, c64, c128};
use crate::element::CastFrom;

/// Hypotenuse that neither overflows nor loses digits before its result does.
trait Modulus {
    fn modulus(self, other: Self) -> Self;
}

impl Modulus for f32 {
    #[inline]
    fn modulus(self, other: f32) -> f32 {
        // Squares of f32 are exact and cannot overflow in f64. An infinite part wins over NaN, as in C.
        if self.is_infinite() || other.is_infinite() {
            return f32::INFINITY;
        }
        let (a, b) = (self as f64, other as f64);
        (a * a + b * b).sqrt() as f32
    }
}

impl Modulus for f64 {
    #[inline]
    fn modulus(self, other: f64) -> f64 {
        self.hypot(other)
    }
}

macro_rules! complex_traits {
    ($($type:ident, $part:ident);*) => {$(
        impl Arithmetic for $type {
            const ZERO: $type = Complex::new(0.0, 0.0);
            const ONE: $type = Complex::new(1.0, 0.0);

            #[inline(always)]
            fn add(self, other: $type) -> $type {
                Complex::new(self.re + other.re, self.im + other.im)
            }

            #[inline(always)]
            fn multiply(self, other: $type) -> $type {
                Complex::new(
                    self.re * other.re - self.im * other.im,
                    self.re * other.im + self.im * other.re,
                )
            }
        }

        impl Numeric for $type {
            type Abs = $part;

            #[inline(always)]
            fn subtract(self, other: $type) -> $type {
                Complex::new(self.re - other.re, self.im - other.im)
            }

            /// Smith's method.
            #[inline(always)]
            fn divide(self, other: $type) -> $type {
                if other.re.abs() >= other.im.abs() {
                    if other.re == 0.0 && other.im == 0.0 {
                        let zero = other.re.abs();
                        return Complex::new(self.re / zero, self.im / zero);
                    }
                    let ratio = other.im / other.re;
                    let scale = 1.0 / (other.re + other.im * ratio);
                    Complex::new((self.re + self.im * ratio) * scale, (self.im - self.re * ratio) * scale)
                } else {
                    let ratio = other.re / other.im;
                    let scale = 1.0 / (other.im + other.re * ratio);
                    Complex::new((self.re * ratio + self.im) * scale, (self.im * ratio - self.re) * scale)
                }
            }

            #[inline]
            fn power(self, exponent: $type) -> $type {
                if exponent.re == 0.0 && exponent.im == 0.0 {
                    return Self::ONE;
                }
                if self.re == 0.0 && self.im == 0.0 {
                    let part = if exponent.re > 0.0 { 0.0 } else { $part::NAN };
                    return Complex::new(part, part);
                }
                if exponent.im == 0.0 && exponent.re.fract() == 0.0 && exponent.re.abs() < 100.0 {
                    return functions::whole_power(self, exponent.re as i32);
                }
                $type::cast_from(functions::any_power(c128::cast_from(self), c128::cast_from(exponent)))
            }

            #[inline]
            fn absolute(self) -> $part {
                self.re.modulus(self.im)
            }

            #[inline]
            fn sign(self) -> $type {
                let modulus = self.absolute();
                if modulus.is_nan() {
                    Complex::new($part::NAN, $part::NAN)
                } else if modulus == 0.0 {
                    Complex::new(0.0, 0.0)
                } else if modulus.is_finite() {
                    Complex::new(self.re / modulus, self.im / modulus)
                } else if !self.re.is_infinite() {
                    // An infinite part outweighs whatever the other one is, as the modulus says too.
                    Complex::new(0.0, 1f64.copysign(self.im as f64) as $part)
                } else if !self.im.is_infinite() {
                    Complex::new(1f64.copysign(self.re as f64) as $part, 0.0)
                } else {
                    Complex::new($part::NAN, $part::NAN)
                }
            }
        }

        impl ComplexElement for $type {
            type Part = $part;

            #[inline(always)]
            fn conj(self) -> $type {
                Complex::new(self.re, -self.im)
            }

            /// Smith's method, without its product by one.
            #[inline(always)]
            fn reciprocal(self) -> $type {
                if self.im.abs() <= self.re.abs() {
                    let ratio = self.im / self.re;
                    let divisor = self.re + self.im * ratio;
                    return Complex::new(1.0 / divisor, -ratio / divisor);
                }
                let ratio = self.re / self.im;
                let divisor = self.re * ratio + self.im;
                Complex::new(ratio / divisor, -1.0 / divisor)
            }

            #[inline(always)]
            fn real(self) -> $part {
                self.re
            }

            #[inline(always)]
            fn imag(self) -> $part {
                self.im
            }
        }

        impl Classify for $type {
            #[inline(always)]
            fn isnan(self) -> bool {
                self.re.is_nan() || self.im.is_nan()
            }

            #[inline(always)]
            fn isinf(self) -> bool {
                self.re.is_infinite() || self.im.is_infinite()
            }

            #[inline(always)]
            fn isfinite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
        }

        complex_inexact!(
            $type: cos, sin, tan, cosh, sinh, tanh, exp, log, log10, sqrt, arcsin, arccos, arctan, arcsinh, arccosh,
            arctanh, exp2, expm1, log2, log1p
        );
    )*};
}

macro_rules! complex_inexact {
    ($type:ident: $($name:ident),*) => {
        impl Inexact for $type {
            $(
                #[inline]
                fn $name(self) -> $type {
                    $type::cast_from(functions::$name(c128::cast_from(self)))
                }
            )*
        }
    };
}

complex_traits!(c64, f32; c128, f64);

#[cfg(test)]
mod tests {
    use crate::complex::Complex;
    use crate::scalar::*;

    #[test]
    fn arithmetic() {
        let (a, b) = (Complex::new(1.0, 2.0), Complex::new(3.0, -4.0));
        assert_eq!(multiply(a, b), Complex::new(11.0, 2.0));
        assert_eq!(divide(multiply(a, b), b), a);
        assert_eq!(reciprocal(b), Complex::new(0.12, 0.16));
        assert_eq!(absolute(b), 5.0);
        assert_eq!(sign(b), Complex::new(0.6, -0.8));
        assert_eq!((conj(a), real(a), imag(a)), (Complex::new(1.0, -2.0), 1.0, 2.0));
        assert_eq!(powi(a, 2), Complex::new(-3.0, 4.0));
    }

    #[test]
    fn specials() {
        let quotient = divide(Complex::new(1.0f64, -1.0), Complex::new(0.0, 0.0));
        assert_eq!(quotient, Complex::new(f64::INFINITY, f64::NEG_INFINITY));
        let signs = |z: Complex<f64>| (reciprocal(z).re.is_sign_negative(), reciprocal(z).im.is_sign_negative());
        assert_eq!(signs(Complex::new(-2.0, -0.0)), (true, false));
        assert_eq!(signs(Complex::new(-2.0, 0.0)), (true, true));
        assert!(reciprocal(Complex::new(0f32, 0.0)).re.is_nan());
        assert!(isnan(Complex::new(1.0, f32::NAN)).get() && isinf(Complex::new(1.0, f64::INFINITY)).get());
        assert_eq!(absolute(Complex::new(f32::NEG_INFINITY, f32::NAN)), f32::INFINITY);
        assert_eq!(absolute(Complex::new(3e38f32, 4e37)), (3e38f32 as f64).hypot(4e37f32 as f64) as f32);
        assert_eq!(sign(Complex::new(f64::INFINITY, 3.0)), Complex::new(1.0, 0.0));
        assert_eq!(sign(Complex::new(f64::INFINITY, f64::NAN)), Complex::new(1.0, 0.0));
        assert_eq!(sign(Complex::new(f32::NAN, f32::NEG_INFINITY)), Complex::new(0.0, -1.0));
    }
}

//! Inverse circular and hyperbolic functions of c128, by Kahan's formulas, with the special values of C's Annex G; numbers whose squares
//! overflow have the logarithm of their double.

use super::{log_modulus, sqrt, swap};
use crate::complex::{Complex, c128};
use std::f64::consts::{FRAC_PI_2, LN_2};

/// Beyond this, squares of the parts overflow.
const LARGE: f64 = 1e150;

fn is_large(z: c128) -> bool {
    z.re.abs() > LARGE || z.im.abs() > LARGE
}

/// The real part of log 2z.
fn log_of_double(z: c128) -> f64 {
    log_modulus(z) + LN_2
}

/// √(1 - z) and √(1 + z); the sign of a zero imaginary part says on which side of a cut z lies.
fn roots(z: c128) -> (c128, c128) {
    (sqrt(Complex::new(1.0 - z.re, -z.im)), sqrt(Complex::new(1.0 + z.re, z.im)))
}

/// Im(conj(a)·b).
fn cross(a: c128, b: c128) -> f64 {
    a.re * b.im - a.im * b.re
}

/// Inverse cosine.
pub(in crate::scalar) fn arccos(z: c128) -> c128 {
    if is_large(z) {
        return Complex::new(z.im.abs().atan2(z.re), -log_of_double(z).copysign(z.im));
    }
    if z.re == 0.0 && z.im.is_nan() {
        return Complex::new(FRAC_PI_2, f64::NAN);
    }
    let (minus, plus) = roots(z);
    Complex::new(2.0 * minus.re.atan2(plus.re), libm::asinh(cross(plus, minus)))
}

/// Inverse sine.
pub(in crate::scalar) fn arcsin(z: c128) -> c128 {
    swap(arcsinh(swap(z)))
}

/// Inverse hyperbolic sine.
pub(in crate::scalar) fn arcsinh(z: c128) -> c128 {
    if is_large(z) {
        return Complex::new(log_of_double(z).copysign(z.re), z.im.atan2(z.re.abs()));
    }
    if z.re.is_nan() && z.im == 0.0 {
        return z;
    }
    // i·arcsin(-i·z), whose roots are of 1 + i·z and 1 - i·z.
    let turned = Complex::new(z.im, -z.re);
    let (minus, plus) = roots(turned);
    let angle = turned.re.atan2(minus.re * plus.re - minus.im * plus.im);
    Complex::new(-libm::asinh(cross(minus, plus)), angle)
}

/// Inverse hyperbolic cosine.
pub(in crate::scalar) fn arccosh(z: c128) -> c128 {
    if is_large(z) {
        return Complex::new(log_of_double(z), z.im.atan2(z.re));
    }
    if z.re == 0.0 && z.im.is_nan() {
        return Complex::new(f64::NAN, FRAC_PI_2);
    }
    let (below, above) = (sqrt(Complex::new(z.re - 1.0, z.im)), sqrt(Complex::new(z.re + 1.0, z.im)));
    let real = below.re * above.re + below.im * above.im;
    Complex::new(libm::asinh(real), 2.0 * below.im.atan2(above.re))
}

/// Inverse hyperbolic tangent.
pub(in crate::scalar) fn arctanh(z: c128) -> c128 {
    let (x, y) = (z.re.abs(), z.im);
    if z.re.is_infinite() || z.im.is_infinite() {
        let angle = if y.is_nan() { f64::NAN } else { FRAC_PI_2.copysign(y) };
        return Complex::new(0f64.copysign(z.re), angle);
    }
    if x == 0.0 && y.is_nan() {
        return z;
    }
    if x.is_nan() || y.is_nan() {
        return Complex::new(f64::NAN, f64::NAN);
    }
    if x > LARGE || y.abs() > LARGE {
        let modulus = x.hypot(y);
        return Complex::new((x / modulus / modulus).copysign(z.re), FRAC_PI_2.copysign(y));
    }
    let real = if x == 1.0 && y.abs() < 1.0 / LARGE {
        0.5 * (LN_2 - y.abs().ln())
    } else {
        0.25 * (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p()
    };
    let angle = (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y);
    Complex::new(real.copysign(z.re), 0.5 * angle)
}

/// Inverse tangent.
pub(in crate::scalar) fn arctan(z: c128) -> c128 {
    swap(arctanh(swap(z)))
}

#[cfg(test)]
mod tests {
    use super::super::{cos, cosh, exp, expm1, log1p, sin, sinh, tan, tanh};
    use super::*;
    use std::f64::consts::PI;

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    fn same(a: c128, re: f64, im: f64) {
        let equal = |x: f64, y: f64| (x.is_nan() && y.is_nan()) || x.to_bits() == y.to_bits();
        assert!(equal(a.re, re) && equal(a.im, im), "{a:?} is not ({re}, {im})");
    }

    fn close(a: c128, b: c128, factor: f64) {
        let distance = (a.re - b.re).hypot(a.im - b.im);
        assert!(distance <= factor * f64::EPSILON * b.re.hypot(b.im), "{a:?} is not close to {b:?}");
    }

    #[test]
    fn they_invert_their_functions() {
        let mut rng = crate::random::Rng::new(9);
        let mut number = || rng.between(-1_000_000, 1_000_000) as f64 * 3e-6;
        for _ in 0..2000 {
            let z = Complex::new(number(), number());
            for (back, there) in [
                (sin as fn(c128) -> c128, arcsin as fn(c128) -> c128),
                (cos, arccos),
                (tan, arctan),
                (sinh, arcsinh),
                (cosh, arccosh),
                (tanh, arctanh),
                (expm1, log1p),
            ] {
                close(back(there(z)), z, 300.0);
            }
        }
    }

    #[test]
    fn annex_g() {
        same(arccos(Complex::new(0.0, 0.0)), FRAC_PI_2, -0.0);
        same(arccos(Complex::new(-INF, 2.0)), PI, -INF);
        same(arccos(Complex::new(INF, INF)), PI / 4.0, -INF);
        same(arccos(Complex::new(0.0, NAN)), FRAC_PI_2, NAN);
        same(arcsinh(Complex::new(2.0, INF)), INF, FRAC_PI_2);
        same(arcsinh(Complex::new(-INF, 2.0)), -INF, 0.0);
        same(arcsinh(Complex::new(NAN, 0.0)), NAN, 0.0);
        same(arcsin(Complex::new(0.0, -0.0)), 0.0, -0.0);
        same(arccosh(Complex::new(-INF, 1.0)), INF, PI);
        same(arccosh(Complex::new(NAN, INF)), INF, NAN);
        same(arctanh(Complex::new(1.0, 0.0)), INF, 0.0);
        same(arctanh(Complex::new(-3.0, INF)), -0.0, FRAC_PI_2);
        same(arctanh(Complex::new(0.0, NAN)), 0.0, NAN);
        // Both sides of the cuts.
        same(arcsin(Complex::new(2.0, 0.0)), FRAC_PI_2, libm::asinh(3f64.sqrt()));
        assert!(arcsin(Complex::new(2.0, -0.0)).im < 0.0 && arccos(Complex::new(2.0, -0.0)).im > 0.0);
        assert!(arctanh(Complex::new(2.0, 0.0)).im > 1.0 && arctanh(Complex::new(2.0, -0.0)).im < -1.0);
        assert_eq!(arccosh(Complex::new(-2.0, -0.0)).im, -PI);
    }

    #[test]
    fn small_and_large_arguments() {
        let tiny = Complex::new(1e-200, -3e-180);
        for function in [arcsin, arcsinh, arctan, arctanh, log1p, expm1] {
            close(function(tiny), tiny, 2.0);
        }
        let huge = arccosh(Complex::new(1e300, 1e300));
        close(huge, Complex::new(300.0 * std::f64::consts::LN_10 + 1.5 * std::f64::consts::LN_2, PI / 4.0), 4.0);
        assert!((arctanh(Complex::new(1e200, 1.0)).re - 1e-200).abs() < 1e-214);
        let largest = arcsinh(Complex::new(f64::MAX, f64::MAX));
        close(largest, Complex::new(1024.0 * std::f64::consts::LN_2 + 1.5 * std::f64::consts::LN_2, PI / 4.0), 4.0);
        // Close to the poles, where squares underflow.
        close(arctanh(Complex::new(1.0, 1e-200)), Complex::new(230.60508288968455, PI / 4.0), 4.0);
        close(arctan(Complex::new(1e-300, 1.0)), Complex::new(PI / 4.0, 345.7343375393868), 4.0);
        same(arctanh(Complex::new(-1.0, 0.0)), -INF, 0.0);
        close(log1p(expm1(Complex::new(1e-9, 1e-9))), Complex::new(1e-9, 1e-9), 4.0);
        close(expm1(Complex::new(30.0, 1.0)), exp(Complex::new(30.0, 1.0)), 1e4);
    }
}

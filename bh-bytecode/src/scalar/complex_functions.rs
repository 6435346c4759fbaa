//! Elementary functions of c128. Special values are NumPy's: those of C's Annex G, in the GNU C library's choice where
//! the standard leaves one, and NumPy's own of powers; expm1 has those of exp, as the array API says.

use crate::complex::{Complex, c128};
use std::f64::consts::{LN_2, LOG2_E, LOG10_E};

mod inverse;
mod power;
pub(super) use inverse::{arccos, arccosh, arcsin, arcsinh, arctan, arctanh};
pub(super) use power::{any_power, whole_power};

/// Above this, hyperbolic sine and cosine equal e^|x|/2.
const EQUAL_HYPERBOLIC: f64 = 22.0;
/// Above this, e^x may overflow where e^x·cos y does not; below its negative, e^x loses digits.
const NEAR_OVERFLOW: f64 = 700.0;

/// e^x·(cos y, sin y)·factor for finite x and y ≠ 0, in two steps where e^x alone would overflow or underflow.
fn exp_polar(x: f64, y: f64, factor: f64) -> c128 {
    let (sin, cos) = y.sin_cos();
    if x.abs() < NEAR_OVERFLOW {
        let scale = x.exp() * factor;
        return Complex::new(scale * cos, scale * sin);
    }
    let root = (x * 0.5).exp();
    Complex::new(root * cos * factor * root, root * sin * factor * root)
}

/// e to the power z.
pub(super) fn exp(z: c128) -> c128 {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        return Complex::new(x.exp(), y);
    }
    if x == f64::INFINITY {
        return if y.is_finite() { Complex::new(x * y.cos(), x * y.sin()) } else { Complex::new(x, f64::NAN) };
    }
    if x == f64::NEG_INFINITY {
        let (sin, cos) = if y.is_finite() { y.sin_cos() } else { (y, 0.0) };
        return Complex::new(0f64.copysign(cos), 0f64.copysign(sin));
    }
    if x.is_nan() || !y.is_finite() {
        return Complex::new(f64::NAN, f64::NAN);
    }
    exp_polar(x, y, 1.0)
}

/// A product as its rounded value and the error of rounding.
fn exact_square(x: f64) -> (f64, f64) {
    let square = x * x;
    (square, x.mul_add(x, -square))
}

/// The natural logarithm of |z|, accurate also where |z| is close to 1, huge or tiny.
fn log_modulus(z: c128) -> f64 {
    let modulus = z.re.hypot(z.im);
    if (0.7..1.45).contains(&modulus) {
        // |z|² - 1 with the rounding errors of both squares: the sum cancels near the unit circle.
        let (large, small) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
        let ((a, a_error), (b, b_error)) = (exact_square(large), exact_square(small));
        return (((a - 1.0) + b) + (a_error + b_error)).ln_1p() * 0.5;
    }
    if modulus == f64::INFINITY && z.re.is_finite() && z.im.is_finite() {
        return (z.re * 0.5).hypot(z.im * 0.5).ln() + LN_2;
    }
    if modulus != 0.0 && modulus < 1e-290 {
        let scale = 2f64.powi(600);
        return (z.re * scale).hypot(z.im * scale).ln() - 600.0 * LN_2;
    }
    modulus.ln()
}

/// Natural logarithm, with the cut along the negative real axis.
pub(super) fn log(z: c128) -> c128 {
    Complex::new(log_modulus(z), z.im.atan2(z.re))
}

/// Logarithm to base 10.
pub(super) fn log10(z: c128) -> c128 {
    let log = log(z);
    Complex::new(log.re * LOG10_E, log.im * LOG10_E)
}

/// Logarithm to base 2.
pub(super) fn log2(z: c128) -> c128 {
    let log = log(z);
    Complex::new(log.re * LOG2_E, log.im * LOG2_E)
}

/// Natural logarithm of 1 + z, accurate for small z.
pub(super) fn log1p(z: c128) -> c128 {
    let Complex { re: x, im: y } = z;
    let angle = y.atan2(1.0 + x);
    if x.abs() < 0.5 && y.abs() < 0.5 {
        // |1 + z|² - 1, where the doubled real part may cancel the squares.
        let ((a, a_error), (b, b_error)) = (exact_square(x), exact_square(y));
        return Complex::new(((2.0 * x + (a + b)) + (a_error + b_error)).ln_1p() * 0.5, angle);
    }
    Complex::new(log_modulus(Complex::new(1.0 + x, y)), angle)
}

/// e to the power z, minus 1, accurate for small z.
pub(super) fn expm1(z: c128) -> c128 {
    let Complex { re: x, im: y } = z;
    if !x.is_finite() || !y.is_finite() || x.abs() >= EQUAL_HYPERBOLIC {
        let power = exp(z);
        return Complex::new(power.re - 1.0, power.im);
    }
    let half = (y * 0.5).sin();
    Complex::new(x.exp_m1() * y.cos() - 2.0 * half * half, if y == 0.0 { y } else { x.exp() * y.sin() })
}

/// 2 to the power z.
pub(super) fn exp2(z: c128) -> c128 {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        return Complex::new(x.exp2(), y);
    }
    if !x.is_finite() || !y.is_finite() || x.abs() >= NEAR_OVERFLOW {
        return exp(Complex::new(x * LN_2, y * LN_2));
    }
    let (scale, (sin, cos)) = (x.exp2(), (y * LN_2).sin_cos());
    Complex::new(scale * cos, scale * sin)
}

/// Square root with a real part that is not negative.
pub(super) fn sqrt(z: c128) -> c128 {
    let Complex { re: x, im: y } = z;
    if x == 0.0 && y == 0.0 {
        return Complex::new(0.0, y);
    }
    if y.is_infinite() {
        return Complex::new(f64::INFINITY, y);
    }
    if x.is_nan() {
        return Complex::new(f64::NAN, f64::NAN);
    }
    if x == f64::INFINITY {
        return Complex::new(x, if y.is_nan() { y } else { 0f64.copysign(y) });
    }
    if x == f64::NEG_INFINITY {
        return Complex::new(if y.is_nan() { y } else { 0.0 }, f64::INFINITY.copysign(y));
    }
    if y.is_nan() {
        return Complex::new(f64::NAN, f64::NAN);
    }
    // Scale by powers of four so that neither the sum overflows nor the parts are subnormal.
    let largest = x.abs().max(y.abs());
    let (scale, unscale) = if largest > f64::MAX / 8.0 {
        (2f64.powi(-4), 4.0)
    } else if largest < 1e-290 {
        (2f64.powi(108), 2f64.powi(-54))
    } else {
        (1.0, 1.0)
    };
    let (x, y) = (x * scale, y * scale);
    let root = ((x.abs() + x.hypot(y)) * 0.5).sqrt();
    let other = y.abs() / (2.0 * root);
    let (re, im) = if x >= 0.0 { (root, other.copysign(y)) } else { (other, root.copysign(y)) };
    Complex::new(re * unscale, im * unscale)
}

/// Hyperbolic sine.
pub(super) fn sinh(z: c128) -> c128 {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        return Complex::new(x.sinh(), y);
    }
    match (x.is_finite(), y.is_finite()) {
        (true, true) if x.abs() < EQUAL_HYPERBOLIC => Complex::new(x.sinh() * y.cos(), x.cosh() * y.sin()),
        (true, true) => {
            let value = exp_polar(x.abs(), y, 0.5);
            Complex::new(if x < 0.0 { -value.re } else { value.re }, value.im)
        }
        (true, false) if x == 0.0 => Complex::new(x, f64::NAN),
        (false, true) if x.is_infinite() => Complex::new(x * y.cos(), f64::INFINITY * y.sin()),
        (false, false) if x.is_infinite() => Complex::new(f64::INFINITY, f64::NAN),
        _ => Complex::new(f64::NAN, f64::NAN),
    }
}

/// Hyperbolic cosine.
pub(super) fn cosh(z: c128) -> c128 {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        let sign = if x.is_nan() { y } else { 1f64.copysign(x) * y };
        return Complex::new(x.cosh(), sign);
    }
    match (x.is_finite(), y.is_finite()) {
        (true, true) if x.abs() < EQUAL_HYPERBOLIC => Complex::new(x.cosh() * y.cos(), x.sinh() * y.sin()),
        (true, true) => {
            let value = exp_polar(x.abs(), y, 0.5);
            Complex::new(value.re, if x < 0.0 { -value.im } else { value.im })
        }
        (true, false) if x == 0.0 => Complex::new(f64::NAN, 0.0),
        (false, true) if x.is_infinite() => Complex::new(f64::INFINITY * y.cos(), x * y.sin()),
        (false, false) if x.is_infinite() => Complex::new(f64::INFINITY, f64::NAN),
        _ => Complex::new(f64::NAN, f64::NAN),
    }
}

/// Hyperbolic tangent, by Kahan's formula.
pub(super) fn tanh(z: c128) -> c128 {
    let Complex { re: x, im: y } = z;
    if x.is_nan() {
        return Complex::new(x, if y == 0.0 { y } else { f64::NAN });
    }
    if x.is_infinite() {
        let (sin, cos) = if y.is_finite() { y.sin_cos() } else { (y, 1.0) };
        return Complex::new(1f64.copysign(x), 0f64.copysign(sin * cos));
    }
    if !y.is_finite() {
        return Complex::new(if x == 0.0 { x } else { f64::NAN }, f64::NAN);
    }
    if x.abs() >= EQUAL_HYPERBOLIC {
        let decay = (-x.abs()).exp();
        let (sin, cos) = y.sin_cos();
        return Complex::new(1f64.copysign(x), 4.0 * sin * cos * decay * decay);
    }
    let tan = y.tan();
    let beta = 1.0 + tan * tan;
    let sinh = x.sinh();
    let rho = (1.0 + sinh * sinh).sqrt();
    let denominator = 1.0 + beta * sinh * sinh;
    Complex::new(beta * rho * sinh / denominator, tan / denominator)
}

/// The number with its parts exchanged: i times the conjugate. Circular functions are hyperbolic ones between two of these.
fn swap(z: c128) -> c128 {
    Complex::new(z.im, z.re)
}

/// Sine.
pub(super) fn sin(z: c128) -> c128 {
    swap(sinh(swap(z)))
}

/// Cosine, as the hyperbolic one of i·z.
pub(super) fn cos(z: c128) -> c128 {
    cosh(Complex::new(-z.im, z.re))
}

/// Tangent.
pub(super) fn tan(z: c128) -> c128 {
    swap(tanh(swap(z)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    fn same(a: c128, re: f64, im: f64) {
        let equal = |x: f64, y: f64| (x.is_nan() && y.is_nan()) || x.to_bits() == y.to_bits();
        assert!(equal(a.re, re) && equal(a.im, im), "{a:?} is not ({re}, {im})");
    }

    fn close(a: c128, re: f64, im: f64) {
        let distance = (a.re - re).hypot(a.im - im);
        assert!(distance <= 4.0 * f64::EPSILON * re.hypot(im), "{a:?} is not close to ({re}, {im})");
    }

    #[test]
    fn annex_g_exp_and_log() {
        same(exp(Complex::new(0.0, -0.0)), 1.0, -0.0);
        same(exp(Complex::new(1.0, INF)), NAN, NAN);
        same(exp(Complex::new(INF, INF)), INF, NAN);
        same(exp(Complex::new(-INF, NAN)), 0.0, 0.0);
        same(exp(Complex::new(-INF, -INF)), 0.0, -0.0);
        same(exp(Complex::new(-INF, 2.0)), -0.0, 0.0);
        same(exp(Complex::new(NAN, 0.0)), NAN, 0.0);
        same(log(Complex::new(-0.0, 0.0)), -INF, PI);
        same(log(Complex::new(-INF, INF)), INF, 0.75 * PI);
        same(log(Complex::new(INF, NAN)), INF, NAN);
        same(log(Complex::new(-1.0, -0.0)), 0.0, -PI);
    }

    #[test]
    fn annex_g_sqrt() {
        same(sqrt(Complex::new(-0.0, -0.0)), 0.0, -0.0);
        same(sqrt(Complex::new(NAN, -INF)), INF, -INF);
        same(sqrt(Complex::new(-INF, 1.0)), 0.0, INF);
        same(sqrt(Complex::new(INF, -1.0)), INF, -0.0);
        same(sqrt(Complex::new(-4.0, -0.0)), 0.0, -2.0);
        close(sqrt(Complex::new(3.0, 4.0)), 2.0, 1.0);
        close(sqrt(Complex::new(f64::MAX, 0.0)), f64::MAX.sqrt(), 0.0);
        let tiny = 2f64.powi(-530) * std::f64::consts::FRAC_1_SQRT_2;
        close(sqrt(Complex::new(0.0, 2f64.powi(-1060))), tiny, tiny);
    }

    #[test]
    fn annex_g_hyperbolic() {
        same(sinh(Complex::new(INF, 0.0)), INF, 0.0);
        same(sinh(Complex::new(0.0, INF)), 0.0, NAN);
        same(sinh(Complex::new(-INF, 1.0)), -INF, INF);
        same(sinh(Complex::new(-INF, INF)), INF, NAN);
        same(sin(Complex::new(INF, -INF)), NAN, INF);
        same(cosh(Complex::new(INF, NAN)), INF, NAN);
        same(cosh(Complex::new(0.0, 0.0)), 1.0, 0.0);
        same(tanh(Complex::new(INF, 1.0)), 1.0, 0.0);
        same(tanh(Complex::new(NAN, 0.0)), NAN, 0.0);
        same(cosh(Complex::new(-0.0, 0.0)), 1.0, -0.0);
        same(cosh(Complex::new(-0.0, INF)), NAN, 0.0);
        same(cos(Complex::new(INF, 0.0)), NAN, 0.0);
    }

    #[test]
    fn values() {
        close(exp(Complex::new(1.0, 2.0)), -1.1312043837568137, 2.471726672004819);
        close(sin(Complex::new(1.0, 2.0)), 3.165778513216168, 1.9596010414216063);
        close(cos(Complex::new(1.0, 2.0)), 2.0327230070196656, -3.0518977991518);
        close(tan(Complex::new(1.0, 2.0)), 0.033812826079896774, 1.0147936161466335);
        close(tanh(Complex::new(30.0, 1.0)), 1.0, 0.0);
        // 0.6² + 0.8² is 1 but for rounding, and the logarithm is that rounding.
        assert!(
            (log(Complex::new(0.6, 0.8)).re - 2.220446049250313e-17).abs() < 1e-24,
            "{:?}",
            log(Complex::new(0.6, 0.8))
        );
        // e^711 overflows, but its product with this cosine does not.
        let beside = exp(Complex::new(711.0, PI / 2.0));
        assert!((beside.re / (711f64 + (PI / 2.0).cos().ln()).exp() - 1.0).abs() < 1e-12 && beside.im == INF);
    }
}

//! Powers of complex numbers, as NumPy computes them.

use super::{exp, log};
use crate::complex::{Complex, c128};
use crate::scalar::{Arithmetic, Numeric, powi};

/// Power with a whole exponent other than 0, by squaring. The products of all but the first three powers begin with one, which
/// changes signs of zeros, and infinite parts.
pub(in crate::scalar) fn whole_power<T: Numeric>(base: T, exponent: i32) -> T {
    match exponent {
        1..=3 => powi(base, exponent as u16),
        _ if exponent < 0 => T::ONE.divide(by_squares(base, exponent.unsigned_abs())),
        _ => by_squares(base, exponent as u32),
    }
}

fn by_squares<T: Numeric>(mut base: T, mut exponent: u32) -> T {
    let mut result = T::ONE;
    loop {
        if exponent & 1 == 1 {
            result = result.multiply(base);
        }
        exponent >>= 1;
        if exponent == 0 {
            return result;
        }
        base = base.multiply(base);
    }
}

/// e^(b·log a).
pub(in crate::scalar) fn any_power(a: c128, b: c128) -> c128 {
    exp(full_product(b, log(a)))
}

/// The product of C's Annex G: infinite where a factor is, also if NaN results from the products of the parts.
fn full_product(a: c128, b: c128) -> c128 {
    let product = a.multiply(b);
    if !(product.re.is_nan() && product.im.is_nan()) {
        return product;
    }
    let is_infinite = |z: c128| z.re.is_infinite() || z.im.is_infinite();
    let products = [a.re * b.re, a.im * b.im, a.re * b.im, a.im * b.re];
    if !(is_infinite(a) || is_infinite(b) || products.iter().any(|part| part.is_infinite())) {
        return product;
    }
    let (u, v) = (corner(a), corner(b));
    Complex::new(f64::INFINITY * (u.re * v.re - u.im * v.im), f64::INFINITY * (u.re * v.im + u.im * v.re))
}

/// The parts of an infinite number as 1 or 0 with their signs; the parts of others, with 0 for NaN.
fn corner(z: c128) -> c128 {
    let infinite = z.re.is_infinite() || z.im.is_infinite();
    let part = |x: f64| match infinite {
        true => f64::from(u8::from(x.is_infinite())).copysign(x),
        false if x.is_nan() => 0f64.copysign(x),
        false => x,
    };
    Complex::new(part(z.re), part(z.im))
}

#[cfg(test)]
mod tests {
    use crate::complex::{Complex, c128};
    use crate::element::CastFrom;
    use crate::scalar::power;
    use std::f64::consts::PI;

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    fn same(a: c128, re: f64, im: f64) {
        let equal = |x: f64, y: f64| (x.is_nan() && y.is_nan()) || x.to_bits() == y.to_bits();
        assert!(equal(a.re, re) && equal(a.im, im), "{a:?} is not ({re}, {im})");
    }

    #[test]
    fn values() {
        let z = Complex::new(1.0, 2.0);
        same(power(z, Complex::new(3.0, 0.0)), -11.0, -2.0);
        same(power(z, Complex::new(-1.0, 0.0)), 0.2, -0.4);
        let real = power(Complex::new(0.0, 1.0), Complex::new(0.0, 1.0));
        assert!((real.re - (-PI / 2.0).exp()).abs() < 1e-15 && real.im.abs() < 1e-15, "{real:?}");
        let single = power(Complex::new(1f32, 2.0), Complex::new(0.5, 0.0));
        assert!((single.re - 1.272_019_6).abs() < 1e-6 && (single.im - 0.786_151_4).abs() < 1e-6, "{single:?}");
    }

    #[test]
    fn specials() {
        let whole = |re, im, exponent: f64| power(Complex::new(re, im), Complex::new(exponent, 0.0));
        same(whole(NAN, NAN, 0.0), 1.0, 0.0);
        same(whole(0.0, 0.0, 2.5), 0.0, 0.0);
        same(whole(0.0, -0.0, -1.0), NAN, NAN);
        same(whole(0.0, 1.0, 4.0), 1.0, 0.0);
        same(whole(1.0, -0.0, 5.0), 1.0, 0.0);
        same(whole(0.0, INF, -1.0), NAN, NAN);
        same(whole(0.0, -0.3, INF), 0.0, -0.0);
        // The sign is that of the NaN that the processor makes: x86's is negative.
        let zero = if cfg!(target_arch = "x86_64") { -0.0 } else { 0.0 };
        same(power(Complex::new(INF, 1.0), Complex::new(-1.0, NAN)), 0.0, zero);
        // In the type itself, whose range intermediate products may leave.
        same(c128::cast_from(power(Complex::new(3e38f32, 3e38), Complex::new(2.0, 0.0))), NAN, INF);
    }
}

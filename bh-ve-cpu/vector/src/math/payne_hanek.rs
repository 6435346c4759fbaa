//! Reduction of huge angles modulo π/2 with 1280 bits of 2/π (M. Payne and R. Hanek, "Radian reduction for trigonometric
//! functions", 1983). Scalar: such angles are rare.

/// 2/π after the binary point, most significant word first.
const TWO_OVER_PI: [u64; 20] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
];

/// x = (4 n + quadrant) π/2 + hi + lo with |hi| ≤ π/4.
pub(crate) struct Reduced {
    /// 0 to 3.
    pub quadrant: u64,
    /// The remainder.
    pub hi: f64,
    /// What rounding left of it.
    pub lo: f64,
}

/// Reduces an angle of magnitude at least 2^10; infinities and NaN give NaN.
pub(crate) fn reduce(x: f64) -> Reduced {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    if exponent == 0x7ff {
        return Reduced { quadrant: 0, hi: f64::NAN, lo: 0.0 };
    }
    // |x| = mantissa · 2^shift, and of 2/π only the bits from 2^(1 - shift) down matter modulo 4.
    let mantissa = u128::from(bits & 0x000f_ffff_ffff_ffff | 0x0010_0000_0000_0000);
    let shift = exponent - 1075;
    let first = shift - 2;
    let words = [window(first), window(first + 64), window(first + 128)];
    // mantissa · words modulo 2^192; the top two bits are the quadrant.
    let low = mantissa * u128::from(words[2]);
    let middle = mantissa * u128::from(words[1]) + (low >> 64);
    let high = mantissa.wrapping_mul(u128::from(words[0])).wrapping_add(middle >> 64);
    let top = high as u64;
    let mut quadrant = top >> 62;
    // The fraction of a quarter turn as a signed 128-bit number in [-1/2, 1/2).
    let fraction = (u128::from(top) << 64 | u128::from(middle as u64)) << 2 | u128::from(low as u64 >> 62);
    let signed = fraction as i128;
    if signed < 0 {
        quadrant += 1;
    }
    let negative = signed < 0;
    let magnitude = signed.unsigned_abs();
    let lead = magnitude.leading_zeros();
    let normal = if magnitude == 0 { 0 } else { magnitude << lead };
    // 53 and 53 bits of the fraction, each exact.
    let unit = 2f64.powi(-(lead as i32));
    let a = (normal >> 75) as f64 * 2f64.powi(-53) * unit;
    let b = (normal >> 22 & ((1 << 53) - 1)) as f64 * 2f64.powi(-106) * unit;
    let (mut hi, mut lo) = times_half_pi(a, b);
    if negative != (x < 0.0) {
        (hi, lo) = (-hi, -lo);
    }
    if x < 0.0 {
        quadrant = quadrant.wrapping_neg();
    }
    Reduced { quadrant: quadrant & 3, hi, lo }
}

/// 64 bits of 2/π from the given bit after the point on; bits before the point are zero.
fn window(first: i32) -> u64 {
    let word = first.div_euclid(64);
    let offset = first.rem_euclid(64) as u32;
    let at = |index: i32| usize::try_from(index).ok().and_then(|index| TWO_OVER_PI.get(index)).copied().unwrap_or(0);
    if offset == 0 { at(word) } else { at(word) << offset | at(word + 1) >> (64 - offset) }
}

/// (a + b) · π/2 as a sum.
fn times_half_pi(a: f64, b: f64) -> (f64, f64) {
    const HALF_PI: f64 = std::f64::consts::FRAC_PI_2;
    const HALF_PI_LO: f64 = 6.123233995736766e-17;
    let product = a * HALF_PI;
    let error = a.mul_add(HALF_PI, -product);
    let low = error + (a * HALF_PI_LO + b * HALF_PI);
    let hi = product + low;
    (hi, low - (hi - product))
}

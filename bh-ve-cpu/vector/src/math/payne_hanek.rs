//! Reduction of huge angles modulo π/2 with 1280 bits of 2/π (M. Payne and R. Hanek, "Radian reduction for trigonometric
//! functions", 1983). Angle by angle: such angles are rare.

use super::dd::fast_two_sum;
use crate::simd::{Alone, Scalar};
use std::array::from_fn;
use std::f64::consts::FRAC_PI_2;

/// A word of zeros, and 2/π after the binary point, most significant word first.
const TWO_OVER_PI: [u64; 21] = [
    0,
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
/// π/2 beyond `f64`.
const HALF_PI_LO: f64 = 6.123233995736766e-17;
/// The fraction bits of a number, and the leading one that is not stored.
const FRACTION: u64 = (1 << 52) - 1;
const LEADING: u64 = 1 << 52;
/// An exponent field minus this is the exponent of the fraction's last bit, minus 2 and plus the 64 zeros of the table: the first
/// bit of the table that has an influence on a product modulo 4.
const FIRST: u64 = 1075 + 2 - 64;
/// The bits of 2^52: with a whole number below that in the low bits, the sum of both.
const TWO_52: f64 = 4_503_599_627_370_496.0;

/// For an angle x of magnitude at least 2^10: the quadrant in the low two bits, hi and lo, with x = (4 n + quadrant) π/2 + hi + lo
/// and |hi| ≤ π/4. Infinities and NaN give NaN.
pub(crate) struct Reduce;

impl Alone<1, 3> for Reduce {
    fn of<S: Scalar>([x]: [S; 1]) -> [S; 3] {
        let [quadrant, high, low] = quarter_turns(x);
        let negative = high.bits_shr::<63>();
        // The fraction of a quarter turn is in [-1/2, 1/2): a signed number of 128 bits, whose magnitude is taken.
        let flipped = negated(negative);
        let low = low.bits_xor(flipped).bits_add(negative);
        let carry = S::select(low.bits_eq(S::splat_bits(0)), negative, S::splat_bits(0));
        let high = high.bits_xor(flipped).bits_add(carry);
        let (a, b) = fraction(high, low);
        let (hi, lo) = times_half_pi(a, b);
        let sign = negative.bits_shl::<63>().bits_xor(x.sign_bit());
        let below = x.bits_shr::<63>();
        let quadrant = quadrant.bits_add(negative).bits_xor(negated(below)).bits_add(below);
        // Infinities and NaN give NaN; the product is zero for others.
        let invalid = x * S::splat(0.0);
        [quadrant, hi.bits_xor(sign) + invalid, lo.bits_xor(sign)]
    }
}

/// |x| in quarter turns: the whole ones modulo 4, and 128 bits of the fraction.
fn quarter_turns<S: Scalar>(x: S) -> [S; 3] {
    let first = x.abs().bits_shr::<52>().bits_add(S::splat_bits(FIRST.wrapping_neg()));
    let (word, offset) = (first.bits_shr::<6>(), first.bits_and(S::splat_bits(63)));
    let words: [S; 4] = from_fn(|i| S::word(&TWO_OVER_PI, word.bits_add(S::splat_bits(i as u64))));
    let rest = offset.bits_xor(S::splat_bits(63));
    // 192 bits of 2/π, the least significant word first.
    let window = [2, 1, 0].map(|i: usize| {
        let next = words[i + 1].bits_shr::<1>().bits_shr_by(rest);
        words[i].bits_shl_by(offset).bits_or(next)
    });
    let halves: [S; 6] = from_fn(|i| halves(window[i / 2])[i % 2]);
    let mantissa = x.bits_and(S::splat_bits(FRACTION)).bits_or(S::splat_bits(LEADING));
    // The product modulo 2^192, in halves of words.
    let mut product = [S::splat_bits(0); 6];
    for (at, factor) in self::halves(mantissa).into_iter().enumerate() {
        let mut carry = S::splat_bits(0);
        for (digit, half) in product[at..].iter_mut().zip(halves) {
            let sum = factor.bits_mul(half).bits_add(*digit).bits_add(carry);
            [*digit, carry] = self::halves(sum);
        }
    }
    let [low, middle, high] = [0, 2, 4].map(|i: usize| product[i + 1].bits_shl::<32>().bits_or(product[i]));
    let joined = |upper: S, lower: S| upper.bits_shl::<2>().bits_or(lower.bits_shr::<62>());
    [high.bits_shr::<62>(), joined(high, middle), joined(middle, low)]
}

/// The lower and the upper 32 bits.
fn halves<S: Scalar>(word: S) -> [S; 2] {
    [word.bits_and(S::splat_bits(u32::MAX.into())), word.bits_shr::<32>()]
}

/// All bits set if the number in the bits is 1, none if it is 0.
fn negated<S: Scalar>(bit: S) -> S {
    bit.bits_mul(S::splat_bits(u64::MAX))
}

/// 128 bits after the binary point as a sum of two numbers.
fn fraction<S: Scalar>(high: S, low: S) -> (S, S) {
    let two_52 = S::splat(TWO_52);
    let parts = [halves(high), halves(low)].map(|halves| halves.map(|half| half.bits_or(two_52) - two_52));
    let [[b, a], [d, c]] = parts;
    let scaled = |part: S, exponent: i32| part * S::splat(2f64.powi(exponent));
    let upper = fast_two_sum(scaled(a, -32), scaled(b, -64));
    // This sum is exact: its terms have 41 bits together.
    let lower = fast_two_sum(upper.lo + scaled(c, -96), scaled(d, -128));
    let sum = fast_two_sum(upper.hi, lower.hi);
    (sum.hi, sum.lo + lower.lo)
}

/// (a + b) · π/2 as a sum.
fn times_half_pi<S: Scalar>(a: S, b: S) -> (S, S) {
    let half_pi = S::splat(FRAC_PI_2);
    let product = a * half_pi;
    let error = a.mul_add(half_pi, -product);
    let low = error + (a * S::splat(HALF_PI_LO) + b * half_pi);
    let sum = fast_two_sum(product, low);
    (sum.hi, sum.lo)
}

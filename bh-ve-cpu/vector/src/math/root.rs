//! Square roots without the processor's divider, with the bits of the instruction.
//!
//! With the relative error ε ≤ 2⁻¹⁴ that the processor's estimate y₀ of 1/√x has, e = 1 − x·y₀² is less than 2⁻¹²·⁹⁹ in
//! size, and 1/√(1 − e) = 1 + e/2 + 3e²/8 + …, where what is left out is less than 5/16·2⁻³⁸·⁹⁷. So y₁ = y₀·(1 + e/2 + 3e²/8)
//! is near 1/√x, and g = x·y₀·(1 + e/2 + 3e²/8) near √x, but for one part in 2⁴⁰·⁵, roundings included. From there
//! √x = g + d/(g + √x), where d = x − g² is rounded once, so that c = d·y₁ is 2·(√x − g) but for one part in 2³⁹·⁵. Hence
//! √x lies between g + c·(1 − 2⁻³⁸)/2 and g + c·(1 + 2⁻³⁸)/2. Each of the two is one multiply-add, rounded once, and rounding
//! never changes the order of numbers: if both round to the same number, √x rounds to it as well.
//!
//! They differ by less than 2⁻²⁴ units in the last place, so that few numbers have two candidates. Vectors with one of these
//! are left to the instruction. So are those with numbers below 2⁻⁹⁰⁰ or negative ones, of which d may not be a normal
//! number, zeros among them; infinities and NaN have no candidates that are equal. All other intermediate results are
//! normal numbers.

use super::{exponential, logarithm};
use crate::simd::Vector;

/// Smaller numbers are left to the instruction: 2⁻⁹⁰⁰.
const LEAST: u64 = (1023 - 900) << 52;
/// How far the candidates are apart: 2⁻³⁸ of the last correction to each side.
const APART: f64 = 1.0 / (1u64 << 38) as f64;

/// The number nearest to the square root of each lane, and the lanes where it is known to be that; None where there is no
/// estimate to begin with.
#[inline(always)]
fn nearest<V: Vector>(x: V) -> Option<(V, V::Mask)> {
    let estimate = x.reciprocal_root_estimate()?;
    let root = x * estimate;
    let error = root.neg_mul_add(estimate, V::splat(1.0));
    let correction = error * error.mul_add(V::splat(0.375), V::splat(0.5));
    let reciprocal = estimate.mul_add(correction, estimate);
    let root = root.mul_add(correction, root);
    let twice = root.neg_mul_add(root, x) * reciprocal;
    let below = twice.mul_add(V::splat(0.5 * (1.0 - APART)), root);
    let above = twice.mul_add(V::splat(0.5 * (1.0 + APART)), root);
    Some((below, V::mask_and(x.ge(V::splat_bits(LEAST)), below.eq(above))))
}

/// Square root.
#[inline(always)]
pub(crate) fn sqrt<V: Vector, const SINGLE: bool>(x: V) -> V {
    match nearest(x) {
        Some((root, known)) if !V::any(V::mask_not(known)) => root,
        _ => x.sqrt(),
    }
}

/// Cube root: by logarithms, and a step of Newton's method, which takes the errors of the first guess away.
#[inline(always)]
pub(crate) fn cbrt<V: Vector, const SINGLE: bool>(x: V) -> V {
    let third = V::splat(1.0 / 3.0);
    let size = x.abs();
    let guess = exponential::exp2::<V, SINGLE>(logarithm::log2::<V, SINGLE>(size) * third);
    let root = guess - (guess - size / (guess * guess)) * third;
    let ordinary = V::mask_and(size.gt(V::splat(0.0)), size.lt(V::splat(f64::INFINITY)));
    // Zeros, infinities and NaN are their own roots.
    V::select(ordinary, root.copysign(x), x)
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use crate::math::{entry, kernels};
    use crate::simd::{Avx512, Isa};

    /// A generator of numbers without a pattern.
    struct Source(u64);

    impl Source {
        fn bits(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
    fn nearest_of_eight(x: &[f64; 8]) -> ([f64; 8], u32) {
        let mut roots = [0.0; 8];
        // SAFETY: the arrays hold eight numbers.
        let (root, known) = nearest(unsafe { Avx512::load(x.as_ptr()) }).expect("AVX-512 has estimates");
        // SAFETY: as above.
        unsafe { root.store(roots.as_mut_ptr()) };
        (roots, Avx512::mask_bits(known))
    }

    /// Checks the function at every level, and what is known of each number; returns of how many all is known.
    fn check(numbers: &[f64]) -> usize {
        for isa in Isa::available() {
            let run = entry::unary::<kernels::Sqrt, f64>(isa);
            let mut roots = vec![0f64; numbers.len()];
            let null = std::ptr::null();
            // SAFETY: the level is available, and both blocks are as long as it is said.
            unsafe { run(numbers.len(), roots.as_mut_ptr().cast(), numbers.as_ptr().cast(), null, null) };
            for (x, root) in numbers.iter().zip(roots) {
                let wanted = x.sqrt();
                let same = wanted.to_bits() == root.to_bits() || wanted.is_nan() && root.is_nan();
                assert!(same, "{isa}: the root of {x:e} ({:016x}) is {wanted:e}, not {root:e}", x.to_bits());
            }
        }
        if !Isa::Avx512.is_available() {
            return numbers.len();
        }
        let mut count = 0;
        for chunk in numbers.as_chunks().0 {
            // SAFETY: the machine has the instructions.
            let (roots, known) = unsafe { nearest_of_eight(chunk) };
            for (lane, (x, root)) in chunk.iter().zip(roots).enumerate().filter(|(lane, _)| known >> lane & 1 == 1) {
                assert_eq!(x.sqrt().to_bits(), root.to_bits(), "lane {lane}: {x:e} ({:016x})", x.to_bits());
                count += 1;
            }
        }
        count
    }

    /// Numbers with a fraction, of all exponents of a range in turn.
    fn spread(fractions: impl Iterator<Item = u64>, exponents: std::ops::Range<u64>) -> Vec<f64> {
        fractions.zip(exponents.cycle()).map(|(fraction, exponent)| f64::from_bits(exponent << 52 | fraction)).collect()
    }

    #[test]
    fn of_common_numbers_the_nearest_root_is_known() {
        let mut source = Source(1);
        let numbers = spread((0..400_000).map(|_| source.bits() >> 12), 123..2047);
        let known = check(&numbers);
        assert!(known + 10 > numbers.len(), "{known} of {}", numbers.len());
        // Squares have roots without a remainder.
        let squares: Vec<f64> = (1..100_001u64).map(|root| (root * root) as f64).collect();
        assert_eq!(check(&squares), squares.len());
    }

    #[test]
    fn special_numbers() {
        let mut source = Source(2);
        let any: Vec<f64> = (0..100_000).map(|_| f64::from_bits(source.bits())).collect();
        check(&any);
        let small = spread((0..100_000).map(|_| source.bits() >> 12), 0..130);
        check(&small);
        let limits = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, f64::MIN_POSITIVE, f64::MAX, -1.0];
        for special in limits {
            for lane in 0..8 {
                let mut numbers = [2.0; 8];
                numbers[lane] = special;
                check(&numbers);
            }
        }
        let patterns = [0, 1, 2, 3, (1 << 52) - 1, (1 << 52) - 2, (1 << 52) - 3, 1 << 51, 1 << 26, (1 << 27) - 1];
        let ends: Vec<f64> = patterns.iter().flat_map(|&pattern| spread((0..2047).map(|_| pattern), 0..2047)).collect();
        check(&ends);
    }

    /// The numbers of whole binades [2¹⁰⁴, 2¹⁰⁶) whose roots lie next to m + 1/2 for a whole m: (m + 1/2)² is m² + m + 1/4, and
    /// m² + m − c must have no more than 53 digits, so that its last 52 or 53 are zeros. One digit of m after the other
    /// follows from that, as 2m + 1 is odd: m and −1 − m for each even c.
    fn near_middles(c: i64, digits: u32) -> [Option<f64>; 2] {
        let mask = (1u64 << digits) - 1;
        let remainder = |m: u64| m.wrapping_mul(m).wrapping_add(m).wrapping_sub(c as u64) & mask;
        [0u64, 1].map(|mut m| {
            for digit in 0..digits {
                m ^= remainder(m) & 1 << digit;
            }
            assert_eq!(remainder(m), 0, "{c}");
            if digits == 52 {
                m |= 1 << 52;
            }
            let whole = u128::from(m) * u128::from(m) + u128::from(m);
            let number = whole.wrapping_add_signed(-i128::from(c));
            (number >> digits >> 52 == 1).then_some(number as f64)
        })
    }

    #[test]
    fn roots_next_to_the_middle_of_two_numbers() {
        let mut source = Source(3);
        let near = (-4000..4000).map(|half| 2 * half);
        // Also such that their candidates are just equal.
        let far = (0..200_000).map(|_| (source.bits() as i64 >> 20 >> (source.bits() % 40)) & !1);
        let all: Vec<i64> = near.chain(far).collect();
        let middles: Vec<f64> =
            all.iter().flat_map(|&c| [near_middles(c, 52), near_middles(c, 53)]).flatten().flatten().collect();
        assert!(middles.len() > all.len(), "{} of {}", middles.len(), all.len());
        for scale in [1.0, 2f64.powi(-400), 2f64.powi(-104)] {
            let numbers: Vec<f64> = middles.iter().map(|middle| middle * scale).collect();
            let known = check(&numbers);
            if Isa::Avx512.is_available() {
                // The nearest ones have two candidates, and most of the others have one.
                assert!(known * 10 > numbers.len() && known < numbers.len(), "{known} of {}", numbers.len());
            }
        }
    }
}

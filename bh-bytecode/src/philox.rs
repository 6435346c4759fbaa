//! Philox2x32-10, the counter-based random number generator of Random123, and the numbers that RANDOM makes of it.

use crate::element::Element;

const MULTIPLIER: u32 = 0xD256_D193;
const WEYL: u32 = 0x9E37_79B9;

/// Ten rounds of Philox on a counter of two words under a key of one.
#[inline(always)]
pub fn philox2x32(counter: [u32; 2], key: u32) -> [u32; 2] {
    let ([mut left, mut right], mut key) = (counter, key);
    for _ in 0..10 {
        let product = left as u64 * MULTIPLIER as u64;
        (left, right) = ((product >> 32) as u32 ^ key ^ right, product as u32);
        key = key.wrapping_add(WEYL);
    }
    [left, right]
}

/// The 64 random bits that belong to an index under a key.
#[inline(always)]
pub fn random_bits(index: u64, key: u32) -> u64 {
    let [low, high] = philox2x32([index as u32, (index >> 32) as u32], key);
    (high as u64) << 32 | low as u64
}

/// Element types that RANDOM produces.
pub trait Random: Element {
    /// The number that belongs to an index under a key: raw bits for integers, uniform in [0, 1) for floats.
    fn random(index: u64, key: u32) -> Self;
}

impl Random for u64 {
    #[inline(always)]
    fn random(index: u64, key: u32) -> u64 {
        random_bits(index, key)
    }
}

impl Random for u32 {
    #[inline(always)]
    fn random(index: u64, key: u32) -> u32 {
        random_bits(index, key) as u32
    }
}

impl Random for f64 {
    #[inline(always)]
    fn random(index: u64, key: u32) -> f64 {
        (random_bits(index, key) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

impl Random for f32 {
    #[inline(always)]
    fn random(index: u64, key: u32) -> f32 {
        (u32::random(index, key) >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution.
    #[test]
    fn known_answers() {
        assert_eq!(philox2x32([0, 0], 0), [0xff1d_ae59, 0x6cd1_0df2]);
        assert_eq!(philox2x32([u32::MAX; 2], u32::MAX), [0x2c3f_628b, 0xab4f_d7ad]);
        assert_eq!(philox2x32([0x243f_6a88, 0x85a3_08d3], 0x1319_8a2e), [0xdd7c_e038, 0xf62a_4c12]);
    }

    #[test]
    fn numbers_are_uniform_parts_of_the_same_bits() {
        assert_eq!(u64::random(0, 0), 0x6cd1_0df2_ff1d_ae59);
        assert_eq!(u32::random(0, 0), 0xff1d_ae59);
        let mean = (0..4096).map(|index| f64::random(index, 7)).sum::<f64>() / 4096.0;
        assert!((mean - 0.5).abs() < 0.02);
        assert!((0..4096).all(|index| (0.0..1.0).contains(&f32::random(index << 40, 1))));
    }
}

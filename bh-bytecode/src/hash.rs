//! A fast 128-bit hash of words and bytes for cache keys and checksums of files. Not for adversaries: caches compare
//! the full key as well.

const SECRETS: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];

/// The two halves of a 64×64-bit product, folded together.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Two lanes that take a pair of words at a time, each multiplied with what came before.
#[derive(Clone, Copy)]
struct Lanes(u64, u64);

impl Lanes {
    #[inline(always)]
    fn mix(&mut self, first: u64, second: u64) {
        // The state is added besides, so that a factor of zero does not erase it.
        self.0 = fold(first ^ SECRETS[0] ^ self.0, second ^ SECRETS[1]).wrapping_add(self.0.rotate_left(23));
        self.1 = fold(second ^ SECRETS[2] ^ self.1, first ^ SECRETS[3]).wrapping_add(self.1.rotate_left(41));
    }

    fn finish(mut self, length: u64) -> u128 {
        self.mix(length, SECRETS[3]);
        let (low, high) = (self.0, self.1);
        self.mix(high, low);
        (self.1 as u128) << 64 | self.0 as u128
    }
}

/// The hash of a sequence of words.
#[inline]
pub fn hash_words(words: &[u64]) -> u128 {
    // Two pairs of lanes take turns, so that one multiplies while the other waits for its product.
    let (mut even, mut odd) = (Lanes(SECRETS[2], SECRETS[0]), Lanes(SECRETS[1], SECRETS[3]));
    let (chunks, rest) = words.as_chunks::<4>();
    for &[first, second, third, fourth] in chunks {
        even.mix(first, second);
        odd.mix(third, fourth);
    }
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    even.mix(last[0], last[1]);
    odd.mix(last[2], last[3]);
    even.mix(odd.0, odd.1);
    even.finish(words.len() as u64)
}

/// The hash of a sequence of bytes, equal on all machines.
pub fn hash_bytes(bytes: &[u8]) -> u128 {
    let mut lanes = Lanes(SECRETS[3], SECRETS[1]);
    let (chunks, rest) = bytes.as_chunks::<16>();
    let pair = |chunk: &[u8; 16]| {
        let value = u128::from_le_bytes(*chunk);
        (value as u64, (value >> 64) as u64)
    };
    for chunk in chunks {
        let (first, second) = pair(chunk);
        lanes.mix(first, second);
    }
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let (first, second) = pair(&last);
    lanes.mix(first, second);
    lanes.finish(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_bit_and_the_length_matter() {
        let words = [0u64, 1, 2, 3, 0xffff_ffff_ffff_ffff, 5, 0];
        let mut seen = HashSet::from([hash_words(&words)]);
        for at in 0..words.len() {
            for bit in 0..64 {
                let mut changed = words;
                changed[at] ^= 1 << bit;
                assert!(seen.insert(hash_words(&changed)));
            }
            assert!(seen.insert(hash_words(&words[..at])));
        }
        let bytes: Vec<u8> = (0..40).collect();
        let hashes: HashSet<u128> = (0..=40).map(|length| hash_bytes(&bytes[..length])).collect();
        assert_eq!(hashes.len(), 41);
        assert_ne!(hash_bytes(&[0]), hash_bytes(&[0, 0]));
    }

    #[test]
    fn changed_bits_spread_over_both_halves() {
        let base = hash_words(&[7, 8, 9]);
        for bit in 0..64 {
            let difference = base ^ hash_words(&[7, 8 ^ 1 << bit, 9]);
            let (low, high) = (difference as u64, (difference >> 64) as u64);
            assert!(low.count_ones() > 10 && high.count_ones() > 10, "bit {bit}: {difference:032x}");
        }
    }
}

//! The cache that filters, fusers and engines keep their results in: by the words of a key, bounded by bytes, with what
//! was dear to make kept longest.

use crate::hash::hash_words;
use crate::structure::Structure;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A key: the structure of a batch and, if need be, more words.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    hash: u128,
    parts: [&'a [u64]; 2],
}

impl<'a> Key<'a> {
    /// The key of a structure, told apart by further words.
    pub fn new(structure: Structure<'a>, more: &'a [u64]) -> Key<'a> {
        let hash = match more {
            [] => structure.hash,
            _ => {
                let (own, other) = (structure.hash, hash_words(more));
                hash_words(&[own as u64, (own >> 64) as u64, other as u64, (other >> 64) as u64])
            }
        };
        Key { hash, parts: [structure.words, more] }
    }

    /// The key of words that belong to no batch.
    pub fn of_words(words: &'a [u64]) -> Key<'a> {
        Key { hash: hash_words(words), parts: [words, &[]] }
    }

    fn len(&self) -> usize {
        self.parts[0].len() + self.parts[1].len()
    }

    fn is(&self, words: &[u64]) -> bool {
        words.len() == self.len() && {
            let (first, second) = words.split_at(self.parts[0].len());
            first == self.parts[0] && second == self.parts[1]
        }
    }
}

/// Hashes that are hashes already.
#[derive(Default)]
struct Passed(u64);

impl Hasher for Passed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

/// Something that was made for a key.
struct Entry<T> {
    words: Box<[u64]>,
    value: T,
    /// Bytes of key and value.
    bytes: usize,
    cost: u64,
    /// It goes when the cache's age has come to this.
    until: u64,
}

/// Values by key. A use makes a value as young as a new one; of two that were used at the same time, the one that is
/// cheaper to make again, for the bytes that it takes, goes first.
pub struct Cache<T> {
    table: HashMap<u128, Entry<T>, BuildHasherDefault<Passed>>,
    most_bytes: usize,
    bytes: usize,
    /// The `until` of what was dropped last.
    age: u64,
}

impl<T> Cache<T> {
    /// A cache for `most_bytes` bytes of keys and values.
    pub fn new(most_bytes: usize) -> Cache<T> {
        Cache { table: HashMap::default(), most_bytes, bytes: 0, age: 0 }
    }

    /// The value for a key.
    pub fn get(&mut self, key: &Key<'_>) -> Option<&mut T> {
        let entry = self.table.get_mut(&key.hash).filter(|entry| key.is(&entry.words))?;
        entry.until = self.age + worth(entry.cost, entry.bytes);
        Some(&mut entry.value)
    }

    /// Keeps a value that takes `bytes` bytes, in place of an older one for this key. `cost`: how much work it was to make
    /// it, in any unit that all values of the cache share. A value that does not fit the cache alone is not kept: it is
    /// returned.
    pub fn insert(&mut self, key: &Key<'_>, value: T, bytes: usize, cost: u64) -> Result<&mut T, T> {
        let bytes = bytes + 8 * key.len() + size_of::<Entry<T>>();
        if bytes > self.most_bytes {
            return Err(value);
        }
        self.remove(key.hash);
        if self.bytes + bytes > self.most_bytes {
            self.make_room(bytes);
        }
        let words = key.parts.concat().into_boxed_slice();
        let until = self.age + worth(cost, bytes);
        self.bytes += bytes;
        let entry = self.table.entry(key.hash).or_insert(Entry { words, value, bytes, cost, until });
        Ok(&mut entry.value)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.table.clear();
        self.bytes = 0;
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Holds it nothing?
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All keys and values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], &T)> {
        self.table.values().map(|entry| (&*entry.words, &entry.value))
    }

    /// All values, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.table.values_mut().map(|entry| &mut entry.value)
    }

    fn remove(&mut self, hash: u128) {
        if let Some(old) = self.table.remove(&hash) {
            self.bytes -= old.bytes;
        }
    }

    /// Drops what is worth least, an eighth of the bytes at once, so that room is seldom made.
    fn make_room(&mut self, bytes: usize) {
        let wanted = (self.most_bytes - self.most_bytes / 8).saturating_sub(bytes);
        let mut order: Vec<(u64, u128)> = self.table.iter().map(|(&hash, entry)| (entry.until, hash)).collect();
        order.sort_unstable();
        for (until, hash) in order {
            if self.bytes <= wanted {
                break;
            }
            self.remove(hash);
            self.age = self.age.max(until);
        }
    }
}

/// The worth of a value: the work to make it, for each KiB that it takes.
fn worth(cost: u64, bytes: usize) -> u64 {
    1 + cost.saturating_mul(1024) / (bytes as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(number: u64) -> [u64; 2] {
        [number, number * number]
    }

    #[test]
    fn values_are_found_by_all_words() {
        let mut cache = Cache::new(1 << 20);
        cache.insert(&Key::of_words(&words(3)), "three", 8, 1).unwrap();
        assert_eq!(cache.get(&Key::of_words(&words(3))), Some(&mut "three"));
        assert_eq!(cache.get(&Key::of_words(&words(4))), None);
        // A hash that is equal by chance finds nothing.
        let structure = Structure { hash: hash_words(&words(3)), words: &[7, 7] };
        assert_eq!(cache.get(&Key::new(structure, &[])), None);
        let base = Structure { hash: 5, words: &[1, 2] };
        cache.insert(&Key::new(base, &[3]), "more", 8, 1).unwrap();
        assert_eq!(cache.get(&Key::new(base, &[3])), Some(&mut "more"));
        assert_eq!(cache.get(&Key::new(base, &[4])), None);
        assert_eq!(cache.get(&Key::new(base, &[])), None);
        cache.insert(&Key::of_words(&words(3)), "again", 8, 1).unwrap();
        assert_eq!((cache.len(), cache.get(&Key::of_words(&words(3)))), (2, Some(&mut "again")));
    }

    #[test]
    fn bytes_stay_within_the_bound_and_what_is_dear_stays() {
        let mut cache = Cache::new(64 << 10);
        cache.insert(&Key::of_words(&words(0)), 0, 1000, 1_000_000).unwrap();
        for number in 1..1000 {
            cache.insert(&Key::of_words(&words(number)), number, 1000, 10).unwrap();
            assert!(cache.bytes() <= 64 << 10);
        }
        assert_eq!(cache.get(&Key::of_words(&words(0))), Some(&mut 0));
        assert_eq!(cache.get(&Key::of_words(&words(999))), Some(&mut 999));
        assert_eq!(cache.get(&Key::of_words(&words(1))), None);
        assert_eq!(cache.insert(&Key::of_words(&words(1)), 7, 1 << 20, 1), Err(7));
        cache.clear();
        assert_eq!((cache.bytes(), cache.is_empty()), (0, true));
    }

    #[test]
    fn even_what_was_dear_goes_if_it_is_not_used() {
        let mut cache = Cache::new(32 << 10);
        cache.insert(&Key::of_words(&words(0)), 0, 1000, 200).unwrap();
        for number in 1..100_000 {
            cache.insert(&Key::of_words(&words(number)), number, 1000, 10).unwrap();
        }
        assert_eq!(cache.get(&Key::of_words(&words(0))), None);
    }

    #[test]
    fn a_cycle_that_fits_hits_from_the_second_round_on() {
        let mut cache = Cache::new(4 << 20);
        for round in 0..2 {
            for number in 0..10_000 {
                let words = words(number);
                let key = Key::of_words(&words);
                assert_eq!(cache.get(&key).is_some(), round == 1, "{number}");
                if round == 0 {
                    cache.insert(&key, number, 200, 10).unwrap();
                }
            }
        }
    }
}

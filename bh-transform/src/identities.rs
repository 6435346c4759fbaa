//! Tables by the identities of bases, which are consecutive numbers that the program cannot choose.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Values by the identities of bases.
pub(crate) type ByBase<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Bases by their identities.
pub(crate) type BaseSet = HashSet<u64, BuildHasherDefault<Spread>>;

/// Spreads consecutive numbers over a table.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

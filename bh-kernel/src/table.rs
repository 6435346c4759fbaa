//! A table of numbers by pairs of numbers, for use in one batch after the other.

/// No shape, base, view, instruction or other number.
pub const NONE: u32 = u32::MAX;

/// Open addressing with room for as many again; nothing is ever removed.
#[derive(Default)]
pub struct Table {
    places: Vec<(u64, u32)>,
    used: usize,
}

const EMPTY: u64 = u64::MAX;

impl Table {
    /// Forgets everything; `expected` pairs are likely to come.
    pub fn reset(&mut self, expected: usize) {
        self.places.clear();
        self.places.resize((2 * expected).next_power_of_two().max(16), (EMPTY, NONE));
        self.used = 0;
    }

    /// A set of numbers, each with 0 beside it.
    pub fn of(numbers: &[u32]) -> Table {
        let mut table = Table::default();
        table.reset(numbers.len());
        numbers.iter().for_each(|&number| table.set(number, 0, 1));
        table
    }

    fn key(a: u32, b: u32) -> u64 {
        u64::from(a) << 32 | u64::from(b)
    }

    #[inline]
    fn place(&self, key: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.places[at].0 != key && self.places[at].0 != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    /// The number of a pair, or [`NONE`].
    #[inline]
    pub fn get(&self, a: u32, b: u32) -> u32 {
        if self.places.is_empty() { NONE } else { self.places[self.place(Self::key(a, b))].1 }
    }

    /// Sets the number of a pair. `(NONE, NONE)` is none.
    pub fn set(&mut self, a: u32, b: u32, number: u32) {
        if self.places.len() < 2 * (self.used + 1) {
            let old = std::mem::take(&mut self.places);
            self.places.resize((2 * old.len()).max(16), (EMPTY, NONE));
            for (key, number) in old.into_iter().filter(|(key, _)| *key != EMPTY) {
                let at = self.place(key);
                self.places[at] = (key, number);
            }
        }
        let key = Self::key(a, b);
        let at = self.place(key);
        self.used += usize::from(self.places[at].0 == EMPTY);
        self.places[at] = (key, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_as_the_table_grows() {
        let mut table = Table::default();
        assert_eq!(table.get(1, 2), NONE);
        table.reset(2);
        for a in 0..50 {
            for b in 0..20 {
                table.set(a, b, 1000 * a + b);
            }
        }
        table.set(3, 4, 5);
        assert_eq!((table.get(3, 4), table.get(49, 19), table.get(50, 0)), (5, 49_019, NONE));
        table.reset(2);
        assert_eq!(table.get(3, 4), NONE);
    }
}

//! A hash index from hashes to table rows that is emptied in no time: every entry names the batch it belongs to.

/// An open-addressing index. The caller compares candidates itself.
pub(crate) struct Index {
    slots: Vec<Slot>,
    used: usize,
    epoch: u64,
}

#[derive(Clone, Copy)]
struct Slot {
    epoch: u64,
    hash: u32,
    row: u32,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index { slots: vec![Slot { epoch: 0, hash: 0, row: 0 }; 64], used: 0, epoch: 1 }
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        self.epoch += 1;
        self.used = 0;
    }

    /// The row with this hash for which `equal` holds, or `row` after entering it.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, hash: u64, row: u32, mut equal: impl FnMut(u32) -> bool) -> u32 {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let short = (hash >> 32) as u32;
        let mut place = short as usize & mask;
        loop {
            let slot = &mut self.slots[place];
            if slot.epoch != self.epoch {
                *slot = Slot { epoch: self.epoch, hash: short, row };
                self.used += 1;
                return row;
            }
            if slot.hash == short && equal(slot.row) {
                return slot.row;
            }
            place = (place + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let empty = Slot { epoch: 0, hash: 0, row: 0 };
        let larger = vec![empty; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.epoch == self.epoch) {
            let mut place = slot.hash as usize & mask;
            while self.slots[place].epoch == self.epoch {
                place = (place + 1) & mask;
            }
            self.slots[place] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::small_view::mix;

    #[test]
    fn rows_are_found_until_cleared() {
        let mut index = Index::new();
        for row in 0..1000u32 {
            assert_eq!(index.find_or_insert(mix(7, row as u64), row, |_| panic!("no candidate")), row);
        }
        for row in 0..1000u32 {
            assert_eq!(index.find_or_insert(mix(7, row as u64), 5000, |candidate| candidate == row), row);
        }
        index.clear();
        assert_eq!(index.find_or_insert(mix(7, 1), 9, |_| true), 9);
    }
}

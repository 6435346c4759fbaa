//! Small numbers for bases that live on between batches, and how often batches of a structure came.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Hands out the smallest free number, so that which ones are in use decides what comes next, and not their history.
#[derive(Default)]
pub(crate) struct Slots {
    free: BinaryHeap<Reverse<u32>>,
    count: u32,
}

impl Slots {
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(Reverse(slot)) = self.free.pop() {
            return slot;
        }
        self.count += 1;
        self.count - 1
    }

    pub(crate) fn free(&mut self, slot: u32) {
        self.free.push(Reverse(slot));
    }

    /// All numbers handed out so far are smaller.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

/// The most structures that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Counts batches by their signatures. If there are too many, those that never came again are forgotten.
#[derive(Default)]
pub(crate) struct Seen {
    times: HashMap<[u64; 2], u32>,
}

impl Seen {
    /// How often a signature came before.
    pub(crate) fn count(&mut self, signature: [u64; 2]) -> u32 {
        if let Some(times) = self.times.get_mut(&signature) {
            *times = times.saturating_add(1);
            return *times;
        }
        if self.times.len() >= REMEMBERED {
            self.times.retain(|_, times| *times > 0);
            if self.times.len() > REMEMBERED / 2 {
                self.times.clear();
            }
        }
        self.times.insert(signature, 0);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_free_slot_comes_next() {
        let mut slots = Slots::default();
        assert_eq!([slots.take(), slots.take(), slots.take()], [0, 1, 2]);
        slots.free(2);
        slots.free(0);
        assert_eq!([slots.take(), slots.take(), slots.take()], [0, 2, 3]);
        assert_eq!(slots.count(), 4);
    }

    #[test]
    fn signatures_are_counted() {
        let mut seen = Seen::default();
        assert_eq!([seen.count([1, 2]), seen.count([1, 2]), seen.count([2, 2]), seen.count([1, 2])], [0, 1, 0, 2]);
        assert_eq!(seen.count([1, 3]), 0);
    }

    #[test]
    fn what_came_again_is_remembered_longest() {
        let mut seen = Seen::default();
        let again = 10_000;
        let round = |seen: &mut Seen| (0..again).map(|at| seen.count([at, 1])).collect::<Vec<u32>>();
        assert!(round(&mut seen).iter().all(|&times| times == 0));
        assert!(round(&mut seen).iter().all(|&times| times == 1));
        (0..REMEMBERED as u64).for_each(|at| assert_eq!(seen.count([at, 2]), 0));
        assert!(round(&mut seen).iter().all(|&times| times == 2));
        assert!(seen.times.len() <= REMEMBERED);
    }
}

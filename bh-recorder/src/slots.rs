//! Small numbers for bases that live on between batches, and how often batches of a structure came.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Hands out the smallest free number, so that which ones are in use decides what comes next, and not their history.
#[derive(Default)]
pub(super) struct Slots {
    free: BinaryHeap<Reverse<u32>>,
    count: u32,
}

impl Slots {
    pub(super) fn take(&mut self) -> u32 {
        if let Some(Reverse(slot)) = self.free.pop() {
            return slot;
        }
        self.count += 1;
        self.count - 1
    }

    pub(super) fn free(&mut self, slot: u32) {
        self.free.push(Reverse(slot));
    }

    /// All numbers handed out so far are smaller.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

/// Structures that are remembered.
const REMEMBERED: usize = 4096;

/// Counts batches by their signatures, as far as they are remembered: of two that fall on one place, the later one is.
#[derive(Default)]
pub(super) struct Seen {
    places: Vec<([u64; 2], u32)>,
}

impl Seen {
    /// How often a signature came before.
    pub(super) fn count(&mut self, signature: [u64; 2]) -> u32 {
        if self.places.is_empty() {
            self.places.resize(REMEMBERED, ([0; 2], 0));
        }
        let place = &mut self.places[signature[0] as usize % REMEMBERED];
        if place.0 != signature {
            *place = (signature, 0);
        }
        let before = place.1;
        place.1 = before.saturating_add(1);
        before
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
}

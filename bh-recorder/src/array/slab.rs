//! A slab whose keys carry a generation, so that stale keys are recognised.

/// Bits of the index and of the generation in a key: together they fit beside a context number in one pointer.
pub(crate) const INDEX_BITS: u32 = 26;
const GENERATION_MASK: u32 = (1 << INDEX_BITS) - 1;
const END: u32 = u32::MAX;

/// A growing array of reusable places. Places freed last are used first. A place whose generations are used up is left
/// alone, so that no key ever repeats.
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    live: usize,
}

struct Slot<T> {
    generation: u32,
    next_free: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: END, live: 0 }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Stores a value and returns its index, or gives it back when the slab is full.
    #[inline(always)]
    pub(crate) fn insert(&mut self, value: T) -> Result<u32, T> {
        self.live += 1;
        if let Some(slot) = self.slots.get_mut(self.free as usize) {
            let index = self.free;
            self.free = slot.next_free;
            slot.value = Some(value);
            return Ok(index);
        }
        if self.slots.len() >= 1 << INDEX_BITS {
            self.live -= 1;
            return Err(value);
        }
        self.slots.push(Slot { generation: 1, next_free: END, value: Some(value) });
        Ok((self.slots.len() - 1) as u32)
    }

    /// Makes room for `count` values to be stored without moving those that are there.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize) {
        self.slots.reserve(count);
    }

    /// The generation of a place.
    #[inline]
    pub(crate) fn generation(&self, index: u32) -> u32 {
        self.slots[index as usize].generation
    }

    /// The value at an index, if the place is in use in this generation.
    #[inline]
    pub(crate) fn find(&self, index: u32, generation: u32) -> Option<&T> {
        let slot = self.slots.get(index as usize)?;
        if slot.generation == generation { slot.value.as_ref() } else { None }
    }

    /// The value at an index that is known to be in use.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &T {
        self.slots[index as usize].value.as_ref().expect("the place is in use")
    }

    /// The value at an index that is known to be in use.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> &mut T {
        self.slots[index as usize].value.as_mut().expect("the place is in use")
    }

    /// Drops the value, in place; keys of this generation become stale.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        assert!(slot.value.is_some(), "the place is in use");
        slot.value = None;
        self.live -= 1;
        if slot.generation == GENERATION_MASK {
            // No key has generation 0.
            slot.generation = 0;
        } else {
            slot.generation += 1;
            slot.next_free = self.free;
            self.free = index;
        }
    }

    /// The indices in use.
    pub(crate) fn live(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|&index| self.slots[index as usize].value.is_some()).collect()
    }

    /// Removes everything; generations go on, so that old keys stay stale.
    pub(crate) fn clear(&mut self) {
        for index in self.live() {
            self.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_keys_are_refused() {
        let mut slab = Slab::new();
        let a = slab.insert('a').unwrap();
        let generation = slab.generation(a);
        assert_eq!(slab.find(a, generation), Some(&'a'));
        slab.remove(a);
        assert_eq!(slab.find(a, generation), None);
        let b = slab.insert('b').unwrap();
        assert_eq!((a, slab.find(a, generation), slab.len()), (b, None, 1));
        slab.clear();
        assert_eq!((slab.len(), slab.find(b, generation + 1)), (0, None));
    }

    #[test]
    fn no_key_comes_again() {
        let mut slab = Slab::new();
        let a = slab.insert('a').unwrap();
        let first = slab.generation(a);
        slab.slots[a as usize].generation = GENERATION_MASK;
        slab.remove(a);
        for generation in [0, first, GENERATION_MASK] {
            assert_eq!(slab.find(a, generation), None);
        }
        let b = slab.insert('b').unwrap();
        assert_ne!(a, b, "the place is used up");
        assert_eq!((slab.len(), slab.live()), (1, vec![b]));
    }
}

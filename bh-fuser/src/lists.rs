//! Lists of numbers that can be joined in constant time.

use crate::facts::NONE;

/// The lists.
#[derive(Default)]
pub struct Lists {
    head: Vec<u32>,
    tail: Vec<u32>,
    /// Value and next item.
    items: Vec<(u32, u32)>,
}

/// A place in a list: the item that is next, and the one before it.
#[derive(Clone, Copy)]
pub struct Cursor {
    next: u32,
    before: u32,
}

impl Lists {
    /// Empties all lists, and makes their number `lists`.
    pub fn reset(&mut self, lists: usize) {
        self.items.clear();
        for ends in [&mut self.head, &mut self.tail] {
            ends.clear();
            ends.resize(lists, NONE);
        }
    }

    /// Appends a number to a list.
    pub fn push(&mut self, list: u32, value: u32) {
        let item = self.items.len() as u32;
        self.items.push((value, NONE));
        match self.tail[list as usize] {
            NONE => self.head[list as usize] = item,
            tail => self.items[tail as usize].1 = item,
        }
        self.tail[list as usize] = item;
    }

    /// Moves all of `other` behind `list`. Returns the place where it begins there.
    pub fn append(&mut self, list: u32, other: u32) -> Cursor {
        let before = self.tail[list as usize];
        let first = self.head[other as usize];
        if first != NONE {
            match before {
                NONE => self.head[list as usize] = first,
                tail => self.items[tail as usize].1 = first,
            }
            self.tail[list as usize] = self.tail[other as usize];
            (self.head[other as usize], self.tail[other as usize]) = (NONE, NONE);
        }
        Cursor { next: first, before }
    }

    /// The begin of a list.
    pub fn begin(&self, list: u32) -> Cursor {
        Cursor { next: self.head[list as usize], before: NONE }
    }

    /// The number at a place.
    #[inline]
    pub fn value(&self, place: Cursor) -> Option<u32> {
        self.items.get(place.next as usize).map(|item| item.0)
    }

    /// Changes the number at a place.
    pub fn replace(&mut self, place: Cursor, value: u32) {
        self.items[place.next as usize].0 = value;
    }

    /// The next place.
    #[inline]
    pub fn after(&self, place: Cursor) -> Cursor {
        Cursor { next: self.items[place.next as usize].1, before: place.next }
    }

    /// Takes the number at a place out of its list; the place is that of the next one then.
    pub fn remove(&mut self, list: u32, place: Cursor) -> Cursor {
        let next = self.items[place.next as usize].1;
        match place.before {
            NONE => self.head[list as usize] = next,
            before => self.items[before as usize].1 = next,
        }
        if self.tail[list as usize] == place.next {
            self.tail[list as usize] = place.before;
        }
        Cursor { next, ..place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(lists: &Lists, list: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut place = lists.begin(list);
        while let Some(value) = lists.value(place) {
            found.push(value);
            place = lists.after(place);
        }
        found
    }

    #[test]
    fn lists_are_joined_and_thinned() {
        let mut lists = Lists::default();
        lists.reset(3);
        (0..3).for_each(|value| lists.push(0, value));
        (10..12).for_each(|value| lists.push(1, value));
        let joint = lists.append(0, 1);
        assert_eq!((values(&lists, 0), values(&lists, 1)), (vec![0, 1, 2, 10, 11], vec![]));
        let place = lists.remove(0, joint);
        assert_eq!(lists.value(place), Some(11));
        let end = lists.remove(0, place);
        assert_eq!((lists.value(end), values(&lists, 0)), (None, vec![0, 1, 2]));
        lists.push(0, 3);
        let begin = lists.begin(0);
        lists.remove(0, begin);
        lists.append(2, 0);
        assert_eq!(values(&lists, 2), [1, 2, 3]);
    }
}

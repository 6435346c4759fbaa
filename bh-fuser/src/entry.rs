//! A block's uses of each view: its entries, sorted by base and view.

use crate::facts::{Facts, NONE};

/// All accesses of a block to one view.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The base.
    pub base: u32,
    /// The view.
    pub view: u32,
    /// The base's epoch.
    pub epoch: u32,
    /// Bits of [`access`](crate::facts::access), and [`RENAMED`] on all entries of a renamed base.
    pub flags: u8,
    /// Number of accesses.
    pub count: u32,
    /// First instruction that reads, or [`NONE`].
    pub first_read: u32,
    /// Last instruction that reads.
    pub last_read: u32,
    /// First instruction that writes, or [`NONE`].
    pub first_write: u32,
    /// Last instruction that writes.
    pub last_write: u32,
    /// The reduction that writes it, or [`NONE`].
    pub result: u32,
}

/// The block renames the base.
pub const RENAMED: u8 = 16;

/// Marks a view that two reductions write.
const TWICE: u32 = NONE - 1;

impl Entry {
    /// Is the view read before anything is written to it, if it is?
    pub fn reads_first(&self) -> bool {
        self.first_read != NONE && self.first_read <= self.first_write
    }

    /// Is a reduction's result used before the reduction, or made by two?
    pub fn is_misplaced(&self) -> bool {
        self.result == TWICE || (self.result != NONE && self.result > self.first_read.min(self.first_write))
    }

    /// Adds another block's accesses to the same view.
    pub fn absorb(&mut self, other: &Entry) {
        self.flags |= other.flags;
        self.count += other.count;
        self.first_read = self.first_read.min(other.first_read);
        self.last_read = self.last_read.max(other.last_read);
        self.first_write = self.first_write.min(other.first_write);
        self.last_write = self.last_write.max(other.last_write);
        self.result = match (self.result, other.result) {
            (NONE, result) | (result, NONE) => result,
            _ => TWICE,
        };
    }
}

/// Joins entries of equal views in a list sorted by base and view.
pub fn fold_entries(entries: &mut Vec<Entry>) {
    entries.dedup_by(|next, kept| {
        let same = next.view == kept.view;
        if same {
            kept.absorb(next);
        }
        same
    });
}

/// How many entries of a list that begins with those of a base, if it has any, are of that.
pub fn leading(entries: &[Entry], base: u32) -> usize {
    entries.iter().take_while(|entry| entry.base == base).count()
}

/// The entries of a base in a list sorted by base.
pub fn group_of(entries: &[Entry], base: u32) -> &[Entry] {
    let rest = &entries[entries.partition_point(|entry| entry.base < base)..];
    &rest[..leading(rest, base)]
}

/// Appends the union of two blocks' entries of one base.
pub fn merge_group(a: &[Entry], b: &[Entry], into: &mut Vec<Entry>) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i].view < b[j].view {
            into.push(a[i]);
            i += 1;
        } else if b[j].view < a[i].view {
            into.push(b[j]);
            j += 1;
        } else {
            let mut both = a[i];
            both.absorb(&b[j]);
            into.push(both);
            i += 1;
            j += 1;
        }
    }
    into.extend_from_slice(&a[i..]);
    into.extend_from_slice(&b[j..]);
}

/// Does the base vanish in a block with these accesses? All of its accesses are there, and reads follow writes of the
/// same view.
pub fn is_contracted(facts: &Facts, base: u32, group: &[Entry]) -> bool {
    let fact = &facts.bases[base as usize];
    fact.contractible
        && group.iter().map(|entry| entry.count).sum::<u32>() == fact.accesses
        && !group.iter().any(Entry::reads_first)
}

/// The views of these that are written.
pub fn written(group: &[Entry]) -> impl Iterator<Item = u32> + Clone {
    group.iter().filter(|entry| entry.first_write != NONE).map(|entry| entry.view)
}

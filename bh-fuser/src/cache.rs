//! Remembered partitions.
//!
//! The first level is keyed on the batch's structure, which the batch brings along; a hit costs a look-up and the
//! comparison of the full key, and copies nothing. The second level is keyed on how views relate instead of on
//! their extents, so that programs over ever smaller views find the assignment of instructions to blocks again.

use crate::emit::Partition;
use bh_bytecode::{BatchRef, StructureKey};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes that are hashes already.
#[derive(Default)]
pub struct Passed(u64);

impl Hasher for Passed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ byte as u64;
        }
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

type Table<T> = HashMap<u128, T, BuildHasherDefault<Passed>>;

/// A remembered partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The words of the batch's structure.
    pub key: Box<[u64]>,
    /// The partition.
    pub partition: Partition,
    /// When it was used last.
    pub used: u64,
    /// Comes from a file and was not looked at yet.
    pub foreign: bool,
}

impl Entry {
    fn bytes(&self) -> usize {
        8 * self.key.len() + self.partition.bytes() + size_of::<Entry>()
    }
}

/// The first level.
pub struct PartitionCache {
    /// Of the batch looked up last, if nothing was found.
    structure: StructureKey,
    hash: u128,
    table: Table<Entry>,
    most_entries: usize,
    most_bytes: usize,
    bytes: usize,
    clock: u64,
    changed: bool,
}

impl PartitionCache {
    /// A cache of at most so many partitions and bytes. Without room for any it finds nothing, and holds the partition
    /// inserted last.
    pub fn new(most_entries: usize, most_bytes: usize) -> PartitionCache {
        PartitionCache {
            structure: StructureKey::default(),
            hash: 0,
            table: Table::default(),
            most_entries,
            most_bytes,
            bytes: 0,
            clock: 0,
            changed: false,
        }
    }

    /// Looks a batch up. Afterwards [`PartitionCache::insert`] stores under the same key.
    pub fn look_up(&mut self, batch: &BatchRef<'_>) -> bool {
        let carried = batch.structure();
        if carried.is_none() {
            self.structure.write(batch);
        }
        let structure = carried.unwrap_or(self.structure.as_ref());
        self.hash = structure.hash;
        self.clock += 1;
        if self.most_entries > 0
            && let Some(entry) = self.table.get_mut(&self.hash)
            && *entry.key == *structure.words
            && (!entry.foreign || is_plausible(batch, &entry.partition))
        {
            entry.foreign = false;
            entry.used = self.clock;
            return true;
        }
        if let Some(carried) = carried {
            self.structure.copy_from(carried);
        }
        false
    }

    /// The partition of the batch looked up or inserted last.
    pub fn found(&self) -> Option<&Partition> {
        self.table.get(&self.hash).map(|entry| &entry.partition)
    }

    /// Remembers the partition of the batch looked up last.
    pub fn insert(&mut self, partition: Partition) {
        let entry = Entry { key: self.structure.as_ref().words.into(), partition, used: self.clock, foreign: false };
        self.changed = true;
        self.put(self.hash, entry);
    }

    /// Takes over a partition from a file.
    pub fn adopt(&mut self, hash: u128, entry: Entry) {
        if self.table.len() < self.most_entries && self.bytes + entry.bytes() <= self.most_bytes {
            self.put(hash, entry);
        }
    }

    /// All partitions, the most recently used first.
    pub fn entries(&self) -> Vec<(u128, &Entry)> {
        let mut entries: Vec<_> = self.table.iter().map(|(&hash, entry)| (hash, entry)).collect();
        entries.sort_by_key(|(hash, entry)| (std::cmp::Reverse(entry.used), *hash));
        entries
    }

    /// Is there anything that [`PartitionCache::adopt`] did not bring?
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    fn put(&mut self, hash: u128, entry: Entry) {
        self.bytes += entry.bytes();
        if let Some(old) = self.table.insert(hash, entry) {
            self.bytes -= old.bytes();
        }
        if self.table.len() > self.most_entries || self.bytes > self.most_bytes {
            self.evict();
        }
    }

    /// Drops all but the half used last, and never the newest.
    fn evict(&mut self) {
        let mut times: Vec<u64> = self.table.values().map(|entry| entry.used).collect();
        times.sort_unstable();
        let middle = times[times.len() / 2];
        let newest = self.hash;
        self.table.retain(|hash, entry| entry.used > middle || *hash == newest);
        self.bytes = self.table.values().map(Entry::bytes).sum();
    }
}

/// Is it a partition of this batch at all? For partitions that come from a file.
fn is_plausible(batch: &BatchRef<'_>, partition: &Partition) -> bool {
    let bases = batch.bases.len() as u32;
    let views = if partition.views.is_empty() { batch.views.len() } else { partition.views.len() } as u32;
    let inside = |first: u32, count: u32, len: usize| first as u64 + count as u64 <= len as u64;
    let mut seen = vec![false; batch.instrs.len()];
    let each_once = partition
        .block_instrs
        .iter()
        .all(|&instr| seen.get_mut(instr as usize).is_some_and(|seen| !std::mem::replace(seen, true)));
    each_once
        && partition.block_instrs.len() == batch.instrs.len()
        && partition.blocks.iter().map(|block| block.instr_count as usize).sum::<usize>() == batch.instrs.len()
        && partition.blocks.iter().all(|block| {
            inside(block.instrs, block.instr_count, partition.block_instrs.len())
                && inside(block.contracted, block.contracted_count, partition.contracted.len())
                && inside(block.renames, block.rename_count, partition.renames.len())
        })
        && partition.contracted.iter().all(|&base| base < bases)
        && partition.renames.iter().all(|rename| {
            rename.base < bases
                && (rename.alias == u32::MAX || rename.alias < bases)
                && rename.alias_view < views.max(1)
                && inside(rename.uncovered, rename.uncovered_count, partition.rename_views.len())
        })
        && partition.rename_views.iter().all(|&view| view < views)
        && partition.views.iter().all(|view| inside(view.dims, 2 * view.rank, partition.dims.len()))
        && partition.all.iter().copied().eq(0..partition.blocks.len() as u32)
}

/// A key of relations and the assignment that belongs to it.
type Assignment = (Box<[u64]>, Box<[u32]>);

/// The second level: assignments of instructions to blocks by the relations between views.
pub struct AssignmentCache {
    table: Table<Assignment>,
    most_entries: usize,
}

impl AssignmentCache {
    /// A cache of at most so many assignments.
    pub fn new(most_entries: usize) -> AssignmentCache {
        AssignmentCache { table: Table::default(), most_entries }
    }

    /// The assignment remembered under this key.
    pub fn get(&self, key: &[u64]) -> Option<&[u32]> {
        let (known, labels) = self.table.get(&bh_bytecode::hash::hash_words(key))?;
        (**known == *key).then_some(labels)
    }

    /// Remembers an assignment.
    pub fn insert(&mut self, key: &[u64], labels: &[u32]) {
        if self.most_entries == 0 {
            return;
        }
        if self.table.len() >= self.most_entries {
            self.table.clear();
        }
        self.table.insert(bh_bytecode::hash::hash_words(key), (key.into(), labels.into()));
    }
}

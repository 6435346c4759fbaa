//! Remembered partitions.
//!
//! The first level is keyed on the structure of batches; a hit costs the structure, a look-up and the comparison of the full
//! key, and copies nothing. The second level is keyed on how views depend on each other instead of on their extents, so that
//! programs over ever smaller views find the assignment of instructions to blocks again. Both count how often a key came, and
//! know at which level its plan was made.

use crate::emit::Partition;
use bh_bytecode::BatchRef;
use bh_bytecode::cache::{Cache, Key};
use bh_bytecode::planning::{Level, Planning, Work};
use bh_bytecode::structure::StructureKey;

/// A remembered partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The partition.
    pub partition: Partition,
    /// How much planning it got.
    pub level: Level,
    /// How often it was looked up since it was first made.
    pub seen: u32,
    /// The work of the batch.
    pub work: Work,
    /// Comes from a file and was not looked at yet.
    pub foreign: bool,
    /// It was looked up for a batch that is still to run, and is counted as seen for that.
    pub foretold: bool,
}

impl Entry {
    /// A partition that was just made.
    pub fn new(partition: Partition, level: Level, work: Work) -> Entry {
        Entry { partition, level, seen: 0, work, foreign: false, foretold: false }
    }

    /// The cost of planning it again, in the unit of the caches.
    fn cost(&self) -> u64 {
        self.work.operations * if self.level == Level::Full { 4 } else { 1 }
    }
}

/// The first level.
pub struct PartitionCache {
    structure: StructureKey,
    cache: Cache<Entry>,
    /// The partition made last, if the cache has no room for it.
    loose: Option<Entry>,
    changed: bool,
    /// Was the batch looked up before it runs?
    foretelling: bool,
}

impl PartitionCache {
    /// A cache of at most `most_bytes`. Without room for any partition it finds nothing, and holds the one inserted last.
    pub fn new(most_bytes: usize) -> PartitionCache {
        PartitionCache {
            structure: StructureKey::default(),
            cache: Cache::new(most_bytes),
            loose: None,
            changed: false,
            foretelling: false,
        }
    }

    /// Looks a batch up. True if its partition is known and has had as much planning as it is worth by now. Afterwards
    /// [`PartitionCache::insert`] stores under the same key.
    pub fn look_up(&mut self, batch: &BatchRef<'_>, planning: Planning) -> bool {
        self.foretelling = false;
        self.look(batch, planning)
    }

    /// Looks a batch up that is going to run: what is found or inserted now, [`PartitionCache::look_up`] finds then.
    pub fn foretell(&mut self, batch: &BatchRef<'_>, planning: Planning) -> bool {
        self.foretelling = true;
        self.look(batch, planning)
    }

    fn look(&mut self, batch: &BatchRef<'_>, planning: Planning) -> bool {
        match batch.structure() {
            Some(carried) => self.structure.copy_from(carried),
            None => self.structure.write(batch),
        }
        self.loose = None;
        let Some(entry) = self.cache.get(&Key::new(self.structure.as_ref(), &[])) else { return false };
        if entry.foreign && !is_plausible(batch, &entry.partition) {
            return false;
        }
        entry.foreign = false;
        if !std::mem::replace(&mut entry.foretold, self.foretelling) {
            entry.seen = entry.seen.saturating_add(1);
        }
        entry.level >= planning.level_of(&batch.header, entry.work, entry.seen)
    }

    /// How often the structure looked up last came before.
    pub fn seen(&mut self) -> u32 {
        self.cache.get(&Key::new(self.structure.as_ref(), &[])).map_or(0, |entry| entry.seen)
    }

    /// The partition of the batch looked up or inserted last.
    pub fn found(&mut self) -> Option<&Partition> {
        self.found_with_level().map(|(partition, _)| partition)
    }

    /// As [`PartitionCache::found`], with the level at which it was made.
    pub fn found_with_level(&mut self) -> Option<(&Partition, Level)> {
        let key = Key::new(self.structure.as_ref(), &[]);
        let entry = self.loose.as_ref().or_else(|| self.cache.get(&key).map(|entry| &*entry))?;
        Some((&entry.partition, entry.level))
    }

    /// Remembers the partition of the batch looked up last.
    pub fn insert(&mut self, mut entry: Entry) {
        entry.seen = self.seen();
        entry.foretold = self.foretelling;
        self.changed |= entry.level == Level::Full;
        let (bytes, cost) = (entry.partition.bytes(), entry.cost());
        self.loose = self.cache.insert(&Key::new(self.structure.as_ref(), &[]), entry, bytes, cost).err();
    }

    /// Takes over a partition from a file.
    pub fn adopt(&mut self, key: &[u64], entry: Entry) {
        let (bytes, cost) = (entry.partition.bytes(), entry.cost());
        // If it does not fit, it is planned again.
        let _ = self.cache.insert(&Key::of_words(key), entry, bytes, cost);
    }

    /// All fully planned partitions with their keys, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (&[u64], &Entry)> {
        self.cache.iter().filter(|(_, entry)| entry.level == Level::Full)
    }

    /// Bytes of all keys and partitions.
    pub fn bytes(&self) -> usize {
        self.cache.bytes()
    }

    /// Is there anything for a file that [`PartitionCache::adopt`] did not bring?
    pub fn is_changed(&self) -> bool {
        self.changed
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

/// An assignment of instructions to blocks.
struct Assignment {
    labels: Box<[u32]>,
    level: Level,
    seen: u32,
}

/// The second level: assignments of instructions to blocks by the dependencies between these.
pub struct AssignmentCache {
    cache: Cache<Assignment>,
}

impl AssignmentCache {
    /// A cache of at most `most_bytes`.
    pub fn new(most_bytes: usize) -> AssignmentCache {
        AssignmentCache { cache: Cache::new(most_bytes) }
    }

    /// How often this key came before, and its assignment with the level at which it was made.
    pub fn get(&mut self, key: &[u64]) -> (u32, Option<(Level, &[u32])>) {
        match self.cache.get(&Key::of_words(key)) {
            None => (0, None),
            Some(known) => {
                known.seen = known.seen.saturating_add(1);
                (known.seen, Some((known.level, &known.labels)))
            }
        }
    }

    /// Remembers an assignment; `seen`: how often its key came before.
    pub fn insert(&mut self, key: &[u64], labels: &[u32], level: Level, seen: u32) {
        let assignment = Assignment { labels: labels.into(), level, seen };
        // If it does not fit, it is planned again.
        let _ = self.cache.insert(&Key::of_words(key), assignment, 4 * labels.len(), labels.len() as u64);
    }
}

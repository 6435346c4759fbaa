//! Plans of batches that come again: a batch whose tables are equal, but for base identities and the values of
//! constants, is run without looking at its instructions.

use crate::overlap::Group;
use crate::plan::BlockPlan;
use crate::sweep::SweepPlans;
use bh_bytecode::{Batch, BatchRef};

/// The most batches that are kept, and the most instructions in all of them.
const BATCHES: usize = 64;
const INSTRUCTIONS: usize = 1 << 18;

struct Entry {
    hash: u64,
    batch: Batch,
    plans: Plans,
    used: u64,
}

/// The plans of a batch.
#[derive(Default)]
pub(crate) struct Plans {
    /// By block; those that were never asked for are `None`.
    pub(crate) blocks: Vec<Option<BlockPlan>>,
    /// The sweeps, if they were ever asked for.
    pub(crate) sweeps: Option<SweepPlans>,
    /// The blocks that may run at the same time, if they were ever asked for.
    pub(crate) groups: Option<Vec<Group>>,
}

/// The plans of recent batches.
#[derive(Default)]
pub(crate) struct PlanCache {
    entries: Vec<Entry>,
    clock: u64,
}

impl PlanCache {
    /// The plans of a batch. Returns whether the batch was known.
    pub(crate) fn plans(&mut self, batch: &BatchRef<'_>) -> (&mut Plans, bool) {
        self.clock += 1;
        let hash = hash(batch);
        let found = self.entries.iter().position(|entry| entry.hash == hash && equal(&entry.batch.as_ref(), batch));
        let known = found.is_some();
        let at = found.unwrap_or_else(|| {
            self.make_room(batch.instrs.len());
            let blocks = (0..batch.blocks.len()).map(|_| None).collect();
            let plans = Plans { blocks, sweeps: None, groups: None };
            self.entries.push(Entry { hash, batch: batch.to_owned(), plans, used: 0 });
            self.entries.len() - 1
        });
        self.entries[at].used = self.clock;
        (&mut self.entries[at].plans, known)
    }

    /// Forgets which blocks may run at the same time, as that depends on the number of threads.
    pub(crate) fn forget_groups(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.plans.groups = None);
    }

    fn make_room(&mut self, instructions: usize) {
        let mut total: usize = self.entries.iter().map(|entry| entry.batch.instrs.len()).sum();
        while self.entries.len() >= BATCHES || (total + instructions > INSTRUCTIONS && !self.entries.is_empty()) {
            let oldest = (0..self.entries.len()).min_by_key(|&at| self.entries[at].used).unwrap_or(0);
            total -= self.entries.swap_remove(oldest).batch.instrs.len();
        }
    }
}

/// The bytes of a table. All records are `repr(C)` without padding.
fn bytes<T: Copy>(table: &[T]) -> &[u8] {
    // SAFETY: the records of batches have explicit padding fields, so every byte is initialised.
    unsafe { std::slice::from_raw_parts(table.as_ptr().cast(), size_of_val(table)) }
}

fn equal(a: &BatchRef<'_>, b: &BatchRef<'_>) -> bool {
    a.bases.len() == b.bases.len()
        && a.constants.len() == b.constants.len()
        && bytes(a.instrs) == bytes(b.instrs)
        && bytes(a.views) == bytes(b.views)
        && bytes(a.dims) == bytes(b.dims)
        && bytes(a.blocks) == bytes(b.blocks)
        && bytes(a.block_instrs) == bytes(b.block_instrs)
        && bytes(a.contracted) == bytes(b.contracted)
        && bytes(a.renames) == bytes(b.renames)
        && bytes(a.rename_views) == bytes(b.rename_views)
        && a.bases.iter().zip(b.bases).all(|(a, b)| a.len == b.len && a.dtype == b.dtype && a.flags == b.flags)
        && a.constants.iter().zip(b.constants).all(|(a, b)| a.dtype == b.dtype)
}

/// A quick hash of the tables that tell batches apart.
fn hash(batch: &BatchRef<'_>) -> u64 {
    let mut hash = Mixer([batch.instrs.len() as u64, batch.bases.len() as u64, 1, 2]);
    hash.add(bytes(batch.instrs));
    hash.add(bytes(batch.dims));
    hash.add(bytes(batch.views));
    hash.add(bytes(batch.block_instrs));
    hash.finish()
}

/// Four independent multiplicative lanes; quality is no concern, as equal hashes are compared in full.
struct Mixer([u64; 4]);

impl Mixer {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    fn add(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(32);
        for chunk in &mut chunks {
            for (lane, word) in self.0.iter_mut().zip(chunk.as_chunks::<8>().0) {
                *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(Self::FACTOR).rotate_left(29);
            }
        }
        for (at, word) in chunks.remainder().chunks(8).enumerate() {
            let mut padded = [0u8; 8];
            padded[..word.len()].copy_from_slice(word);
            self.0[at] = (self.0[at] ^ u64::from_le_bytes(padded)).wrapping_mul(Self::FACTOR).rotate_left(29);
        }
    }

    fn finish(&self) -> u64 {
        self.0.iter().fold(0, |hash, lane| (hash ^ lane).wrapping_mul(Self::FACTOR).rotate_left(31))
    }
}

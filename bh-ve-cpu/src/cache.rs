//! Plans of batches that come again: a batch whose tables are equal, but for base identities and the values of
//! constants, is run without looking at its instructions.
//!
//! Constants that are equal when a batch first comes are planned as one. If a later one tells some of them apart, it gets
//! plans of its own, which rely only on what is equal in both: whatever the values, there is soon a plan that fits.

use crate::overlap::Group;
use crate::plan::BlockPlan;
use crate::sweep::SweepPlans;
use bh_bytecode::{Batch, BatchRef, Constant, Instr, Operand};
use std::collections::HashMap;

/// The most batches that are kept, and the most instructions in all of them.
const BATCHES: usize = 64;
const INSTRUCTIONS: usize = 1 << 18;

struct Entry {
    hash: u64,
    batch: Batch,
    /// Constants that the plans take to be equal: each with the first one of its value.
    same: Vec<(u32, u32)>,
    /// The instructions with the first constant of each value.
    instrs: Vec<Instr>,
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
    /// The plans of a batch, and the instructions to plan and run it with. Returns whether plans for it were known.
    pub(crate) fn plans(&mut self, batch: &BatchRef<'_>) -> (&mut Plans, &[Instr], bool) {
        self.clock += 1;
        let hash = hash(batch);
        let holds = |&&(a, b): &&(u32, u32)| batch.constants[a as usize] == batch.constants[b as usize];
        let is_known = |entry: &&Entry| entry.hash == hash && equal(&entry.batch.as_ref(), batch);
        let fits = |&(_, entry): &(usize, &Entry)| is_known(&entry) && entry.same.iter().all(|pair| holds(&pair));
        let found = self.entries.iter().enumerate().filter(fits).max_by_key(|(_, entry)| entry.same.len());
        let found = found.map(|(at, _)| at);
        let at = found.unwrap_or_else(|| {
            let known = self.entries.iter().filter(is_known);
            let still = known.map(|entry| entry.same.iter().filter(holds).copied().collect::<Vec<_>>());
            let same = still.min_by_key(Vec::len).unwrap_or_else(|| equal_constants(batch.constants));
            self.make_room(batch.instrs.len());
            let blocks = (0..batch.blocks.len()).map(|_| None).collect();
            let plans = Plans { blocks, sweeps: None, groups: None };
            let instrs = with_first_constants(batch, &same);
            self.entries.push(Entry { hash, batch: batch.to_owned(), same, instrs, plans, used: 0 });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[at];
        entry.used = self.clock;
        (&mut entry.plans, &entry.instrs, found.is_some())
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

/// The constants that are equal to earlier ones, each with the first of these.
fn equal_constants(constants: &[Constant]) -> Vec<(u32, u32)> {
    let mut first = HashMap::with_capacity(constants.len());
    let firsts = (0..).zip(constants).map(|(at, constant)| (at, *first.entry(constant).or_insert(at)));
    firsts.filter(|(at, first)| at != first).collect()
}

/// A batch's instructions with each constant of these replaced by the one beside it.
fn with_first_constants(batch: &BatchRef<'_>, same: &[(u32, u32)]) -> Vec<Instr> {
    let mut instrs = batch.instrs.to_vec();
    if same.is_empty() {
        return instrs;
    }
    let same: HashMap<u32, u32> = same.iter().copied().collect();
    for operand in instrs.iter_mut().flat_map(Instr::operands_mut) {
        if let Some(first) = operand.as_constant().and_then(|constant| same.get(&constant)) {
            *operand = Operand::constant(*first);
        }
    }
    instrs
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

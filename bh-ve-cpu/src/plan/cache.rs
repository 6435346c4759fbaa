//! Plans of batches that repeat: a batch of a known structure and partition runs without a look at its instructions.
//!
//! Constants that are equal when a batch first comes are planned as one. If a later one tells some of them apart, it gets
//! plans of its own, which rely only on what is equal in both: whatever the values, there is soon a plan that fits.

use super::batch::BatchPlans;
use bh_bytecode::cache::{Cache, Key};
use bh_bytecode::{BatchRef, Constant, Instr, Operand, StructureKey};
use std::collections::HashMap;

/// Bytes that the plans of a block and of an instruction take, about: programs before and in sliding windows.
const BLOCK_BYTES: usize = 2 << 10;
const INSTR_BYTES: usize = 512;

/// Plans that fit some values of constants.
struct Variant {
    /// Constants that the plans take to be equal: each with the first one of its value.
    same: Vec<(u32, u32)>,
    /// The instructions with the first constant of each value.
    instrs: Vec<Instr>,
    plans: BatchPlans,
}

/// The plans of recent batches.
pub(crate) struct PlanCache {
    cache: Cache<Vec<Variant>>,
    structure: StructureKey,
    /// The partition in words.
    words: Vec<u64>,
    /// The plans of the last batch, if they are too large for the cache.
    large: Vec<Variant>,
}

impl PlanCache {
    /// A cache for plans of about `most_bytes` bytes.
    pub(crate) fn new(most_bytes: usize) -> PlanCache {
        PlanCache {
            cache: Cache::new(most_bytes),
            structure: StructureKey::default(),
            words: Vec::new(),
            large: Vec::new(),
        }
    }

    /// Are there plans for a batch? Makes none.
    pub(crate) fn knows(&mut self, batch: &BatchRef<'_>) -> bool {
        write_partition(batch, &mut self.words);
        let key = Key::new(batch.signed(&mut self.structure), &self.words);
        let holds = |&(a, b): &(u32, u32)| batch.constants[a as usize] == batch.constants[b as usize];
        self.cache.get(&key).is_some_and(|variants| variants.iter().any(|variant| variant.same.iter().all(holds)))
    }

    /// The plans of a batch, and the instructions to plan and run it with. Returns whether plans for it were known.
    pub(crate) fn plans(&mut self, batch: &BatchRef<'_>) -> (&mut BatchPlans, &[Instr], bool) {
        write_partition(batch, &mut self.words);
        let key = Key::new(batch.signed(&mut self.structure), &self.words);
        let holds = |&(a, b): &(u32, u32)| batch.constants[a as usize] == batch.constants[b as usize];
        let fits = |&(_, variant): &(usize, &Variant)| variant.same.iter().all(holds);
        let known = self.cache.get(&key);
        let variants = known.as_ref().map_or(&[][..], |variants| variants);
        let found = variants.iter().enumerate().filter(fits).max_by_key(|(_, variant)| variant.same.len());
        let found = found.map(|(at, _)| at);
        if let Some(at) = found {
            // The borrow of the first look cannot be handed out where another one may follow.
            let variant = &mut self.cache.get(&key).map_or(&mut self.large, |variants| variants)[at];
            // Operations of other lines of the program are the same otherwise.
            variant.instrs.iter_mut().zip(batch.instrs).for_each(|(kept, now)| kept.origin = now.origin);
            return (&mut variant.plans, &variant.instrs, true);
        }
        let still = variants.iter().map(|variant| variant.same.iter().copied().filter(holds).collect::<Vec<_>>());
        let same = still.min_by_key(Vec::len).unwrap_or_else(|| equal_constants(batch.constants));
        let mut variants = known.map(std::mem::take).unwrap_or_default();
        variants.push(Variant { instrs: with_first_constants(batch, &same), same, plans: BatchPlans::new(batch) });
        let bytes = variants.len() * plan_bytes(batch);
        let kept = match self.cache.insert(&key, variants, bytes, batch.instrs.len() as u64) {
            Ok(variants) => variants,
            Err(variants) => {
                self.large = variants;
                &mut self.large
            }
        };
        let variant = kept.last_mut().expect("one was pushed above");
        (&mut variant.plans, &variant.instrs, false)
    }
}

/// Bytes of the plans of a batch, about, with its instructions.
fn plan_bytes(batch: &BatchRef<'_>) -> usize {
    batch.blocks.len() * BLOCK_BYTES + batch.instrs.len() * (INSTR_BYTES + size_of::<Instr>())
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

/// Writes down the partition of a batch, which is no part of its structure.
fn write_partition(batch: &BatchRef<'_>, words: &mut Vec<u64>) {
    words.clear();
    words.extend([batch.blocks.len() as u64, batch.renames.len() as u64]);
    for block in batch.blocks {
        words.push(u64::from(block.instr_count) | u64::from(block.contracted_count) << 32);
        words.push(u64::from(block.rename_count));
        let members = batch.block_instrs(block).iter().chain(batch.contracted(block));
        words.extend(members.map(|&member| u64::from(member)));
        for rename in batch.renames(block) {
            words.push(u64::from(rename.base) | u64::from(rename.uncovered_count) << 32);
            words.push(u64::from(rename.alias) | u64::from(rename.alias_view) << 32);
            words.extend(batch.uncovered(rename).iter().map(|&view| u64::from(view)));
        }
    }
}

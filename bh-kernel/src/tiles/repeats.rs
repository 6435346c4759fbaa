//! The search looks at one iteration of a loop: if blocks repeat earlier ones, on arrays that are related as those of the
//! earlier ones were, they get the same chains.
//!
//! A block has a *sign*: a hash of its stages, in which arrays are named by how many blocks ago they were used last. The
//! sign decides only how much is searched: a chain that is found this way is drafted like any other one.

use crate::survey::Survey;
use crate::{BufferRef, Lowered};
use bh_bytecode::Opcode;
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::hash::hash_words;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The result of the search for chains that begin with a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// There is none.
    Nothing,
    /// The best choice for this number of blocks gains too little: its cost is this part of the cost of its kernels otherwise.
    Declined(u32, f64),
    /// The choice for this number of blocks gains most.
    Tiles(u32),
}

/// A result, and the blocks that the search looked at for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Searched {
    pub(super) outcome: Outcome,
    /// Blocks that it depends on.
    pub(super) looked: usize,
    /// It would be the same if the batch ended earlier.
    pub(super) anyway: bool,
}

/// Outcomes that are kept of blocks with one sign.
const KEPT: usize = 4;

/// The outcomes so far, by the signs of blocks.
pub(super) struct Repeats {
    signs: Vec<u64>,
    /// By the sign of the first block: where that was.
    known: HashMap<u64, Vec<(usize, Searched)>>,
}

impl Repeats {
    pub(super) fn new(signs: Vec<u64>) -> Repeats {
        Repeats { signs, known: HashMap::new() }
    }

    /// The outcome for the chains from block `first` on, if it follows from an earlier one.
    pub(super) fn find(&self, first: usize) -> Option<Outcome> {
        let here = self.signs.get(first..)?;
        let holds = |(start, searched): &&(usize, Searched)| {
            let most = if searched.anyway { here.len() } else { usize::MAX };
            let there = &self.signs[*start..];
            let looked = searched.looked.min(most);
            looked <= there.len() && here.get(..looked) == Some(&there[..looked])
        };
        self.known.get(here.first()?)?.iter().rev().find(holds).map(|(_, searched)| searched.outcome)
    }

    /// Notes the outcome of the search from block `first` on.
    pub(super) fn note(&mut self, first: usize, searched: Searched) {
        let Some(sign) = self.signs.get(first) else { return };
        let known = self.known.entry(*sign).or_default();
        if known.len() == KEPT {
            known.remove(0);
        }
        known.push((first, searched));
    }
}

/// Names of arrays that are equal in all iterations of a loop.
struct Names {
    /// For each base the block that named it last, and its place there.
    last: Vec<Option<(u32, u32)>>,
    /// Names in the block so far.
    count: u32,
}

/// The signs of all blocks; `beside` adds a model's own facts of a block.
pub(super) fn signs(survey: &Survey<'_>, beside: impl Fn(u32) -> u64) -> Vec<u64> {
    let batch = survey.batch;
    let mut names = Names { last: vec![None; batch.bases.len()], count: 0 };
    let end = |base: u32| Some((survey.last_use(base)?, base));
    let mut ends: Vec<(u32, u32)> = (0..batch.bases.len() as u32).filter_map(end).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut words = Vec::new();
    let sign = |block: u32| {
        words.clear();
        names.count = 0;
        words.push(beside(block));
        stages(survey, block, &mut names, &mut words);
        for rename in batch.renames(&batch.blocks[block as usize]) {
            names.push(survey, block, rename.base, &mut words);
            names.push(survey, block, rename.alias, &mut words);
        }
        words.push(u64::MAX);
        while let Some((_, base)) = ends.next_if(|(last, _)| *last <= block) {
            names.push(survey, block, base, &mut words);
        }
        hash_words(&words) as u64
    };
    (0..batch.blocks.len() as u32).map(sign).collect()
}

/// Writes down the stages of a block.
fn stages(survey: &Survey<'_>, block: u32, names: &mut Names, words: &mut Vec<u64>) {
    let batch = survey.batch;
    if !survey.is_elementwise(block) {
        return words.push(u64::from(*survey.block(block) != Lowered::Nothing));
    }
    let ends = |&instr: &u32| matches!(batch.instrs[instr as usize].opcode, Opcode::Free | Opcode::Sync);
    words.push(2 + u64::from(batch.block_instrs(&batch.blocks[block as usize]).iter().any(ends)));
    for stage in survey.stages(block) {
        let parameters = &stage.parameters;
        let mut kernel = DefaultHasher::new();
        stage.kernel.hash(&mut kernel);
        words.push(kernel.finish());
        for numbers in [&parameters.extents, &parameters.starts, &parameters.strides] {
            words.extend(numbers.iter().map(|&number| number as u64));
        }
        for buffer in &parameters.buffers {
            match *buffer {
                BufferRef::Base(base) => names.push(survey, block, base, words),
                BufferRef::Fresh(base) => {
                    words.push(1);
                    names.push(survey, block, base, words);
                }
                BufferRef::Temporary(number) => words.push(2 + u64::from(number)),
                BufferRef::None => words.push(0),
            }
        }
    }
}

impl Names {
    /// Writes down how a block uses a base, and the facts about the base.
    fn push(&mut self, survey: &Survey<'_>, block: u32, base: u32, words: &mut Vec<u64>) {
        if base == NO_BASE {
            return words.push(u64::MAX);
        }
        let name = self.last[base as usize].replace((block, self.count));
        self.count += 1;
        let (record, grid) = (&survey.batch.bases[base as usize], survey.grids()[base as usize]);
        words.push(name.map_or(u64::MAX, |(last, place)| u64::from(block - last) << 32 | u64::from(place)));
        words.push(u64::from(record.dtype) | u64::from(record.flags) << 32);
        words.extend([record.len, grid.row, grid.column].map(|number| number as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCHED: Searched = Searched { outcome: Outcome::Tiles(2), looked: 3, anyway: false };

    #[test]
    fn what_was_found_holds_where_all_blocks_repeat() {
        let mut repeats = Repeats::new(vec![1, 2, 3, 4, 1, 2, 3, 1, 2, 4, 1, 2]);
        repeats.note(0, SEARCHED);
        assert_eq!([4, 7, 10].map(|first| repeats.find(first)), [Some(Outcome::Tiles(2)), None, None]);
        repeats.note(0, Searched { outcome: Outcome::Nothing, looked: 4, anyway: true });
        // The batch ends there, which changes nothing.
        assert_eq!([7, 10].map(|first| repeats.find(first)), [None, Some(Outcome::Nothing)]);
        repeats.note(10, Searched { looked: 3, ..SEARCHED });
        assert_eq!((repeats.find(12), repeats.find(1)), (None, None));
    }
}

//! Runs stages with folds, along the tree that `bh_kernel::schedule` describes. Neither which participant folds which chunk nor what
//! else the kernel does, which decides about merged dimensions and so about lines and blocks, has an influence.

use super::partials::{self, Partials};
use super::queue::part;
use super::scratch::NestScratch;
use super::workers::Workers;
use crate::block::{Aligned, BlockExecutor, Bound, Fold, Folding};
use crate::primitives::{LANES, Primitives};
use bh_core::Result;
use bh_jit_abi::{JOINED, RESULTS_AT};
use bh_kernel::schedule::{FoldLoops, FoldTree, ROW_SETS, SET_PAIRS, Unit, split};
use std::ops::Range;

/// Bytes of accumulators that are in use together: they fit the nearest cache.
const BESIDE_BYTES: usize = 32 << 10;

/// Chunks of one line that are folded by one call at most, each into lanes of its own. Between calls nothing is on its way
/// from memory.
const TOGETHER: usize = 4 * ROW_SETS;

/// Lines of a result each, or chunks, that are folded by one call at most, where the call joins their lanes.
const RESULTS: usize = 8 * JOINED;

/// Runs all of a fold.
pub(super) fn run(
    bound: Bound<'_>,
    loops: &FoldLoops,
    workers: &mut Workers,
    partial_memory: &mut Aligned,
) -> Result<()> {
    let (program, units) = (bound.program, loops.units());
    if units == 0 || loops.kept_elements() == 0 {
        return Ok(());
    }
    let memory = partial_memory.try_reserve(partials::partial_bytes(program))?;
    let stored = Partials::new(loops, memory);
    let participants = workers.participants(program.work());
    let count = workers.tasks(participants, program.work(), units);
    workers.run(participants, count as usize, |scratch, tasks| {
        let mut tasks_left = true;
        while tasks_left {
            // Code that gets ready meanwhile folds the rest: its bits are the same.
            let compiled = program.is_compiled();
            let next = || {
                if program.is_compiled() != compiled {
                    return None;
                }
                let task = tasks.take();
                tasks_left = task.is_some();
                Some(part(units, count, task? as i64))
            };
            // SAFETY: units are inside the nest, and each is taken once.
            unsafe { fold_units(bound, loops, &bound.binding.slots, &mut scratch.nest, stored, next) };
        }
    });
    // SAFETY: all units have stored their partial results.
    unsafe { partials::finish(bound, loops, stored, workers) };
    Ok(())
}

/// Folds ranges of units on one participant, with slots that begin at `slots`.
///
/// # Safety
/// The units must be inside the nest; nobody else folds them.
pub(super) unsafe fn fold_units(
    bound: Bound<'_>,
    loops: &FoldLoops,
    slots: &[*mut u8],
    scratch: &mut NestScratch,
    stored: Partials,
    mut next: impl FnMut() -> Option<Range<i64>>,
) {
    let NestScratch { block, lanes, accumulators, positions, indices } = scratch;
    accumulators.clear();
    positions.iter_mut().for_each(|list| list.resize(bound.program.slots.len(), std::ptr::null_mut()));
    let ([kept, line], [kept_index, line_index]) = (positions, indices);
    let (executor, primitives) = (BlockExecutor::new(bound, block), bound.primitives);
    let mut runner = ReductionRunner { executor, loops, accumulators, stored, line, line_index, primitives, most: 1 };
    runner.most = runner.most();
    runner.reserve(lanes);
    // The iteration that the position is at, and how many from there on have been folded together.
    let (program, mut kept_at, mut together) = (bound.program, -1, 1);
    while let Some(units) = next() {
        let mut at = units.start;
        while at < units.end {
            let unit = loops.unit(at);
            if unit.kept != kept_at {
                if kept_at >= 0 && unit.kept == kept_at + together {
                    loops.kept.skip(together, &program.slots, kept, kept_index);
                } else {
                    loops.kept.seek(unit.kept, &program.slots, slots, kept, kept_index);
                }
                kept_at = unit.kept;
            }
            together = 1;
            let most = runner.most as i64;
            let results = || loops.kept.ahead(kept_index).min(units.end - at).min(most);
            // SAFETY: units are inside the nest.
            at += unsafe {
                match loops.tree {
                    FoldTree::LineResults => {
                        together = results();
                        runner.lines(kept, 0, together);
                        together
                    }
                    FoldTree::LineChunks => {
                        // The last one may be shorter.
                        let whole = (units.end.min(loops.chunks.count - 1) - at).clamp(1, most);
                        runner.lines(kept, unit.chunk, whole);
                        whole
                    }
                    FoldTree::BesideResults { sets } => {
                        together = results();
                        runner.beside(kept, unit, together as usize, sets);
                        together
                    }
                    _ => {
                        runner.unit(kept, unit);
                        1
                    }
                }
            };
        }
    }
    runner.executor.finish();
}

/// One participant folding units.
pub(super) struct ReductionRunner<'a> {
    pub(super) executor: BlockExecutor<'a>,
    pub(super) loops: &'a FoldLoops,
    /// Lanes, or a part of a line, for each fold; with columns, those of one set after the other.
    pub(super) accumulators: &'a mut Vec<*mut u8>,
    pub(super) stored: Partials,
    pub(super) line: &'a mut Vec<*mut u8>,
    pub(super) line_index: &'a mut Vec<i64>,
    pub(super) primitives: Primitives,
    /// The most lines or results that are folded side by side.
    pub(super) most: usize,
}

impl ReductionRunner<'_> {
    /// How many lines, or results of lines that lie beside each other, are folded side by side: of the latter a power of two.
    fn most(&self) -> usize {
        match self.loops.tree {
            FoldTree::LineResults | FoldTree::LineChunks if self.executor.joins() => RESULTS,
            FoldTree::LineResults => ROW_SETS,
            FoldTree::LineChunks => TOGETHER,
            FoldTree::BesideResults { sets } => {
                let sizes: usize = self.executor.program.folds.iter().map(|fold| fold.size).sum();
                1 << (BESIDE_BYTES / (LANES * sets * sizes).max(1)).max(1).ilog2()
            }
            _ => 1,
        }
    }

    fn reserve(&mut self, memory: &mut Aligned) {
        // Elements of a set of accumulators, and sets that have accumulators of their own.
        let (elements, sets) = match self.loops.tree {
            FoldTree::Columns => (self.set_elements(), LANES),
            FoldTree::LineResults | FoldTree::LineChunks if self.executor.joins() => (RESULTS_AT + RESULTS, 1),
            FoldTree::LineResults | FoldTree::LineChunks => (LANES * self.most, 1),
            FoldTree::BesideResults { sets } => (LANES * self.most, sets),
            FoldTree::LongRows { .. } => (LANES * ROW_SETS, 1),
            FoldTree::Runs => (LANES, 1),
            FoldTree::KeptLines => ((self.loops.part_steps() * self.executor.program.schedule.lines().row) as usize, 1),
        };
        let folds = &self.executor.program.folds;
        let bytes = |fold: &Fold| (elements * sets * fold.size).next_multiple_of(64);
        let mut at = memory.reserve(folds.iter().map(bytes).sum());
        for fold in folds {
            self.accumulators.push(at);
            at = at.wrapping_add(bytes(fold));
        }
        for set in 1..sets {
            for (index, fold) in folds.iter().enumerate() {
                self.accumulators.push(self.accumulators[index].wrapping_add(set * elements * fold.size));
            }
        }
        if self.executor.joins() {
            self.clear(LANES);
        }
    }

    /// Sets accumulators of `elements` elements to the identity element.
    pub(super) fn clear(&mut self, elements: usize) {
        for (fold, &accumulator) in self.executor.program.folds.iter().zip(self.accumulators.iter()) {
            // SAFETY: the accumulators have room for these elements.
            unsafe { self.primitives.fill(fold.size)(elements, accumulator, fold.identity.as_ptr()) };
        }
    }

    /// Makes element `by` of the `elements` in each accumulator the first one.
    fn turn(&mut self, elements: usize, by: usize) {
        if by == 0 {
            return;
        }
        for (fold, &accumulator) in self.executor.program.folds.iter().zip(self.accumulators.iter()) {
            // SAFETY: the accumulators have room for these elements, and all of them are set.
            unsafe { std::slice::from_raw_parts_mut(accumulator, elements * fold.size) }.rotate_left(by * fold.size);
        }
    }

    /// Folds a unit alone.
    ///
    /// # Safety
    /// The unit must be inside the nest, and `kept` its position.
    unsafe fn unit(&mut self, kept: &[*mut u8], unit: Unit) {
        let (program, loops) = (self.executor.program, self.loops);
        let lines = program.schedule.lines();
        let (first, count) = loops.chunks.chunk(unit.chunk);
        let (mut first_step, mut elements) = (0, loops.line_elements());
        // SAFETY: the unit is inside the nest; its results go where nobody else writes.
        unsafe {
            match loops.tree {
                _ if loops.keeps_lines() => {
                    first_step = unit.part * loops.part_steps();
                    elements = loops.part_steps().min(lines.steps - first_step) * lines.row;
                    self.fold_kept(kept, (first, count), first_step, elements);
                }
                FoldTree::Columns => self.fold_columns(kept, first, count),
                FoldTree::LongRows { row } => {
                    self.fold_rows(kept, (split(first, row).0, split(count, row).0), row);
                }
                _ => self.fold_run(kept, first, count),
            }
            let at = unit.chunk * loops.kept_elements() + unit.kept * loops.line_elements() + first_step * lines.row;
            for (index, fold) in program.folds.iter().enumerate() {
                let accumulator = self.accumulators[index];
                if loops.tree.has_lanes() {
                    (fold.join)(accumulator, accumulator);
                }
                match self.stored.of(program, index) {
                    Some(stored) => {
                        let to = stored.wrapping_add(at as usize * fold.size);
                        std::ptr::copy_nonoverlapping(accumulator, to, elements as usize * fold.size);
                    }
                    None => {
                        let to = kept[fold.slot];
                        partials::write(program, fold, self.primitives, to, first_step, elements as usize, accumulator);
                    }
                }
            }
        }
    }

    /// Folds elements that are a part of a line, or lines, into lanes.
    ///
    /// # Safety
    /// As [`ReductionRunner::unit`].
    unsafe fn fold_run(&mut self, kept: &[*mut u8], first: i64, count: i64) {
        let (program, loops) = (self.executor.program, self.loops);
        let lines = program.schedule.lines();
        self.clear(LANES);
        if count == 0 {
            return;
        }
        let line = lines.elements();
        let (line_number, first) = split(first, line);
        loops.reduced.seek(line_number, &program.slots, kept, self.line, self.line_index);
        // Lines whose length is no multiple of the lanes begin in the middle of them.
        let (turn, mut turned) = ((line % LANES as i64) as usize, 0);
        let (first_step, steps) = (split(first, lines.row).0, split(count.min(line), lines.row).0);
        for row in 0..split(count, line).0.max(1) {
            if row > 0 {
                loops.reduced.next(&program.slots, self.line, self.line_index);
                self.turn(LANES, turn);
                turned = (turned + turn) % LANES;
            }
            // SAFETY: the lines of the unit are inside the nest, and there are lanes for each fold.
            unsafe {
                self.executor.lines(self.line, 1, first_step, steps, Folding::Lanes(self.accumulators, ROW_SETS))
            };
        }
        self.turn(LANES, (LANES - turned) % LANES);
    }

    /// Folds long rows, counted from `first` on, each into the next set of lanes, and the sets into the first one.
    ///
    /// # Safety
    /// As [`ReductionRunner::unit`].
    unsafe fn fold_rows(&mut self, kept: &[*mut u8], (first, count): (i64, i64), row: i64) {
        let (program, loops) = (self.executor.program, self.loops);
        let (per_line, _) = split(loops.lines.steps, row);
        if count == 1 {
            self.clear(LANES);
        } else {
            self.clear(LANES * ROW_SETS);
        }
        let (line_number, mut in_line) = split(first, per_line);
        loops.reduced.seek(line_number, &program.slots, kept, self.line, self.line_index);
        let (mut left, mut turned) = (count, 0);
        while left > 0 {
            // The rows that lie one stride apart: rows of one line, or lines.
            let ahead = match per_line {
                1 => loops.lines_ahead(self.line_index),
                _ => per_line - in_line,
            };
            let together = ahead.min(left);
            // SAFETY: the rows of the unit are inside the nest.
            unsafe {
                self.executor.lines(
                    self.line,
                    together,
                    in_line * row,
                    row,
                    Folding::Lanes(self.accumulators, ROW_SETS),
                );
            }
            (left, in_line) = (left - together, 0);
            if left > 0 {
                let lines = if per_line == 1 { together } else { 1 };
                loops.reduced.skip(lines, &program.slots, self.line, self.line_index);
                let sets = (together % ROW_SETS as i64) as usize;
                self.turn(LANES * ROW_SETS, sets * LANES);
                turned = (turned + sets) % ROW_SETS;
            }
        }
        if count > 1 {
            self.turn(LANES * ROW_SETS, (ROW_SETS - turned) % ROW_SETS * LANES);
            // SAFETY: the accumulators are as many sets.
            unsafe { self.join_sets(LANES) };
        }
    }

    /// Joins four sets of `elements` elements.
    ///
    /// # Safety
    /// The accumulators must be four sets of `elements` elements for each fold.
    pub(super) unsafe fn join_sets(&mut self, elements: usize) {
        for (fold, &accumulator) in self.executor.program.folds.iter().zip(self.accumulators.iter()) {
            let set = |number: usize| accumulator.wrapping_add(number * elements * fold.size);
            for (to, from) in SET_PAIRS {
                // SAFETY: the accumulators are four sets of `elements` elements.
                unsafe { (fold.combine)(elements, set(to), set(to), set(from), set(from)) };
            }
        }
    }
}

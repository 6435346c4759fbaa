//! Lines of several results, or chunks, that are folded together.

use super::reduction::ReductionRunner;
use crate::block::{Fold, Folding};
use crate::primitives::LANES;
use bh_jit_abi::RESULTS_AT;
use bh_kernel::schedule::{FoldTree, ROW_SETS, Unit, split};

impl ReductionRunner<'_> {
    /// Folds lines that make one result each, or chunks of the only line from `first` on: their last loads are on their way
    /// while the next one's begin, which makes sums of arrays in memory a seventh faster.
    ///
    /// # Safety
    /// The lines must be inside the nest, `kept` the position of the first, and their number at most `most`; the last chunk, which may be
    /// shorter, comes alone.
    pub(super) unsafe fn lines(&mut self, kept: &[*mut u8], first: i64, count: i64) {
        let program = self.executor.program;
        let (begin, elements) = match self.loops.tree {
            FoldTree::LineChunks => self.loops.chunks.chunk(first),
            _ => (0, program.schedule.lines().steps),
        };
        if !self.executor.joins() {
            self.clear(LANES * count as usize);
            // SAFETY: the lines are inside the nest; every line has a set of lanes, and a result.
            unsafe {
                let folding = Folding::Lanes(self.accumulators, self.most);
                self.executor.lines(kept, count, begin, elements, folding);
                self.write_lanes(kept, first, count as usize);
            }
            return;
        }
        // SAFETY: the lines are inside the nest; the identity elements are there, and room for the results.
        unsafe {
            self.executor.lines(kept, count, begin, elements, Folding::Results(self.accumulators));
            for (index, (fold, &accumulator)) in program.folds.iter().zip(self.accumulators.iter()).enumerate() {
                let (to, to_next) = self.place(kept, first, index, fold);
                let results = accumulator.wrapping_add(RESULTS_AT * fold.size);
                self.primitives.scatter_strided(fold.size)(count as usize, to, results, to_next);
            }
        }
    }

    /// Folds a chunk of some results that follow each other along the dimension around their lines: one line of each, then
    /// the next one of each. Where lines are short, those of one result would be far apart.
    ///
    /// # Safety
    /// The unit must be inside the nest, and `kept` its position, for each of the results, whose number is at most `most`.
    pub(super) unsafe fn beside(&mut self, kept: &[*mut u8], unit: Unit, results: usize, sets: usize) {
        let (program, loops) = (self.executor.program, self.loops);
        let (first, elements) = loops.chunks.chunk(unit.chunk);
        let line = program.schedule.lines().steps;
        let (first, lines) = (split(first, line).0, split(elements, line).0);
        // Long lines go to one set of lanes after the other; short ones are one run of elements.
        let turn = if sets > 1 { 0 } else { (line % LANES as i64) as usize };
        let used = if lines > 1 { sets } else { 1 };
        self.clear(LANES * self.most * used);
        loops.reduced.seek(first, &program.slots, kept, self.line, self.line_index);
        for number in 0..lines as usize {
            if number > 0 {
                loops.reduced.next(&program.slots, self.line, self.line_index);
                self.turn_each(results, turn);
            }
            let accumulators = &self.accumulators[number % used * program.folds.len()..];
            let folding = Folding::Lanes(&accumulators[..program.folds.len()], self.most.max(ROW_SETS));
            // SAFETY: the lines of all results are inside the nest; each result has its lanes.
            unsafe { self.executor.lines(self.line, results as i64, 0, line, folding) };
        }
        let turned = turn * (lines as usize - 1) % LANES;
        self.turn_each(results, (LANES - turned) % LANES);
        // SAFETY: the lanes are set, and there are results at these positions.
        unsafe {
            if used > 1 {
                self.join_sets(self.most * LANES);
            }
            self.write_lanes(kept, unit.chunk * loops.kept_elements() + unit.kept, results);
        }
    }

    /// Makes lane `by` of each of some results' lanes the first one.
    fn turn_each(&mut self, results: usize, by: usize) {
        if by == 0 {
            return;
        }
        for (fold, &accumulator) in self.executor.program.folds.iter().zip(self.accumulators.iter()) {
            for result in 0..results {
                let lanes = accumulator.wrapping_add(result * LANES * fold.size);
                // SAFETY: every result has its lanes, and all of them are set.
                unsafe { std::slice::from_raw_parts_mut(lanes, LANES * fold.size) }.rotate_left(by * fold.size);
            }
        }
    }

    /// Where a fold's result, or the partial result of this number, goes, and how far from there the next one.
    fn place(&self, kept: &[*mut u8], number: i64, index: usize, fold: &Fold) -> (*mut u8, isize) {
        let program = self.executor.program;
        match self.stored.of(program, index) {
            Some(stored) => (stored.wrapping_add(number as usize * fold.size), fold.size as isize),
            None => (kept[fold.slot], program.slots[fold.slot].plane),
        }
    }

    /// Joins the lanes of each of some results, and writes the results, from the partial result of this number on.
    ///
    /// # Safety
    /// There must be that number of results at these positions, and of sets of lanes.
    unsafe fn write_lanes(&self, kept: &[*mut u8], number: i64, results: usize) {
        let program = self.executor.program;
        for (index, (fold, &accumulator)) in program.folds.iter().zip(self.accumulators.iter()).enumerate() {
            let (to, to_next) = self.place(kept, number, index, fold);
            for result in 0..results {
                let lanes = accumulator.wrapping_add(result * LANES * fold.size);
                // SAFETY: there are as many results at these positions, and sets of lanes.
                unsafe {
                    (fold.join)(lanes, lanes);
                    std::ptr::copy_nonoverlapping(lanes, to.wrapping_offset(result as isize * to_next), fold.size);
                }
            }
        }
    }
}

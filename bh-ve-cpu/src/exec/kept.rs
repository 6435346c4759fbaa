//! Folds of kept lines element by element, and of rows of columns into sets.

use super::reduction::ReductionRunner;
use crate::block::Folding;
use crate::primitives::LANES;
use bh_kernel::schedule::{FoldTree, halvings, split};

impl ReductionRunner<'_> {
    /// Folds a part of `count` kept lines, one line after the other, element by element.
    ///
    /// # Safety
    /// As [`ReductionRunner::unit`].
    pub(super) unsafe fn fold_kept(
        &mut self,
        kept: &[*mut u8],
        (first, rows): (i64, i64),
        first_step: i64,
        elements: i64,
    ) {
        let (program, loops) = (self.executor.program, self.loops);
        let folds = program.folds.len();
        let (sets, each) = match loops.tree {
            FoldTree::Columns => (LANES, self.set_elements()),
            _ => (1, elements as usize),
        };
        self.clear(each * sets);
        if rows > 0 {
            loops.reduced.seek(first, &program.slots, kept, self.line, self.line_index);
        }
        let steps = elements / program.schedule.lines().row;
        let (mut left, mut set) = (rows, 0);
        while left > 0 {
            let mut together = loops.lines_ahead(self.line_index).min(left);
            let mut accumulators = self.accumulators.as_slice();
            if set > 0 {
                // The sets up to the last one, without those before.
                together = together.min((sets - set) as i64);
                accumulators = &accumulators[set * folds..];
            }
            // SAFETY: the lines of the unit are inside the nest; the accumulators have room for these elements.
            unsafe { self.executor.lines(self.line, together, first_step, steps, Folding::Elements(accumulators)) };
            set = (set + together as usize) % sets;
            left -= together;
            if left > 0 {
                loops.reduced.skip(together, &program.slots, self.line, self.line_index);
            }
        }
        if sets > 1 {
            self.join_columns();
        }
    }

    /// Folds `count` rows of columns, which are steps of lines, into the sets.
    ///
    /// # Safety
    /// As [`ReductionRunner::unit`].
    pub(super) unsafe fn fold_columns(&mut self, kept: &[*mut u8], first: i64, count: i64) {
        let (program, loops) = (self.executor.program, self.loops);
        let (line, sets, folds) = (program.schedule.lines().steps, LANES as i64, program.folds.len());
        self.clear(LANES * self.set_elements());
        let (line_number, mut step) = split(first, line);
        loops.reduced.seek(line_number, &program.slots, kept, self.line, self.line_index);
        let (mut left, mut set) = (count, 0);
        while left > 0 {
            if step == line {
                loops.reduced.next(&program.slots, self.line, self.line_index);
                step = 0;
            }
            let rows = left.min(line - step);
            // All sets several times, or those from the current one on.
            let (times, steps) = if set == 0 && rows >= sets { (rows / sets, sets) } else { (1, rows.min(sets - set)) };
            let accumulators = &self.accumulators[set as usize * folds..][..folds];
            // SAFETY: the rows of the unit are inside the nest; the accumulators have room for the elements of these sets.
            unsafe { self.executor.lines(self.line, times, step, steps, Folding::Elements(accumulators)) };
            set = (set + steps) % sets;
            step += times * steps;
            left -= times * steps;
        }
        self.join_columns();
    }

    /// Elements from one set of columns to the next.
    pub(super) fn set_elements(&self) -> usize {
        self.executor.set_elements(self.loops.line_elements())
    }

    /// Folds the sets of columns by halving into the first.
    fn join_columns(&mut self) {
        let each = self.set_elements();
        for (fold, &accumulator) in self.executor.program.folds.iter().zip(self.accumulators.iter()) {
            for (sets, from) in halvings(LANES as i64) {
                let elements = sets as usize * each;
                let upper = accumulator.wrapping_add(from as usize * each * fold.size);
                // SAFETY: the accumulators are as many sets.
                unsafe { (fold.combine)(elements, accumulator, accumulator, upper, upper) };
            }
        }
    }
}

//! Lines of several results, or chunks, that are folded together.

use super::super::frame::Folding;
use super::super::{margin, partials};
use super::Folder;
use crate::primitives::LANES;
use crate::program::split;
use bh_jit_abi::{JOINED, RESULTS_AT, ROW_SETS};

/// Chunks of one line that are folded by one call at most, each into lanes of its own. Between calls nothing is on its way
/// from memory.
pub(super) const TOGETHER: usize = 4 * ROW_SETS;

/// Lines of a result each, or chunks, that are folded by one call at most, where the call joins their lanes.
pub(super) const RESULTS: usize = 8 * JOINED;

impl Folder<'_> {
    /// Folds lines that make one result each, side by side, and writes the results.
    ///
    /// # Safety
    /// The lines must be inside the nest, `kept` the position of the first, and [`RESULTS`] at most if the code joins lanes, or
    /// else [`ROW_SETS`].
    pub(super) unsafe fn results(&mut self, kept: &[*mut u8], lines: i64) {
        let program = self.frame.program;
        if self.frame.joins() {
            // SAFETY: promised by the caller; the neutral elements are there, and room for the results.
            unsafe {
                self.frame.lines(kept, lines, 0, program.geometry.line, Folding::Results(self.accumulators));
                for (fold, &accumulator) in program.folds.iter().zip(self.accumulators.iter()) {
                    let results = accumulator.wrapping_add(RESULTS_AT * fold.size);
                    let scatter = self.primitives.scatter_strided(fold.size);
                    scatter(lines as usize, kept[fold.slot], results, program.slots[fold.slot].plane);
                }
            }
            return;
        }
        self.clear(LANES * lines as usize);
        // SAFETY: promised by the caller; every line has a set of lanes.
        unsafe {
            self.frame.lines(kept, lines, 0, program.geometry.line, Folding::Lanes(self.accumulators, ROW_SETS));
            for (fold, &accumulator) in program.folds.iter().zip(self.accumulators.iter()) {
                let to_next = program.slots[fold.slot].plane;
                for line in 0..lines as usize {
                    let lanes = accumulator.wrapping_add(line * LANES * fold.size);
                    (fold.join)(lanes, lanes);
                    let to = kept[fold.slot].wrapping_offset(line as isize * to_next);
                    partials::write(program, fold, self.primitives, to, 0, 1, lanes);
                }
            }
        }
    }

    /// Folds chunks of the only line, each into a set of lanes: their last loads are on their way while the next one's
    /// begin, which takes a seventh off the time of a sum of what comes from memory.
    ///
    /// # Safety
    /// The chunks must be inside the nest, `kept` its position, and [`RESULTS`] at most if the code joins lanes, or else
    /// [`TOGETHER`]; the last one of the line, which may be shorter, comes alone.
    pub(super) unsafe fn chunks(&mut self, kept: &[*mut u8], first: i64, count: i64) {
        let program = self.frame.program;
        let (begin, elements) = self.division.cut.chunk(first);
        if self.frame.joins() {
            // SAFETY: promised by the caller; the neutral elements are there, and room for the results.
            unsafe {
                self.frame.lines(kept, count, begin, elements, Folding::Results(self.accumulators));
                for (index, (fold, &accumulator)) in program.folds.iter().zip(self.accumulators.iter()).enumerate() {
                    let Some(stored) = self.stored.of(program, index) else { continue };
                    let results = accumulator.wrapping_add(RESULTS_AT * fold.size);
                    let to = stored.wrapping_add(first as usize * fold.size);
                    std::ptr::copy_nonoverlapping(results, to, count as usize * fold.size);
                }
            }
            return;
        }
        self.clear(LANES * count as usize);
        // SAFETY: promised by the caller; every chunk has a set of lanes, and a partial result.
        unsafe {
            self.frame.lines(kept, count, begin, elements, Folding::Lanes(self.accumulators, TOGETHER));
            for (index, (fold, &accumulator)) in program.folds.iter().zip(self.accumulators.iter()).enumerate() {
                let Some(stored) = self.stored.of(program, index) else { continue };
                for chunk in 0..count as usize {
                    let lanes = accumulator.wrapping_add(chunk * LANES * fold.size);
                    (fold.join)(lanes, lanes);
                    let to = stored.wrapping_add((first as usize + chunk) * fold.size);
                    std::ptr::copy_nonoverlapping(lanes, to, fold.size);
                }
            }
        }
    }

    /// Folds a chunk of some results that follow each other along the dimension around their lines: one line of each, then
    /// the next one of each. Where lines are short, those of one result would be far apart.
    ///
    /// # Safety
    /// As [`Folder::unit`], for each of the results, which are at most as many as [`Folder::beside`].
    pub(super) unsafe fn beside(&mut self, kept: &[*mut u8], first_kept: i64, results: i64, chunk: i64) {
        let (program, division) = (self.frame.program, self.division);
        let (first, elements) = division.cut.chunk(chunk);
        let line = program.geometry.line;
        let (first, lines) = (split(first, line).0, split(elements, line).0);
        let (results, beside) = (results as usize, self.beside as usize);
        // Long lines go to one set of lanes after the other; short ones are one run of elements.
        let (sets, turn) = match division.cut.row {
            Some(_) if lines > 1 => (ROW_SETS, 0),
            Some(_) => (1, 0),
            None => (1, (line % LANES as i64) as usize),
        };
        self.clear(LANES * beside * sets);
        division.reduced.seek(first, &program.slots, kept, self.line, self.line_index);
        for number in 0..lines as usize {
            if number > 0 {
                division.reduced.next(&program.slots, self.line, self.line_index);
                self.turn_each(results, turn);
            }
            let accumulators = &self.accumulators[number % sets * program.folds.len()..];
            let folding = Folding::Lanes(&accumulators[..program.folds.len()], beside.max(ROW_SETS));
            margin::fetch(program, self.line, results as i64);
            // SAFETY: promised by the caller; each result has its lanes.
            unsafe {
                self.frame.lines(self.line, results as i64, 0, line, folding);
                margin::copy(program, self.line, results as i64);
            }
        }
        let turned = turn * (lines as usize - 1) % LANES;
        self.turn_each(results, (LANES - turned) % LANES);
        // SAFETY: the lanes are set, and there are results at these positions.
        unsafe {
            if sets > 1 {
                self.join_sets(beside * LANES);
            }
            self.write_beside(kept, first_kept, results, chunk);
        }
    }

    /// Makes lane `by` of each of some results' lanes the first one.
    fn turn_each(&mut self, results: usize, by: usize) {
        if by == 0 {
            return;
        }
        for (fold, &accumulator) in self.frame.program.folds.iter().zip(self.accumulators.iter()) {
            for result in 0..results {
                let lanes = accumulator.wrapping_add(result * LANES * fold.size);
                // SAFETY: every result has its lanes, and all of them are set.
                unsafe { std::slice::from_raw_parts_mut(lanes, LANES * fold.size) }.rotate_left(by * fold.size);
            }
        }
    }

    /// Joins the lanes of each of some results, and writes what they are.
    ///
    /// # Safety
    /// As [`Folder::beside`].
    unsafe fn write_beside(&self, kept: &[*mut u8], first_kept: i64, results: usize, chunk: i64) {
        let (program, division) = (self.frame.program, self.division);
        for (index, (fold, &accumulator)) in program.folds.iter().zip(self.accumulators.iter()).enumerate() {
            let (to, to_next) = match self.stored.of(program, index) {
                Some(stored) => {
                    let at = chunk * division.kept_elements + first_kept;
                    (stored.wrapping_add(at as usize * fold.size), fold.size as isize)
                }
                None => (kept[fold.slot], program.slots[fold.slot].plane),
            };
            for result in 0..results {
                let lanes = accumulator.wrapping_add(result * LANES * fold.size);
                // SAFETY: promised by the caller.
                unsafe {
                    (fold.join)(lanes, lanes);
                    std::ptr::copy_nonoverlapping(lanes, to.wrapping_offset(result as isize * to_next), fold.size);
                }
            }
        }
    }
}

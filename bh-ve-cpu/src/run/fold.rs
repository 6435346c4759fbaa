//! Stages with folds. The tree is fixed by the folded view: its reduced elements are numbered in the order of its axes and
//! cut into chunks, each chunk is folded in order, and the chunks' results are folded by halving. Neither which participant
//! folds which chunk nor what else the kernel does, which decides about merged dimensions and so about lines and blocks,
//! has an influence.
//!
//! Within a chunk, elements of kept lines are folded one by one. Where lines are reduced, element `i` of the chunk goes to
//! lane `i % 32`, unless the innermost axis is long: then a chunk is a number of its rows, and element `i` of row `r` goes
//! to lane `i % 32` of set `r % 4`, so that compiled code can fold four rows side by side. At the end the sets are folded
//! into one, and its lanes into one element. Where few elements are kept inside of many folded ones, row `r` of the chunk goes
//! to set `r % 32`, which is what folds each column into lanes; the sets are folded by halving, as lanes are.

mod together;

use super::division::Division;
use super::frame::{Folding, Frame};
use super::margin;
use super::partials::{self, Partials};
use super::queue::part;
use super::scratch::{Aligned, Parts};
use super::{Binding, Workers};
use crate::primitives::{LANES, Primitives};
use crate::program::{Fold, Program, split};
use bh_core::Result;
use bh_fuser::lower::Dim;
use bh_jit_abi::{RESULTS_AT, ROW_SETS};
use std::ops::Range;
use together::{RESULTS, TOGETHER};

/// What is folded into together fits the nearest cache.
const BESIDE_BYTES: usize = 32 << 10;

/// # Safety
/// As [`super::run`].
pub(super) unsafe fn run(
    program: &Program,
    division: &Division,
    binding: &Binding,
    primitives: Primitives,
    workers: &mut Workers,
    partial_memory: &mut Aligned,
) -> Result<()> {
    let units = division.units();
    if units == 0 || division.kept_elements == 0 {
        return Ok(());
    }
    let memory = partial_memory.try_reserve(partials::partial_bytes(program, division))?;
    let stored = Partials::new(division, memory);
    let participants = workers.participants(program.work());
    let count = workers.tasks(participants, program.work(), units);
    workers.run(participants, count as usize, |scratch, tasks| {
        let mut task = 0..0;
        let next = || {
            if program.tile.is_none() {
                return Some(part(units, count, tasks.take()? as i64));
            }
            if task.is_empty() {
                task = part(units, count, tasks.take()? as i64);
            }
            let unit = division.in_tiles(task.next()?);
            Some(unit..unit + 1)
        };
        // SAFETY: promised by the caller.
        unsafe { fold_units(program, division, binding, &binding.slots, primitives, scratch.parts(), stored, next) };
    });
    // SAFETY: all units have stored their partial results.
    unsafe { partials::finish(program, binding, primitives, division, stored, workers) };
    Ok(())
}

/// Folds ranges of units on one participant, with slots that begin at `slots`.
///
/// # Safety
/// As [`super::run`]; nobody else folds these units.
#[allow(clippy::too_many_arguments, reason = "a loop body that two drivers share")]
pub(super) unsafe fn fold_units(
    program: &Program,
    division: &Division,
    binding: &Binding,
    slots: &[*mut u8],
    primitives: Primitives,
    scratch: Parts<'_>,
    stored: Partials,
    mut next: impl FnMut() -> Option<Range<i64>>,
) {
    let Parts { frame: parts, lanes, accumulators, positions, indices } = scratch;
    accumulators.clear();
    positions.iter_mut().for_each(|list| list.resize(program.slots.len(), std::ptr::null_mut()));
    let [kept, line] = positions;
    let [kept_index, line_index] = indices;
    let geometry = &program.geometry;
    let around = geometry.line_dim.checked_sub(1).map(|dim| geometry.dims[dim]);
    let mut folder = Folder {
        frame: Frame::new(program, binding, primitives, parts, geometry.block()),
        division,
        accumulators,
        stored,
        line,
        line_index,
        primitives,
        lines_are_planes: around == Some(Dim::Reduced),
        results_are_planes: division.has_lines_for_results(geometry),
        chunks_are_planes: geometry.chunk().is_some(),
        beside: 0,
    };
    folder.beside = folder.choose_beside();
    folder.reserve(lanes);
    // The iteration that the position is at, and how many from there on have been folded together.
    let (mut kept_at, mut together) = (-1, 1);
    while let Some(units) = next() {
        let mut at = units.start;
        while at < units.end {
            let (kept_iteration, part, chunk) = division.unit(at);
            if kept_iteration != kept_at {
                if kept_at >= 0 && kept_iteration == kept_at + together {
                    division.kept.skip(together, &program.slots, kept, kept_index);
                } else {
                    division.kept.seek(kept_iteration, &program.slots, slots, kept, kept_index);
                }
                kept_at = kept_iteration;
            }
            together = 1;
            // SAFETY: units are inside the nest.
            unsafe {
                if folder.results_are_planes {
                    let most = if folder.frame.joins() { RESULTS } else { ROW_SETS };
                    together = division.kept.ahead(kept_index).min(units.end - at).min(most as i64);
                    folder.results(kept, together);
                    at += together;
                } else if folder.chunks_are_planes {
                    // The last one may be shorter.
                    let most = if folder.frame.joins() { RESULTS } else { TOGETHER };
                    let whole = (units.end.min(division.chunks - 1) - at).clamp(1, most as i64);
                    folder.chunks(kept, chunk, whole);
                    at += whole;
                } else if folder.beside > 0 {
                    together = division.kept.ahead(kept_index).min(units.end - at).min(folder.beside);
                    folder.beside(kept, kept_iteration, together, chunk);
                    at += together;
                } else {
                    folder.unit(kept, kept_iteration, part, chunk);
                    at += 1;
                }
            }
        }
    }
    folder.frame.finish();
}

/// One participant folding units.
struct Folder<'a> {
    frame: Frame<'a>,
    division: &'a Division,
    /// Lanes, or a part of a line, for each fold; with columns, those of one set after the other.
    accumulators: &'a mut Vec<*mut u8>,
    stored: Partials,
    line: &'a mut Vec<*mut u8>,
    line_index: &'a mut Vec<i64>,
    primitives: Primitives,
    /// Do reduced lines follow each other along the dimension around them?
    lines_are_planes: bool,
    /// Are results folded from a line each, and do these lines follow each other along the dimension around them, if there
    /// is one?
    results_are_planes: bool,
    /// Do chunks follow each other along the only line?
    chunks_are_planes: bool,
    /// The most results whose chunks are folded together, where lines of different results lie beside each other: a power of
    /// two; else 0.
    beside: i64,
}

impl Folder<'_> {
    fn reserve(&mut self, memory: &mut Aligned) {
        let row = self.frame.program.geometry.row;
        let elements = match self.division.line_reduced {
            _ if self.has_sets() => self.frame.set_elements() * LANES,
            true if self.frame.joins() => RESULTS_AT + RESULTS,
            true if self.chunks_are_planes => LANES * TOGETHER,
            true if self.beside > 0 => LANES * self.beside as usize * self.sets_beside(),
            true if self.results_are_planes || self.division.cut.row.is_some() => LANES * ROW_SETS,
            true => LANES,
            false => (self.division.part_steps * row) as usize,
        };
        let folds = &self.frame.program.folds;
        let bytes = |fold: &Fold| (elements * fold.size).next_multiple_of(64);
        let mut at = memory.reserve(folds.iter().map(bytes).sum());
        for fold in folds {
            self.accumulators.push(at);
            at = at.wrapping_add(bytes(fold));
        }
        let (sets, each) = match self.has_sets() {
            true => (LANES, self.frame.set_elements()),
            false => (self.sets_beside(), LANES * self.beside as usize),
        };
        if self.has_sets() || self.beside > 0 {
            for set in 1..sets {
                let first = set * each;
                for (index, fold) in folds.iter().enumerate() {
                    self.accumulators.push(self.accumulators[index].wrapping_add(first * fold.size));
                }
            }
        }
        if self.frame.joins() {
            self.clear(LANES);
        }
    }

    /// Sets of lanes of each result, where several are folded together.
    fn sets_beside(&self) -> usize {
        self.division.cut.row.map_or(1, |_| ROW_SETS)
    }

    /// As many results as are to be folded together, where their lines lie beside each other.
    fn choose_beside(&self) -> i64 {
        if !self.division.lies_beside {
            return 0;
        }
        let sizes: usize = self.frame.program.folds.iter().map(|fold| fold.size).sum();
        let fitting = BESIDE_BYTES / (LANES * self.sets_beside() * sizes).max(1);
        1 << fitting.max(1).ilog2()
    }

    /// Are rows folded into as many sets as there are lanes?
    fn has_sets(&self) -> bool {
        let geometry = &self.frame.program.geometry;
        geometry.columns > 0 && (geometry.steps.is_some() || !self.division.line_reduced)
    }

    /// Sets accumulators of so many elements to the neutral element.
    fn clear(&mut self, elements: usize) {
        for (fold, &accumulator) in self.frame.program.folds.iter().zip(self.accumulators.iter()) {
            // SAFETY: the accumulators have room for these elements.
            unsafe { self.primitives.fill(fold.size)(elements, accumulator, fold.neutral.as_ptr()) };
        }
    }

    /// Makes element `by` of so many in each accumulator the first one.
    fn turn(&mut self, elements: usize, by: usize) {
        if by == 0 {
            return;
        }
        for (fold, &accumulator) in self.frame.program.folds.iter().zip(self.accumulators.iter()) {
            // SAFETY: the accumulators have room for these elements, and all of them are set.
            unsafe { std::slice::from_raw_parts_mut(accumulator, elements * fold.size) }.rotate_left(by * fold.size);
        }
    }

    /// # Safety
    /// The unit must be inside the nest, and `kept` its position.
    unsafe fn unit(&mut self, kept: &[*mut u8], kept_iteration: i64, part: i64, chunk: i64) {
        let (program, division) = (self.frame.program, self.division);
        let geometry = &program.geometry;
        let (first_step, elements) = if division.line_reduced {
            (0, division.line_elements)
        } else {
            let first_step = part * division.part_steps;
            (first_step, division.part_steps.min(geometry.line - first_step) * geometry.row)
        };
        // SAFETY: promised by the caller.
        unsafe {
            let (first, count) = division.cut.chunk(chunk);
            match division.cut.row {
                _ if !division.line_reduced => self.fold_kept(kept, (first, count), first_step, elements),
                _ if geometry.steps.is_some() => self.fold_columns(kept, first, count),
                Some(row) => self.fold_rows(kept, (split(first, row).0, split(count, row).0), row),
                None => self.fold_run(kept, first, count),
            }
            if self.has_sets() {
                self.join_columns();
            }
            for (index, fold) in program.folds.iter().enumerate() {
                let accumulator = self.accumulators[index];
                if division.line_reduced && geometry.steps.is_none() {
                    (fold.join)(accumulator, accumulator);
                }
                match self.stored.of(program, index) {
                    Some(stored) => {
                        let at = chunk * division.kept_elements
                            + kept_iteration * division.line_elements
                            + first_step * geometry.row;
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

    /// Folds a part of so many kept lines, one line after the other, element by element.
    ///
    /// # Safety
    /// As [`Folder::unit`].
    unsafe fn fold_kept(&mut self, kept: &[*mut u8], (first, rows): (i64, i64), first_step: i64, elements: i64) {
        let (program, division) = (self.frame.program, self.division);
        let folds = program.folds.len();
        let (sets, each) = if self.has_sets() { (LANES, self.frame.set_elements()) } else { (1, elements as usize) };
        self.clear(each * sets);
        if rows > 0 {
            division.reduced.seek(first, &program.slots, kept, self.line, self.line_index);
        }
        let steps = elements / program.geometry.row;
        let (mut left, mut set) = (rows, 0);
        while left > 0 {
            let ahead = if self.lines_are_planes { division.reduced.ahead(self.line_index) } else { 1 };
            let mut together = ahead.min(left);
            let mut accumulators = self.accumulators.as_slice();
            if set > 0 {
                // The sets up to the last one, without those before.
                together = together.min((sets - set) as i64);
                accumulators = &accumulators[set * folds..];
            }
            // SAFETY: promised by the caller; the accumulators have room for these elements.
            unsafe { self.frame.lines(self.line, together, first_step, steps, Folding::Elements(accumulators)) };
            set = (set + together as usize) % sets;
            left -= together;
            if left > 0 {
                division.reduced.skip(together, &program.slots, self.line, self.line_index);
            }
        }
    }

    /// Folds so many rows of columns, which are steps of lines, into the sets.
    ///
    /// # Safety
    /// As [`Folder::unit`].
    unsafe fn fold_columns(&mut self, kept: &[*mut u8], first: i64, count: i64) {
        let (program, division) = (self.frame.program, self.division);
        let (line, sets, folds) = (program.geometry.line, LANES as i64, program.folds.len());
        self.clear(LANES * self.frame.set_elements());
        if count == 0 {
            return;
        }
        let (line_number, mut step) = split(first, line);
        division.reduced.seek(line_number, &program.slots, kept, self.line, self.line_index);
        let (mut left, mut set) = (count, 0);
        while left > 0 {
            if step == line {
                division.reduced.next(&program.slots, self.line, self.line_index);
                step = 0;
            }
            let rows = left.min(line - step);
            // All sets several times, or those from the current one on.
            let (times, steps) = if set == 0 && rows >= sets { (rows / sets, sets) } else { (1, rows.min(sets - set)) };
            let accumulators = &self.accumulators[set as usize * folds..][..folds];
            // SAFETY: promised by the caller; the accumulators have room for the elements of these sets.
            unsafe { self.frame.lines(self.line, times, step, steps, Folding::Elements(accumulators)) };
            set = (set + steps) % sets;
            step += times * steps;
            left -= times * steps;
        }
    }

    /// Folds elements that are a part of a line, or lines, into lanes.
    ///
    /// # Safety
    /// As [`Folder::unit`].
    unsafe fn fold_run(&mut self, kept: &[*mut u8], first: i64, count: i64) {
        let (program, division) = (self.frame.program, self.division);
        let geometry = &program.geometry;
        self.clear(LANES);
        if count == 0 {
            return;
        }
        let line = geometry.line * geometry.row;
        let (line_number, first) = split(first, line);
        division.reduced.seek(line_number, &program.slots, kept, self.line, self.line_index);
        // Lines whose length is no multiple of the lanes begin in the middle of them.
        let (turn, mut turned) = ((line % LANES as i64) as usize, 0);
        let (first_step, steps) = (split(first, geometry.row).0, split(count.min(line), geometry.row).0);
        for row in 0..split(count, line).0.max(1) {
            if row > 0 {
                division.reduced.next(&program.slots, self.line, self.line_index);
                self.turn(LANES, turn);
                turned = (turned + turn) % LANES;
            }
            // SAFETY: promised by the caller.
            unsafe { self.frame.lines(self.line, 1, first_step, steps, Folding::Lanes(self.accumulators, ROW_SETS)) };
        }
        self.turn(LANES, (LANES - turned) % LANES);
    }

    /// Folds long rows, counted from `first` on, each into the next set of lanes, and the sets into the first one.
    ///
    /// # Safety
    /// As [`Folder::unit`].
    unsafe fn fold_rows(&mut self, kept: &[*mut u8], (first, count): (i64, i64), row: i64) {
        let (program, division) = (self.frame.program, self.division);
        let per_line = program.geometry.rows_of_line();
        if count == 1 {
            self.clear(LANES);
        } else {
            self.clear(LANES * ROW_SETS);
        }
        let (line_number, mut in_line) = split(first, per_line);
        division.reduced.seek(line_number, &program.slots, kept, self.line, self.line_index);
        let (mut left, mut turned) = (count, 0);
        while left > 0 {
            // As many as lie one stride apart: rows of one line, or lines.
            let ahead = match per_line {
                1 if self.lines_are_planes => division.reduced.ahead(self.line_index),
                1 => 1,
                _ => per_line - in_line,
            };
            let together = ahead.min(left);
            margin::fetch(program, self.line, together);
            // SAFETY: promised by the caller; programs with margins have lines of one row.
            unsafe {
                self.frame.lines(self.line, together, in_line * row, row, Folding::Lanes(self.accumulators, ROW_SETS));
                margin::copy(program, self.line, together);
            }
            (left, in_line) = (left - together, 0);
            if left > 0 {
                let lines = if per_line == 1 { together } else { 1 };
                division.reduced.skip(lines, &program.slots, self.line, self.line_index);
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

    /// Folds the sets of columns by halving into the first.
    fn join_columns(&mut self) {
        for (fold, &accumulator) in self.frame.program.folds.iter().zip(self.accumulators.iter()) {
            let mut sets = LANES;
            while sets > 1 {
                sets /= 2;
                let elements = sets * self.frame.set_elements();
                let upper = accumulator.wrapping_add(elements * fold.size);
                // SAFETY: the accumulators are as many sets.
                unsafe { (fold.combine)(elements, accumulator, accumulator, upper, upper) };
            }
        }
    }

    /// Folds the second set of so many elements into the first, the fourth into the third, and then that into the first.
    ///
    /// # Safety
    /// The accumulators must be as many sets.
    unsafe fn join_sets(&mut self, elements: usize) {
        for (fold, &accumulator) in self.frame.program.folds.iter().zip(self.accumulators.iter()) {
            let set = |number: usize| accumulator.wrapping_add(number * elements * fold.size);
            for (to, from) in [(0, 1), (2, 3), (0, 2)] {
                // SAFETY: promised by the caller.
                unsafe { (fold.combine)(elements, set(to), set(to), set(from), set(from)) };
            }
        }
    }
}

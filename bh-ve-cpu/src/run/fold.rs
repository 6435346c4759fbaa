//! Stages with folds. The tree is fixed by the folded view: its reduced elements are numbered in the order of its axes and
//! cut into chunks, each chunk is folded in order (element `i` into lane `i % 32` where lines are reduced, one by one where
//! they are kept), and the chunks' results are folded by halving. Neither which participant folds which chunk nor what
//! else the kernel does, which decides about merged dimensions and so about lines and blocks, has an influence.

use super::division::Division;
use super::frame::{Folding, Frame};
use super::scratch::{Aligned, Parts};
use super::{Binding, Workers};
use crate::primitives::{LANES, Primitives};
use crate::program::{Fold, Program};
use bh_core::Result;
use std::ops::Range;

/// # Safety
/// As [`super::run`].
pub(super) unsafe fn run(
    program: &Program,
    division: &Division,
    binding: &Binding,
    primitives: Primitives,
    workers: &mut Workers,
    partials: &mut Aligned,
) -> Result<()> {
    let units = division.units();
    if units == 0 || division.kept_elements == 0 {
        return Ok(());
    }
    let memory = partials.try_reserve(partial_bytes(program, division))?;
    let stored = Partials::new(division, memory);
    let participants = workers.participants(program.work());
    let tasks = if participants == 1 { 1 } else { units.min(participants as i64 * 8) };
    let per_task = (units + tasks - 1) / tasks;
    workers.run(participants, tasks as usize, |scratch, tasks| {
        let next = || {
            let task = tasks.take()? as i64;
            Some(task * per_task..((task + 1) * per_task).min(units))
        };
        // SAFETY: promised by the caller.
        unsafe { fold_units(program, division, binding, &binding.slots, primitives, scratch.parts(), stored, next) };
    });
    // SAFETY: all units have stored their partial results.
    unsafe { finish(program, binding, primitives, division, stored, workers.own().parts()) };
    Ok(())
}

/// Bytes of the chunks' results, if there are several chunks.
pub(super) fn partial_bytes(program: &Program, division: &Division) -> usize {
    if division.chunks == 1 {
        return 0;
    }
    let elements = (division.chunks * division.kept_elements) as usize;
    program.folds.iter().map(|fold| (elements * fold.size).next_multiple_of(64)).sum()
}

/// Where the chunks leave their results, if there are several: one part for each fold.
#[derive(Clone, Copy)]
pub(super) struct Partials {
    memory: *mut u8,
    elements: usize,
}

// SAFETY: every unit has its own part.
unsafe impl Send for Partials {}
// SAFETY: as above.
unsafe impl Sync for Partials {}

impl Partials {
    /// Lays the parts out in memory of [`partial_bytes`] bytes.
    pub(super) fn new(division: &Division, memory: *mut u8) -> Partials {
        let elements = if division.chunks == 1 { 0 } else { (division.chunks * division.kept_elements) as usize };
        Partials { memory, elements }
    }

    /// The part of a fold.
    fn of(self, program: &Program, fold: usize) -> Option<*mut u8> {
        let bytes = |fold: &Fold| (self.elements * fold.size).next_multiple_of(64);
        let before: usize = program.folds[..fold].iter().map(bytes).sum();
        (self.elements > 0).then(|| self.memory.wrapping_add(before))
    }
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
    let mut folder = Folder {
        frame: Frame::new(program, binding, primitives, parts, program.geometry.block()),
        division,
        accumulators,
        stored,
        line,
        line_index,
        primitives,
    };
    folder.reserve(lanes);
    let mut kept_at = -1;
    while let Some(units) = next() {
        for unit in units {
            let (kept_iteration, part, chunk) = division.unit(unit);
            if kept_iteration != kept_at {
                if kept_at >= 0 && kept_iteration == kept_at + 1 {
                    division.kept.next(&program.slots, kept, kept_index);
                } else {
                    division.kept.seek(kept_iteration, &program.slots, slots, kept, kept_index);
                }
                kept_at = kept_iteration;
            }
            // SAFETY: units are inside the nest.
            unsafe { folder.unit(kept, kept_iteration, part, chunk) };
        }
    }
    folder.frame.finish();
}

/// One participant folding units.
struct Folder<'a> {
    frame: Frame<'a>,
    division: &'a Division,
    /// Lanes, or a part of a line, for each fold.
    accumulators: &'a mut Vec<*mut u8>,
    stored: Partials,
    line: &'a mut Vec<*mut u8>,
    line_index: &'a mut Vec<i64>,
    primitives: Primitives,
}

impl Folder<'_> {
    fn reserve(&mut self, memory: &mut Aligned) {
        let row = self.frame.program.geometry.row;
        let elements = if self.division.line_reduced { LANES } else { (self.division.part_steps * row) as usize };
        let folds = &self.frame.program.folds;
        let bytes = |fold: &Fold| (elements * fold.size).next_multiple_of(64);
        let mut at = memory.reserve(folds.iter().map(bytes).sum());
        for fold in folds {
            self.accumulators.push(at);
            at = at.wrapping_add(bytes(fold));
        }
    }

    /// Makes lane `by` the first one.
    fn turn(&mut self, by: usize) {
        if by == 0 {
            return;
        }
        for (fold, &lanes) in self.frame.program.folds.iter().zip(self.accumulators.iter()) {
            // SAFETY: where lanes are turned, each accumulator is that of all lanes.
            unsafe { std::slice::from_raw_parts_mut(lanes, LANES * fold.size) }.rotate_left(by * fold.size);
        }
    }

    /// # Safety
    /// The unit must be inside the nest, and `kept` its position.
    unsafe fn unit(&mut self, kept: &[*mut u8], kept_iteration: i64, part: i64, chunk: i64) {
        let (program, division) = (self.frame.program, self.division);
        let geometry = &program.geometry;
        // Which steps of which lines.
        let line = geometry.line * geometry.row;
        let (first_row, rows, first_step, steps) = if !division.line_reduced {
            let first_step = part * division.part_steps;
            (chunk * division.rows, division.rows, first_step, division.part_steps.min(geometry.line - first_step))
        } else {
            let (first, count) = division.cut.chunk(chunk);
            let first_step = if line > 0 { first % line / geometry.row } else { 0 };
            (first / line.max(1), count / line.max(1), first_step, count.min(line) / geometry.row)
        };
        let partial = division.line_reduced && steps > 0 && steps < geometry.line;
        let rows = if partial { 1 } else { rows.min(division.reduced.count() - first_row) };
        // Lines whose length is no multiple of the lanes begin in the middle of them.
        let turn = if division.line_reduced { (line % LANES as i64) as usize } else { 0 };
        let mut turned = 0;
        let elements = if division.line_reduced { LANES } else { (steps * geometry.row) as usize };
        // SAFETY: the accumulators have room for these elements, and positions stay inside the nest.
        unsafe {
            for (fold, &accumulator) in program.folds.iter().zip(self.accumulators.iter()) {
                self.primitives.fill(fold.size)(elements, accumulator, fold.neutral.as_ptr());
            }
            if rows > 0 {
                division.reduced.seek(first_row, &program.slots, kept, self.line, self.line_index);
            }
            for row in 0..rows {
                if row > 0 {
                    division.reduced.next(&program.slots, self.line, self.line_index);
                    self.turn(turn);
                    turned = (turned + turn) % LANES;
                }
                let folding = if division.line_reduced {
                    Folding::Lanes(self.accumulators)
                } else {
                    Folding::Elements(self.accumulators)
                };
                self.frame.lines(self.line, 1, first_step, steps, folding);
            }
            self.turn((LANES - turned) % LANES);
            for (index, fold) in program.folds.iter().enumerate() {
                let accumulator = self.accumulators[index];
                if division.line_reduced {
                    (fold.join)(accumulator, accumulator);
                }
                let count = if division.line_reduced { 1 } else { elements };
                match self.stored.of(program, index) {
                    Some(stored) => {
                        let at = chunk * division.kept_elements
                            + kept_iteration * division.line_elements
                            + if division.line_reduced { 0 } else { first_step * geometry.row };
                        let to = stored.wrapping_add(at as usize * fold.size);
                        std::ptr::copy_nonoverlapping(accumulator, to, count * fold.size);
                    }
                    None => write(program, fold, self.primitives, kept[fold.slot], first_step, count, accumulator),
                }
            }
        }
    }
}

/// Writes `count` results of a line, from step `first_step` on, to where the reduction's output has them.
///
/// # Safety
/// `position` must be the output's position at the line.
unsafe fn write(
    program: &Program,
    fold: &Fold,
    primitives: Primitives,
    position: *mut u8,
    first_step: i64,
    count: usize,
    results: *const u8,
) {
    let geometry = &program.geometry;
    let strides = &program.slots[fold.slot].strides;
    let line = strides[geometry.line_dim];
    let position = position.wrapping_offset(first_step as isize * line);
    let scatter = primitives.scatter_strided(fold.size);
    // SAFETY: promised by the caller.
    unsafe {
        if count == 1 {
            std::ptr::copy_nonoverlapping(results, position, fold.size);
        } else if !geometry.spans() {
            scatter(count, position, results, line);
        } else {
            let row = geometry.row as usize;
            for step in 0..count / row {
                let to = position.wrapping_offset(step as isize * line);
                scatter(row, to, results.wrapping_add(step * row * fold.size), strides[geometry.line_dim + 1]);
            }
        }
    }
}

/// Folds the chunks' partial results by halving, and writes the results.
///
/// # Safety
/// All partial results must be there.
pub(super) unsafe fn finish(
    program: &Program,
    binding: &Binding,
    primitives: Primitives,
    division: &Division,
    stored: Partials,
    scratch: Parts<'_>,
) {
    if division.chunks == 1 {
        return;
    }
    let kept = division.kept_elements as usize;
    let Parts { positions: [positions, _], indices: [indices, _], .. } = scratch;
    positions.resize(program.slots.len(), std::ptr::null_mut());
    for (number, fold) in program.folds.iter().enumerate() {
        let Some(stored) = stored.of(program, number) else { continue };
        let mut left = division.chunks as usize;
        while left > 1 {
            let half = left.div_ceil(2);
            let upper = stored.wrapping_add(half * kept * fold.size);
            // SAFETY: both halves are inside the partial results and disjoint.
            unsafe { (fold.combine)((left - half) * kept, stored, stored, upper, upper) };
            left = half;
        }
        let line = division.line_elements as usize;
        division.kept.seek(0, &program.slots, &binding.slots, positions, indices);
        for iteration in 0..division.kept.count() as usize {
            let results = stored.wrapping_add(iteration * line * fold.size);
            // SAFETY: the position is the output's at this iteration.
            unsafe { write(program, fold, primitives, positions[fold.slot], 0, line, results) };
            division.kept.next(&program.slots, positions, indices);
        }
    }
}

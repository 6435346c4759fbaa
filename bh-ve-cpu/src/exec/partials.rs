//! The results of a fold's chunks, and the end of its tree: these results are folded by halving.

use super::queue::part;
use super::scratch::NestScratch;
use super::workers::Workers;
use crate::block::{Bound, Fold, Program};
use crate::primitives::Primitives;
use bh_kernel::schedule::{FoldLoops, Schedule, halvings};
use std::ops::Range;

/// Units of work for each partial result: it is read from memory that another participant wrote.
const COST: u64 = 8;
/// Kept elements whose partial results one task folds, at least.
const COLUMN: i64 = 512;
/// Partial results that second-level caches hold.
const HALVED: i64 = 1 << 15;

/// Bytes of the results of the chunks of a program's folds, if there are several chunks.
pub(super) fn partial_bytes(program: &Program) -> usize {
    match &program.schedule {
        Schedule::Fold(loops) => program.folds.iter().map(|fold| part_bytes(elements(loops), fold)).sum(),
        Schedule::Map(_) => 0,
    }
}

/// How many results the chunks leave; 0 if there is one chunk.
fn elements(loops: &FoldLoops) -> usize {
    if loops.chunks.count == 1 { 0 } else { (loops.chunks.count * loops.kept_elements()) as usize }
}

fn part_bytes(elements: usize, fold: &Fold) -> usize {
    (elements * fold.size).next_multiple_of(64)
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
    pub(super) fn new(loops: &FoldLoops, memory: *mut u8) -> Partials {
        Partials { memory, elements: elements(loops) }
    }

    /// The part of a fold.
    pub(super) fn of(self, program: &Program, fold: usize) -> Option<*mut u8> {
        let before: usize = program.folds[..fold].iter().map(|fold| part_bytes(self.elements, fold)).sum();
        (self.elements > 0).then(|| self.memory.wrapping_add(before))
    }
}

/// Writes `count` results of a line, from step `first_step` on, to where the reduction's output has them.
///
/// # Safety
/// `position` must be the output's position at the line, `results` be `count` elements of the fold's type, and the
/// output have as many, for nobody else, from `first_step` on.
pub(super) unsafe fn write(
    program: &Program,
    fold: &Fold,
    primitives: Primitives,
    position: *mut u8,
    first_step: i64,
    count: usize,
    results: *const u8,
) {
    let lines = program.schedule.lines();
    let strides = &program.slots[fold.slot].strides;
    let line = strides[lines.dim];
    let position = position.wrapping_offset(first_step as isize * line);
    let scatter = primitives.scatter_strided(fold.size);
    // SAFETY: `position` is the output's at the line, which has `count` elements from this step on.
    unsafe {
        match lines.row_dim() {
            _ if count == 1 => std::ptr::copy_nonoverlapping(results, position, fold.size),
            None => scatter(count, position, results, line),
            Some(row_dim) => {
                let row = lines.row as usize;
                for step in 0..count / row {
                    let to = position.wrapping_offset(step as isize * line);
                    scatter(row, to, results.wrapping_add(step * row * fold.size), strides[row_dim]);
                }
            }
        }
    }
}

/// Folds the chunks' partial results by halving, and writes the results.
///
/// # Safety
/// All units must have stored their partial results, which nobody else uses meanwhile.
pub(super) unsafe fn finish(bound: Bound<'_>, loops: &FoldLoops, stored: Partials, workers: &mut Workers) {
    if loops.chunks.count == 1 {
        return;
    }
    let (program, kept) = (bound.program, loops.kept_elements());
    let work = (stored.elements * program.folds.len()) as u64 * COST;
    let participants = workers.participants(work);
    let columns = workers.tasks(participants, work, (kept / COLUMN).max(1));
    workers.run(participants, columns as usize, |_, tasks| {
        while let Some(task) = tasks.take() {
            // SAFETY: all partial results are there, and the columns are disjoint.
            unsafe { halve(program, loops, stored, part(kept, columns, task as i64)) };
        }
    });
    let (slots, scratch, all) = (&bound.binding.slots, &mut workers.own().nest, 0..loops.kept.count());
    // SAFETY: the partial results are folded.
    unsafe { write_kept(bound, loops, slots, stored, scratch, all) };
}

/// [`finish`] for the results of some kept iterations, on one participant, with slots that begin at `slots`.
///
/// # Safety
/// All partial results of these iterations must be there, and nobody else may finish them.
pub(super) unsafe fn finish_kept(
    bound: Bound<'_>,
    loops: &FoldLoops,
    slots: &[*mut u8],
    stored: Partials,
    scratch: &mut NestScratch,
    iterations: Range<i64>,
) {
    if loops.chunks.count == 1 {
        return;
    }
    let elements = iterations.start * loops.line_elements()..iterations.end * loops.line_elements();
    // SAFETY: all partial results of these iterations are there, and nobody else finishes them.
    unsafe {
        halve(bound.program, loops, stored, elements);
        write_kept(bound, loops, slots, stored, scratch, iterations);
    }
}

/// Writes the results of some kept iterations, which are those of the first chunk now.
///
/// # Safety
/// As [`finish_kept`].
unsafe fn write_kept(
    Bound { program, primitives, .. }: Bound<'_>,
    loops: &FoldLoops,
    slots: &[*mut u8],
    stored: Partials,
    scratch: &mut NestScratch,
    iterations: Range<i64>,
) {
    let ([positions, _], [indices, _]) = (&mut scratch.positions, &mut scratch.indices);
    positions.resize(program.slots.len(), std::ptr::null_mut());
    for (number, fold) in program.folds.iter().enumerate() {
        let Some(stored) = stored.of(program, number) else { continue };
        let line = loops.line_elements() as usize;
        loops.kept.seek(iterations.start, &program.slots, slots, positions, indices);
        for iteration in iterations.clone() {
            let results = stored.wrapping_add(iteration as usize * line * fold.size);
            // SAFETY: the position is the output's at this iteration.
            unsafe { write(program, fold, primitives, positions[fold.slot], 0, line, results) };
            loops.kept.next(&program.slots, positions, indices);
        }
    }
}

/// Folds the partial results of some kept elements by halving, into those of the first chunk: as many elements as the caches
/// hold, before the next ones.
///
/// # Safety
/// As [`finish`]; nobody else folds those of these elements.
unsafe fn halve(program: &Program, loops: &FoldLoops, stored: Partials, elements: Range<i64>) {
    let each = (HALVED / loops.chunks.count).max(COLUMN);
    let mut first = elements.start;
    while first < elements.end {
        let end = elements.end.min(first + each);
        // SAFETY: these elements' partial results are there, and nobody else folds them.
        unsafe { halve_block(program, loops, stored, first..end) };
        first = end;
    }
}

/// [`halve`] for a few elements.
///
/// # Safety
/// As [`halve`].
unsafe fn halve_block(program: &Program, loops: &FoldLoops, stored: Partials, elements: Range<i64>) {
    let (kept, first) = (loops.kept_elements() as usize, elements.start as usize);
    let count = (elements.end - elements.start) as usize;
    for (number, fold) in program.folds.iter().enumerate() {
        let Some(stored) = stored.of(program, number) else { continue };
        let of = |chunk: usize| stored.wrapping_add((chunk * kept + first) * fold.size);
        for (pairs, half) in halvings(loops.chunks.count) {
            let (pairs, half) = (pairs as usize, half as usize);
            // Whole chunks follow each other.
            let (chunks, together) = if count == kept { (1, pairs * kept) } else { (pairs, count) };
            for chunk in 0..chunks {
                let (to, from) = (of(chunk), of(half + chunk));
                // SAFETY: both halves are inside the partial results and disjoint.
                unsafe { (fold.combine)(together, to, to, from, from) };
            }
        }
    }
}

//! Running a sliding window: parts of it at the same time, each strip by strip through all nests; then the gaps between parts.

use super::partials::{self, Partials};
use super::scratch::Scratch;
use super::workers::Workers;
use super::{map, reduction};
use crate::block::{Aligned, Binding, Bound};
use crate::plan::{LineBuffer, WindowNest, WindowPlan, WindowTurn};
use crate::primitives::Primitives;
use bh_core::Result;
use bh_kernel::schedule::{FoldLoops, Schedule};
use std::ops::Range;

/// Parts of the window for each participant, where parts have gaps between them. More parts share the work better, as a late
/// participant takes fewer of them, but rows of gaps come from memory again.
const PARTS: usize = 4;

/// What all participants know.
struct Window<'a> {
    plan: &'a WindowPlan,
    /// Into how many parts, of one or several chunks each, it is cut. Each position runs once, whoever runs it.
    parts: usize,
    bindings: &'a [Binding],
    primitives: Primitives,
    /// Where the chunks of folds leave their results, for one nest after the other.
    partials: *mut u8,
    /// The rows that gaps need, for one border after the other.
    gaps: *mut u8,
}

// SAFETY: participants write different rows of the gaps' memory, and results of different chunks.
unsafe impl Sync for Window<'_> {}

/// Runs the nests of a sliding window.
///
/// # Safety
/// The bindings, those of the nests and then of the joined ones, must give valid memory, as for [`Bound::new`], for
/// every slot that is no line buffer, and place those as if their array's first row were at address 0.
pub(crate) unsafe fn run_window(
    plan: &WindowPlan,
    bindings: &[Binding],
    primitives: Primitives,
    workers: &mut Workers,
    partials: &mut Aligned,
    gaps: &mut Aligned,
) -> Result<()> {
    let bytes = |nest: &WindowNest| partials::partial_bytes(&nest.program);
    // What runs after the window finds enough memory as well, as failures come before anything is written or not at all.
    let after = plan.after.iter().map(|(program, _)| partials::partial_bytes(program)).max().unwrap_or(0);
    let partials = partials.try_reserve(after.max(plan.nests.iter().map(bytes).sum()))?;
    let work: u64 = plan.nests.iter().map(|nest| nest.program.work()).sum();
    let participants = workers.participants(work);
    let (chunks, lag) = (plan.chain.borders.len() - 1, plan.nests.iter().any(|nest| nest.late != nest.early));
    let parts = match participants {
        1 => 1,
        _ if lag => chunks.min(participants * PARTS),
        _ => chunks,
    };
    let gaps = gaps.try_reserve(plan.gap_bytes * (parts - 1))?;
    let window = Window { plan, parts, bindings, primitives, partials, gaps };
    workers.run(participants, parts, |scratch, tasks| {
        while let Some(part) = tasks.take() {
            // SAFETY: every part is run once.
            unsafe { window.part(scratch, part) };
        }
    });
    if parts > 1 && lag {
        workers.run(participants, parts - 1, |scratch, tasks| {
            while let Some(border) = tasks.take() {
                // SAFETY: every gap is run once, and all parts have run.
                unsafe { window.gap(scratch, border) };
            }
        });
    }
    for (index, (nest, binding)) in plan.nests.iter().zip(bindings).enumerate() {
        // What is folded of single positions is complete.
        if let Schedule::Fold(loops) = &nest.program.schedule
            && loops.folds_outermost()
        {
            let stored = window.stored(index, loops);
            // SAFETY: all units have stored their partial results.
            unsafe {
                let bound = Bound::new(&nest.program, binding, primitives);
                partials::finish(bound, loops, stored, workers);
            }
        }
    }
    Ok(())
}

/// Where the line buffers' rows are: at `memory`, beginning with rows that depend on the time.
#[derive(Clone, Copy)]
struct BufferRows {
    memory: *mut u8,
    time: i64,
    /// Is it the memory of a gap?
    gap: bool,
}

impl BufferRows {
    /// The rows of the buffer's ring, if it is one here.
    fn ring(self, buffer: &LineBuffer) -> Option<i64> {
        buffer.ring.filter(|_| !self.gap)
    }

    /// The address of a row of a buffer.
    fn row(self, buffer: &LineBuffer, row: i64) -> *mut u8 {
        if let Some(height) = self.ring(buffer) {
            let at = row.rem_euclid(height) as isize * buffer.pitch;
            return self.memory.wrapping_add(buffer.offset).wrapping_offset(at);
        }
        let (offset, first) = if self.gap { (buffer.gap_offset, buffer.gap.0) } else { (buffer.offset, buffer.first) };
        let rows = (row - self.time - first) as isize;
        self.memory.wrapping_add(offset).wrapping_offset(rows.wrapping_mul(buffer.pitch))
    }
}

impl Window<'_> {
    /// Where a nest's folds leave the results of their chunks.
    fn stored(&self, index: usize, loops: &FoldLoops) -> Partials {
        let before: usize = self.plan.nests[..index].iter().map(|nest| partials::partial_bytes(&nest.program)).sum();
        Partials::new(loops, self.partials.wrapping_add(before))
    }

    /// Where a part begins, and the one before it ends.
    fn border(&self, part: usize) -> i64 {
        let borders = &self.plan.chain.borders;
        borders[(borders.len() - 1) * part / self.parts]
    }

    /// The memory for the gap behind a part, which is counted from the next one's begin.
    fn gap_rows(&self, part: usize) -> BufferRows {
        let memory = self.gaps.wrapping_add(part * self.plan.gap_bytes);
        BufferRows { memory, time: self.border(part + 1), gap: true }
    }

    /// The times, counted from a border, in which rows are written that the gap there needs.
    fn near_borders(&self) -> Range<i64> {
        let writes = self.plan.nests.iter().flat_map(|nest| nest.writes.iter().map(move |write| (nest.late, write)));
        writes.fold(0..0, |near, (late, &(buffer, row))| {
            // At a time, a nest is at the position `late` before it.
            let (gap, behind) = (self.plan.buffers[buffer].gap, late - row);
            near.start.min(gap.0 + behind)..near.end.max(gap.1 + behind)
        })
    }

    /// Runs what a part can do without its neighbours.
    ///
    /// # Safety
    /// Nobody else runs the part, and no gap has begun.
    unsafe fn part(&self, scratch: &mut Scratch, part: usize) {
        let plan = self.plan;
        let (begin, end) = (self.border(part), self.border(part + 1));
        let last = part + 1 == self.parts;
        let memory = scratch.rows.reserve(plan.buffer_bytes);
        let near = self.near_borders();
        let mut time = begin;
        while time < end {
            let next = (time + plan.chain.strip).min(end);
            let rows = BufferRows { memory, time, gap: false };
            let positions =
                |nest: &WindowNest| strip(nest, time..next, (part > 0).then_some(begin), (!last).then_some(end));
            for turn in &plan.turns {
                // SAFETY: all that these positions depend on has run; parts have nothing to do with each other.
                unsafe { self.turn(scratch, turn, rows, positions) };
            }
            let beside = part > 0 && time < begin + near.end || !last && next > end + near.start;
            for nest in plan.nests.iter().filter(|_| beside) {
                let positions = positions(nest);
                for &(buffer, row) in &nest.writes {
                    let buffer = &plan.buffers[buffer];
                    let written = positions.start + row..positions.end + row;
                    // SAFETY: the rows of a gap that this part has written are no other part's.
                    unsafe {
                        if part > 0 {
                            copy(buffer, rows, self.gap_rows(part - 1), &written);
                        }
                        if !last {
                            copy(buffer, rows, self.gap_rows(part), &written);
                        }
                    }
                }
            }
            if next < end {
                for buffer in plan.buffers.iter().filter(|buffer| buffer.ring.is_none()) {
                    let kept = (buffer.end - buffer.first).max(0);
                    let to = rows.row(buffer, time + buffer.first);
                    let from = rows.row(buffer, next + buffer.first);
                    // SAFETY: the buffer has the strip's rows and these.
                    unsafe { std::ptr::copy(from, to, kept as usize * buffer.pitch as usize) };
                }
            }
            time = next;
        }
    }

    /// Runs what a strip does at once: nests as one where each has as many positions, those that belong together, or else
    /// one after the other.
    ///
    /// # Safety
    /// As [`Window::positions`].
    unsafe fn turn(
        &self,
        scratch: &mut Scratch,
        turn: &WindowTurn,
        rows: BufferRows,
        positions: impl Fn(&WindowNest) -> Range<i64>,
    ) {
        let nest = |&number: &u32| &self.plan.nests[number as usize];
        if let Some(number) = turn.joined {
            let joined = &self.plan.joined[number];
            let own = positions(nest(&turn.nests[0]));
            let begins_with = |other: &WindowNest| {
                let (positions, apart) = (positions(other), other.late - joined.late);
                positions.start + apart == own.start && positions.end + apart == own.end
            };
            let compiled = |nest: &WindowNest| nest.program.is_compiled();
            let fastest = compiled(joined)
                || joined.program.schedule.lines().row_dim().is_none() && !turn.nests.iter().map(nest).any(compiled);
            if fastest && turn.nests.iter().map(nest).all(begins_with) {
                // SAFETY: the turn comes after all that it depends on, and is this participant's.
                unsafe { self.positions(scratch, self.plan.nests.len() + number, rows, own) };
                return;
            }
        }
        for number in &turn.nests {
            // SAFETY: the turn comes after all that it depends on, and is this participant's.
            unsafe { self.positions(scratch, *number as usize, rows, positions(nest(number))) };
        }
    }

    /// The nests, and behind them those that do what several of them do.
    fn nest(&self, index: usize) -> &WindowNest {
        let nests = &self.plan.nests;
        nests.get(index).unwrap_or_else(|| &self.plan.joined[index - nests.len()])
    }

    /// Runs what lies between two parts.
    ///
    /// # Safety
    /// Nobody else runs the gap, and all parts have run.
    unsafe fn gap(&self, scratch: &mut Scratch, border: usize) {
        let rows = self.gap_rows(border);
        for (index, nest) in self.plan.nests.iter().enumerate() {
            let at = |time: i64| time.clamp(0, nest.steps.positions);
            let positions = at(rows.time - nest.late)..at(rows.time - nest.early);
            // SAFETY: all parts have run, and nobody else runs the gap.
            unsafe { self.positions(scratch, index, rows, positions) };
        }
    }

    /// Runs some positions of a nest.
    ///
    /// # Safety
    /// All that they depend on must have run, and nobody else runs them.
    unsafe fn positions(&self, scratch: &mut Scratch, index: usize, rows: BufferRows, positions: Range<i64>) {
        let nest = self.nest(index);
        let mut start = positions.start;
        while start < positions.end {
            // Until the end of the first ring; a single position is never beyond one.
            if positions.end - start == 1 {
                // SAFETY: all that the positions depend on has run, and nobody else runs them.
                unsafe { self.consecutive(scratch, index, rows, start..positions.end) };
                return;
            }
            let rings = nest.buffers.iter().zip(&nest.rows).filter_map(|(buffer, row)| {
                let height = rows.ring(&self.plan.buffers[(*buffer)?])?;
                Some(height - (start + row).rem_euclid(height))
            });
            let end = rings.min().map_or(positions.end, |room| positions.end.min(start + room));
            // SAFETY: all that the positions depend on has run, and nobody else runs them.
            unsafe { self.consecutive(scratch, index, rows, start..end) };
            start = end;
        }
    }

    /// Runs some positions of a nest for which the rows of each slot follow each other in memory.
    ///
    /// # Safety
    /// As [`Window::positions`].
    unsafe fn consecutive(&self, scratch: &mut Scratch, index: usize, rows: BufferRows, positions: Range<i64>) {
        let (nest, binding) = (self.nest(index), &self.bindings[index]);
        let first = positions.start;
        let iterations = nest.steps.iterations(positions, nest.program.schedule.extent(0));
        if iterations.is_empty() {
            return;
        }
        let mut slots = std::mem::take(&mut scratch.slots);
        slots.clear();
        let places = nest.buffers.iter().zip(&nest.rows);
        slots.extend(binding.slots.iter().zip(places).map(|(&slot, (&buffer, &row))| match buffer {
            // The slot is placed as if the array's first row were at address 0.
            Some(buffer) => {
                let (buffer, row) = (&self.plan.buffers[buffer], first + row);
                let origin =
                    rows.row(buffer, row).wrapping_offset((row as isize).wrapping_mul(buffer.pitch).wrapping_neg());
                origin.wrapping_add(slot.addr())
            }
            None => slot,
        }));
        let (program, parts) = (&nest.program, &mut scratch.nest);
        // SAFETY: all that the rows depend on has run; line buffers begin at these slots.
        unsafe {
            let bound = Bound::new(program, binding, self.primitives);
            match &program.schedule {
                Schedule::Map(map) => map::run_part(bound, map, &slots, parts, iterations),
                Schedule::Fold(loops) => {
                    let mut units = Some(loops.units_of(iterations.clone()));
                    let (stored, next) = (self.stored(index, loops), || units.take());
                    reduction::fold_units(bound, loops, &slots, parts, stored, next);
                    if !loops.folds_outermost() {
                        let kept = loops.kept_of(iterations);
                        partials::finish_kept(bound, loops, &slots, stored, parts, kept);
                    }
                }
            }
        }
        scratch.slots = slots;
    }
}

/// The positions of a nest in a strip of a part with a neighbour before it from `begin` on and one behind it from `end`
/// on.
fn strip(nest: &WindowNest, times: Range<i64>, begin: Option<i64>, end: Option<i64>) -> Range<i64> {
    let low = begin.map_or(0, |begin| (begin - nest.early).max(0));
    let high = end.map_or(nest.steps.positions, |end| (end - nest.late).min(nest.steps.positions));
    let start = (times.start - nest.late).max(low);
    start..(times.end - nest.late).min(high).max(start)
}

/// Copies those of the rows that a gap needs.
///
/// # Safety
/// The rows must be in the part's memory at `from` and in the gap's at `to`, where nobody else uses them.
unsafe fn copy(buffer: &LineBuffer, from: BufferRows, to: BufferRows, rows: &Range<i64>) {
    let first = rows.start.max(to.time + buffer.gap.0);
    let end = rows.end.min(to.time + buffer.gap.1);
    for row in first..end {
        // SAFETY: the rows are in the part's memory, and nobody else uses those of the gap.
        unsafe { std::ptr::copy_nonoverlapping(from.row(buffer, row), to.row(buffer, row), buffer.pitch as usize) };
    }
}

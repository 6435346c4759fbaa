//! Running a sweep: parts of it at the same time, each strip by strip through all nests; then the gaps between parts.

use super::division::Division;
use super::fold;
use super::partials::{self, Partials};
use super::scratch::{Aligned, Scratch};
use super::{Binding, Loops, Workers, map};
use crate::primitives::Primitives;
use crate::sweep::{NestPlan, RollingArray, SweepPlan, TurnPlan};
use bh_core::Result;
use bh_fuser::lower::Dim;
use std::ops::Range;

/// So many parts of the sweep are there for each participant, where parts have gaps between them: rows of gaps come from
/// memory again, and who is late with a part leaves further ones to the others.
const PARTS: usize = 4;

/// What all participants know.
struct Sweep<'a> {
    plan: &'a SweepPlan,
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
unsafe impl Sync for Sweep<'_> {}

/// Runs the nests of a sweep.
///
/// # Safety
/// The bindings, those of the nests and then of the joined ones, must give valid memory for every slot that is not
/// rolling, and place those as if their array's first row were at address 0.
pub(crate) unsafe fn run_sweep(
    plan: &SweepPlan,
    bindings: &[Binding],
    primitives: Primitives,
    workers: &mut Workers,
    partials: &mut Aligned,
    gaps: &mut Aligned,
) -> Result<()> {
    let bytes = |nest: &NestPlan| super::partial_bytes(&nest.program);
    // What runs after the sweep finds enough memory as well, as failures come before anything is written or not at all.
    let after = plan.after.iter().map(|(program, _)| super::partial_bytes(program)).max().unwrap_or(0);
    let partials = partials.try_reserve(after.max(plan.nests.iter().map(bytes).sum()))?;
    let work: u64 = plan.nests.iter().map(NestPlan::work).sum();
    let participants = workers.participants(work);
    let (chunks, lag) = (plan.borders.len() - 1, plan.nests.iter().any(|nest| nest.late != nest.early));
    let parts = match participants {
        1 => 1,
        _ if lag => chunks.min(participants * PARTS),
        _ => chunks,
    };
    let gaps = gaps.try_reserve(plan.gap_bytes * (parts - 1))?;
    let sweep = Sweep { plan, parts, bindings, primitives, partials, gaps };
    workers.run(participants, parts, |scratch, tasks| {
        while let Some(part) = tasks.take() {
            // SAFETY: every part is run once.
            unsafe { sweep.part(scratch, part) };
        }
    });
    if parts > 1 && lag {
        workers.run(participants, parts - 1, |scratch, tasks| {
            while let Some(border) = tasks.take() {
                // SAFETY: every gap is run once, and all parts have run.
                unsafe { sweep.gap(scratch, border) };
            }
        });
    }
    for (index, (nest, binding)) in plan.nests.iter().zip(bindings).enumerate() {
        // What is folded of single positions is complete.
        if let Loops::Fold(division) = &nest.program.loops
            && nest.program.geometry.dims[0] == Dim::Reduced
        {
            let stored = sweep.stored(index, division);
            // SAFETY: all units have stored their partial results.
            unsafe { partials::finish(&nest.program, binding, primitives, division, stored, workers) };
        }
    }
    Ok(())
}

/// Where the rolling arrays' rows are: at `memory`, beginning with rows that depend on the time.
#[derive(Clone, Copy)]
struct Rows {
    memory: *mut u8,
    time: i64,
    /// Is it the memory of a gap?
    gap: bool,
}

impl Rows {
    /// The rows of the array's ring, if it is one here.
    fn ring(self, array: &RollingArray) -> Option<i64> {
        array.ring.filter(|_| !self.gap)
    }

    /// The address of a row of an array.
    fn row(self, array: &RollingArray, row: i64) -> *mut u8 {
        if let Some(height) = self.ring(array) {
            let at = row.rem_euclid(height) as isize * array.pitch;
            return self.memory.wrapping_add(array.offset).wrapping_offset(at);
        }
        let (offset, first) = if self.gap { (array.gap_offset, array.gap.0) } else { (array.offset, array.first) };
        let rows = (row - self.time - first) as isize;
        self.memory.wrapping_add(offset).wrapping_offset(rows.wrapping_mul(array.pitch))
    }
}

impl Sweep<'_> {
    /// Where a nest's folds leave the results of their chunks.
    fn stored(&self, index: usize, division: &Division) -> Partials {
        let before: usize = self.plan.nests[..index].iter().map(|nest| super::partial_bytes(&nest.program)).sum();
        Partials::new(division, self.partials.wrapping_add(before))
    }

    /// Where a part begins, and the one before it ends.
    fn border(&self, part: usize) -> i64 {
        let borders = &self.plan.borders;
        borders[(borders.len() - 1) * part / self.parts]
    }

    /// The memory for the gap behind a part, which is counted from the next one's begin.
    fn gap_rows(&self, part: usize) -> Rows {
        let memory = self.gaps.wrapping_add(part * self.plan.gap_bytes);
        Rows { memory, time: self.border(part + 1), gap: true }
    }

    /// The times, counted from a border, in which rows are written that the gap there needs.
    fn near_borders(&self) -> Range<i64> {
        let writes = self.plan.nests.iter().flat_map(|nest| nest.writes.iter().map(move |write| (nest.late, write)));
        writes.fold(0..0, |near, (late, &(array, row))| {
            // At a time, a nest is at the position `late` before it.
            let (gap, behind) = (self.plan.rolling[array].gap, late - row);
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
        let memory = scratch.rows.reserve(plan.rolling_bytes);
        let near = self.near_borders();
        let mut time = begin;
        while time < end {
            let next = (time + plan.strip).min(end);
            let rows = Rows { memory, time, gap: false };
            let positions =
                |nest: &NestPlan| strip(nest, time..next, (part > 0).then_some(begin), (!last).then_some(end));
            for turn in &plan.turns {
                // SAFETY: all that these positions depend on has run; parts have nothing to do with each other.
                unsafe { self.turn(scratch, turn, rows, positions) };
            }
            let beside = part > 0 && time < begin + near.end || !last && next > end + near.start;
            for nest in plan.nests.iter().filter(|_| beside) {
                let positions = positions(nest);
                for &(array, row) in &nest.writes {
                    let array = &plan.rolling[array];
                    let written = positions.start + row..positions.end + row;
                    // SAFETY: the rows of a gap that this part has written are no other part's.
                    unsafe {
                        if part > 0 {
                            copy(array, rows, self.gap_rows(part - 1), &written);
                        }
                        if !last {
                            copy(array, rows, self.gap_rows(part), &written);
                        }
                    }
                }
            }
            if next < end {
                for array in plan.rolling.iter().filter(|array| array.ring.is_none()) {
                    let kept = (array.end - array.first).max(0);
                    let to = rows.row(array, time + array.first);
                    let from = rows.row(array, next + array.first);
                    // SAFETY: the buffer has the strip's rows and these.
                    unsafe { std::ptr::copy(from, to, kept as usize * array.pitch as usize) };
                }
            }
            time = next;
        }
    }

    /// Runs what a strip does at once: nests as one where each has as many positions, those that belong together, or else
    /// one after the other.
    ///
    /// # Safety
    /// As [`Sweep::positions`].
    unsafe fn turn(
        &self,
        scratch: &mut Scratch,
        turn: &TurnPlan,
        rows: Rows,
        positions: impl Fn(&NestPlan) -> Range<i64>,
    ) {
        let nest = |&number: &u32| &self.plan.nests[number as usize];
        if let Some(number) = turn.joined {
            let joined = &self.plan.joined[number];
            let own = positions(nest(&turn.nests[0]));
            let begins_with = |other: &NestPlan| {
                let (positions, apart) = (positions(other), other.late - joined.late);
                positions.start + apart == own.start && positions.end + apart == own.end
            };
            let compiled = |nest: &NestPlan| nest.program.native.as_ref().is_some_and(|it| it.kernel.code().is_some());
            let fastest =
                compiled(joined) || !(joined.program.geometry.spans() || turn.nests.iter().map(nest).any(compiled));
            if fastest && turn.nests.iter().map(nest).all(begins_with) {
                // SAFETY: promised by the caller.
                unsafe { self.positions(scratch, self.plan.nests.len() + number, rows, own) };
                return;
            }
        }
        for number in &turn.nests {
            // SAFETY: promised by the caller.
            unsafe { self.positions(scratch, *number as usize, rows, positions(nest(number))) };
        }
    }

    /// The nests, and behind them those that do what several of them do.
    fn nest(&self, index: usize) -> &NestPlan {
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
            let at = |time: i64| time.clamp(0, nest.positions);
            let positions = at(rows.time - nest.late)..at(rows.time - nest.early);
            // SAFETY: promised by the caller.
            unsafe { self.positions(scratch, index, rows, positions) };
        }
    }

    /// Runs some positions of a nest.
    ///
    /// # Safety
    /// All that they depend on must have run, and nobody else runs them.
    unsafe fn positions(&self, scratch: &mut Scratch, index: usize, rows: Rows, positions: Range<i64>) {
        let nest = self.nest(index);
        let mut start = positions.start;
        while start < positions.end {
            // Until the end of the first ring; a single position is never beyond one.
            if positions.end - start == 1 {
                // SAFETY: promised by the caller.
                unsafe { self.consecutive(scratch, index, rows, start..positions.end) };
                return;
            }
            let rings = nest.rolling.iter().zip(&nest.rows).filter_map(|(rolling, row)| {
                let height = rows.ring(&self.plan.rolling[(*rolling)?])?;
                Some(height - (start + row).rem_euclid(height))
            });
            let end = rings.min().map_or(positions.end, |room| positions.end.min(start + room));
            // SAFETY: promised by the caller.
            unsafe { self.consecutive(scratch, index, rows, start..end) };
            start = end;
        }
    }

    /// Runs some positions of a nest for which the rows of each slot follow each other in memory.
    ///
    /// # Safety
    /// As [`Sweep::positions`].
    unsafe fn consecutive(&self, scratch: &mut Scratch, index: usize, rows: Rows, positions: Range<i64>) {
        let (nest, binding) = (self.nest(index), &self.bindings[index]);
        let first = positions.start;
        let iterations = nest.iterations(positions);
        if iterations.is_empty() {
            return;
        }
        let mut slots = std::mem::take(&mut scratch.slots);
        slots.clear();
        let places = nest.rolling.iter().zip(&nest.rows);
        slots.extend(binding.slots.iter().zip(places).map(|(&slot, (&rolling, &row))| match rolling {
            // The slot is placed as if the array's first row were at address 0.
            Some(array) => {
                let (array, row) = (&self.plan.rolling[array], first + row);
                let origin =
                    rows.row(array, row).wrapping_offset((row as isize).wrapping_mul(array.pitch).wrapping_neg());
                origin.wrapping_add(slot.addr())
            }
            None => slot,
        }));
        let (program, parts) = (&nest.program, scratch.parts());
        // SAFETY: promised by the caller.
        unsafe {
            match &program.loops {
                Loops::Map(level) => {
                    map::run_part(program, level, binding, &slots, self.primitives, parts, iterations);
                }
                Loops::Fold(division) => {
                    let mut units = Some(division.units_of(&program.geometry, iterations.clone()));
                    let (stored, next) = (self.stored(index, division), || units.take());
                    fold::fold_units(program, division, binding, &slots, self.primitives, parts, stored, next);
                    if program.geometry.dims[0] == Dim::Kept {
                        let (parts, kept) = (scratch.parts(), division.kept_of(&program.geometry, iterations));
                        partials::finish_kept(program, division, &slots, self.primitives, stored, parts, kept);
                    }
                }
            }
        }
        scratch.slots = slots;
    }
}

/// The positions of a nest in a strip of a part with a neighbour before it from `begin` on and one behind it from `end`
/// on.
fn strip(nest: &NestPlan, times: Range<i64>, begin: Option<i64>, end: Option<i64>) -> Range<i64> {
    let low = begin.map_or(0, |begin| (begin - nest.early).max(0));
    let high = end.map_or(nest.positions, |end| (end - nest.late).min(nest.positions));
    let start = (times.start - nest.late).max(low);
    start..(times.end - nest.late).min(high).max(start)
}

/// Copies those of the rows that a gap needs.
///
/// # Safety
/// The rows must be in the part's memory, and nobody else's in the gap's.
unsafe fn copy(array: &RollingArray, from: Rows, to: Rows, rows: &Range<i64>) {
    let first = rows.start.max(to.time + array.gap.0);
    let end = rows.end.min(to.time + array.gap.1);
    for row in first..end {
        // SAFETY: promised by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from.row(array, row), to.row(array, row), array.pitch as usize) };
    }
}

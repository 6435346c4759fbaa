//! Running a chain: tiles at the same time, each strip by strip through all nests; then the gaps between chunks, if there are any.

use super::partials::{self, Partials};
use super::scratch::Scratch;
use super::workers::Workers;
use super::{map, reduction};
use crate::block::{Aligned, Binding, Bound};
use crate::plan::{LineBuffer, TilePlan, TileProgram, TileTurn};
use crate::primitives::Primitives;
use bh_core::Result;
use bh_kernel::TileSlot;
use bh_kernel::schedule::{FoldLoops, Schedule};
use std::ops::Range;

/// Parts of a window for each participant, where parts have gaps between them. More parts share the work better, as a late
/// participant takes fewer of them, but rows of gaps come from memory again.
const PARTS: usize = 4;

/// The state that all participants share.
struct Tiles<'a> {
    plan: &'a TilePlan,
    /// The number of tiles; of a window, parts of one or several chunks each. Each row runs once.
    parts: usize,
    bindings: &'a [Binding],
    primitives: Primitives,
    /// Where the chunks of folds leave their results, for one nest after the other.
    partials: *mut u8,
    /// The rows that gaps need, for one border after the other.
    gaps: *mut u8,
    /// The times, counted from a border, in which nests write rows that the gap there needs.
    near: Range<i64>,
}

// SAFETY: participants write different rows of the gaps' memory, and results of different chunks.
unsafe impl Sync for Tiles<'_> {}

/// Runs the nests of a chain, apart from those that run after its tiles.
///
/// # Safety
/// The bindings, those of the nests and then of the joined ones, must give valid memory, as for [`Bound::new`], for
/// every slot that is not in rows of the tile, and place those as if their array's first element were at address 0.
pub(crate) unsafe fn run_tiles(
    plan: &TilePlan,
    bindings: &[Binding],
    primitives: Primitives,
    workers: &mut Workers,
    partials: &mut Aligned,
    gaps: &mut Aligned,
) -> Result<()> {
    let bytes = |nest: &TileProgram| partials::partial_bytes(&nest.program);
    // Memory for the nests after the tiles is reserved now as well, because failures must come before anything is written.
    let after = plan.after.iter().map(|(program, _)| partials::partial_bytes(program)).max().unwrap_or(0);
    let partials = partials.try_reserve(after.max(plan.nests.iter().map(bytes).sum()))?;
    let participants = workers.participants(plan.work());
    let lag = plan.nests.iter().any(|nest| nest.late != -nest.reach[0].low);
    let parts = match (&plan.chain.borders, participants) {
        (None, _) => plan.tiles(),
        (Some(_), 1) => 1,
        (Some(borders), _) if lag => (borders.len() - 1).min(participants * PARTS),
        (Some(borders), _) => borders.len() - 1,
    };
    let gaps = gaps.try_reserve(plan.gap_bytes * parts.saturating_sub(1))?;
    let tiles = Tiles { plan, parts, bindings, primitives, partials, gaps, near: near_borders(plan) };
    workers.run(participants, parts, |scratch, tasks| {
        while let Some(part) = tasks.take() {
            // SAFETY: every part is run once, and no gap has begun.
            unsafe { tiles.part(scratch, part) };
        }
    });
    if plan.chain.borders.is_some() && parts > 1 && lag {
        workers.run(participants, parts - 1, |scratch, tasks| {
            while let Some(border) = tasks.take() {
                // SAFETY: every gap is run once, and all parts have run.
                unsafe { tiles.gap(scratch, border) };
            }
        });
    }
    for (index, (nest, binding)) in plan.nests.iter().zip(bindings).enumerate() {
        // Folds of single rows are complete.
        if let Schedule::Fold(loops) = &nest.program.schedule
            && loops.folds_outermost()
        {
            let stored = tiles.stored(index, loops);
            // SAFETY: all units have stored their partial results.
            unsafe {
                let bound = Bound::new(&nest.program, binding, primitives);
                partials::finish(bound, loops, stored, workers);
            }
        }
    }
    Ok(())
}

/// Where the kept rows of a tile are.
#[derive(Clone, Copy)]
struct Kept {
    memory: *mut u8,
    /// The time of the strip; of a gap, the border.
    time: i64,
    /// The first column of the tile.
    column: i64,
    /// Is it the memory of a gap?
    gap: bool,
}

impl Kept {
    /// The rows of the buffer's ring, if it is one here.
    fn ring(self, buffer: &LineBuffer) -> Option<i64> {
        buffer.ring.filter(|_| !self.gap)
    }

    /// The address of a row's first element that is kept.
    fn row(self, buffer: &LineBuffer, row: i64) -> *mut u8 {
        let LineBuffer { rows, offset, gap_offset, .. } = buffer;
        let (offset, at) = match self.ring(buffer) {
            Some(height) => (offset, row.rem_euclid(height)),
            None if self.gap => (gap_offset, row - self.time - rows.gap.0),
            None => (offset, row - self.time - rows.first),
        };
        self.memory.wrapping_add(*offset).wrapping_offset((at as isize).wrapping_mul(buffer.pitch))
    }

    /// Where the array would begin if all of it lay as this row does.
    fn origin(self, buffer: &LineBuffer, row: i64) -> *mut u8 {
        let columns = (self.column as isize).wrapping_mul(buffer.column).wrapping_add(buffer.left);
        let before = (row as isize).wrapping_mul(buffer.pitch).wrapping_add(columns);
        self.row(buffer, row).wrapping_offset(before.wrapping_neg())
    }
}

impl Tiles<'_> {
    /// Where a nest's folds leave the results of their chunks.
    fn stored(&self, index: usize, loops: &FoldLoops) -> Partials {
        let before: usize = self.plan.nests[..index].iter().map(|nest| partials::partial_bytes(&nest.program)).sum();
        Partials::new(loops, self.partials.wrapping_add(before))
    }

    /// Where a part of a window begins, and the one before it ends.
    fn border(&self, borders: &[i64], part: usize) -> i64 {
        borders[(borders.len() - 1) * part / self.parts]
    }

    /// The memory for the gap behind a part, which is counted from the next one's begin.
    fn gap_rows(&self, borders: &[i64], part: usize) -> Kept {
        let memory = self.gaps.wrapping_add(part * self.plan.gap_bytes);
        Kept { memory, time: self.border(borders, part + 1), column: 0, gap: true }
    }

    /// The rows and columns of a part; the first and the last chunk have no neighbour, so that nothing limits them.
    fn area(&self, part: usize) -> [Range<i64>; 2] {
        let Some(borders) = &self.plan.chain.borders else { return self.plan.tile(part as i64) };
        let begin = if part == 0 { i64::MIN / 2 } else { self.border(borders, part) };
        let end = if part + 1 == self.parts { i64::MAX / 2 } else { self.border(borders, part + 1) };
        [begin..end, 0..1]
    }

    /// Runs a tile, or the rows of a window's chunk that do not depend on its neighbours.
    ///
    /// # Safety
    /// Nobody else runs the part, and no gap has begun. The bindings must be as [`run_tiles`] asks.
    unsafe fn part(&self, scratch: &mut Scratch, part: usize) {
        let (plan, chain) = (self.plan, &self.plan.chain);
        let area = self.area(part);
        let reach: Vec<[Range<i64>; 2]> = plan.nests.iter().map(|nest| nest.within(&area)).collect();
        let works = |nest: &u32| reach[*nest as usize].iter().all(|range| !range.is_empty());
        // Most nests of borders do nothing in most tiles.
        let turns: Vec<&TileTurn> = plan.turns.iter().filter(|turn| turn.nests.iter().any(works)).collect();
        let (begin, end) = match &chain.borders {
            Some(borders) => (self.border(borders, part), self.border(borders, part + 1)),
            None => {
                let nests = || turns.iter().flat_map(|turn| &turn.nests).map(|&nest| nest as usize);
                let begin = nests().map(|nest| reach[nest][0].start + plan.nests[nest].late).min();
                let end = nests().map(|nest| reach[nest][0].end + plan.nests[nest].late).max();
                (begin.unwrap_or(0), end.unwrap_or(0))
            }
        };
        let memory = scratch.rows.reserve(plan.buffer_bytes);
        let mut time = begin;
        while time < end {
            let next = (time + chain.strip).min(end);
            let kept = Kept { memory, time, column: area[1].start, gap: false };
            let rows = |nest: usize| {
                let (late, own) = (plan.nests[nest].late, &reach[nest][0]);
                let start = (time - late).max(own.start);
                start..(next - late).min(own.end).max(start)
            };
            for turn in &turns {
                // SAFETY: all that these rows depend on has run; parts have nothing to do with each other.
                unsafe { self.turn(scratch, turn, kept, |nest| [rows(nest), reach[nest][1].clone()]) };
            }
            if let Some(borders) = &chain.borders {
                // SAFETY: the rows of the gaps beside this part are no other part's.
                unsafe { self.save(borders, part, time..next, kept, rows) };
            }
            if next < end {
                let then = Kept { time: next, ..kept };
                for buffer in plan.buffers.iter().filter(|buffer| buffer.ring.is_none()) {
                    let first = next + buffer.rows.first;
                    let bytes = buffer.rows.kept as usize * buffer.pitch as usize;
                    // SAFETY: the buffer has the strip's rows and these.
                    unsafe { std::ptr::copy(kept.row(buffer, first), then.row(buffer, first), bytes) };
                }
            }
            time = next;
        }
    }

    /// Saves the rows of a strip that the gaps beside a part of a window need.
    ///
    /// # Safety
    /// The nests have written `rows` of the strip at these times, and nobody else uses the memory of the gaps' rows.
    unsafe fn save(
        &self,
        borders: &[i64],
        part: usize,
        times: Range<i64>,
        kept: Kept,
        rows: impl Fn(usize) -> Range<i64>,
    ) {
        let (near, last) = (&self.near, part + 1 == self.parts);
        let before = part > 0 && times.start < self.border(borders, part) + near.end;
        if !before && (last || times.end <= self.border(borders, part + 1) + near.start) {
            return;
        }
        for (number, nest) in self.plan.nests.iter().enumerate() {
            let rows = rows(number);
            for &(buffer, row) in &nest.writes {
                let (buffer, written) = (&self.plan.buffers[buffer as usize], rows.start + row..rows.end + row);
                // SAFETY: the part has written these rows, and those of the gaps are no other part's.
                unsafe {
                    if part > 0 {
                        copy(buffer, kept, self.gap_rows(borders, part - 1), &written);
                    }
                    if !last {
                        copy(buffer, kept, self.gap_rows(borders, part), &written);
                    }
                }
            }
        }
    }

    /// Runs a turn of a strip: nests as one where each has as many rows, those that belong together, or else
    /// one after the other.
    ///
    /// # Safety
    /// As [`Tiles::rows`], for the rows and columns of all nests.
    unsafe fn turn(&self, scratch: &mut Scratch, turn: &TileTurn, kept: Kept, part: impl Fn(usize) -> [Range<i64>; 2]) {
        let nest = |&number: &u32| &self.plan.nests[number as usize];
        if let Some(number) = turn.joined {
            let joined = &self.plan.joined[number];
            let own = part(turn.nests[0] as usize);
            let begins_with = |other: &u32| {
                let ([rows, _], apart) = (part(*other as usize), nest(other).late - joined.late);
                rows.start + apart == own[0].start && rows.end + apart == own[0].end
            };
            let compiled = |nest: &TileProgram| nest.program.is_compiled();
            let fastest = compiled(joined)
                || joined.program.schedule.lines().row_dim().is_none() && !turn.nests.iter().map(nest).any(compiled);
            if fastest && turn.nests.iter().all(begins_with) {
                // SAFETY: the turn comes after all that it depends on, and is this participant's.
                unsafe { self.rows(scratch, self.plan.nests.len() + number, kept, own) };
                return;
            }
        }
        for &number in &turn.nests {
            // SAFETY: the turn comes after all that it depends on, and is this participant's.
            unsafe { self.rows(scratch, number as usize, kept, part(number as usize)) };
        }
    }

    /// The nests, and behind them the joined ones.
    fn nest(&self, index: usize) -> &TileProgram {
        let nests = &self.plan.nests;
        nests.get(index).unwrap_or_else(|| &self.plan.joined[index - nests.len()])
    }

    /// Runs the kernels between two parts of a window.
    ///
    /// # Safety
    /// Nobody else runs the gap, and all parts have run.
    unsafe fn gap(&self, scratch: &mut Scratch, border: usize) {
        let Some(borders) = &self.plan.chain.borders else { return };
        let kept = self.gap_rows(borders, border);
        for (index, nest) in self.plan.nests.iter().enumerate() {
            let at = |time: i64| time.clamp(0, nest.steps.positions);
            let rows = at(kept.time + nest.reach[0].high)..at(kept.time + nest.reach[0].low);
            // SAFETY: all parts have run, and nobody else runs the gap.
            unsafe { self.rows(scratch, index, kept, [rows, 0..1]) };
        }
    }

    /// Runs some rows and columns of a nest.
    ///
    /// # Safety
    /// All that they depend on must have run, and nobody else runs them in this tile.
    unsafe fn rows(&self, scratch: &mut Scratch, index: usize, kept: Kept, [rows, columns]: [Range<i64>; 2]) {
        let nest = self.nest(index);
        let mut start = rows.start;
        while start < rows.end {
            let mut end = rows.end;
            // Until the end of the first ring; a single row is never beyond one.
            if end - start > 1 {
                let rings = nest.slots.iter().zip(&nest.places).filter_map(|(slot, row)| {
                    let TileSlot::Rows(buffer) = *slot else { return None };
                    let height = kept.ring(&self.plan.buffers[buffer as usize])?;
                    Some(height - (start + row).rem_euclid(height))
                });
                end = rings.map(|room| start + room).fold(end, i64::min);
            }
            // SAFETY: all that the rows depend on has run, and nobody else runs them.
            unsafe { self.consecutive(scratch, index, kept, [start..end, columns.clone()]) };
            start = end;
        }
    }

    /// Runs some rows and columns of a nest for which the rows of each slot follow each other in memory.
    ///
    /// # Safety
    /// As [`Tiles::rows`].
    unsafe fn consecutive(&self, scratch: &mut Scratch, index: usize, kept: Kept, [rows, columns]: [Range<i64>; 2]) {
        let (nest, binding) = (self.nest(index), &self.bindings[index]);
        let iterations = nest.steps.iterations(rows.clone(), nest.program.schedule.extent(0));
        if nest.columns.is_none() && iterations.is_empty() {
            return;
        }
        let mut slots = std::mem::take(&mut scratch.slots);
        slots.clear();
        let from = nest.columns.map(|_| (rows.start as isize, columns.start as isize));
        let places = nest.slots.iter().zip(&nest.places).zip(&nest.program.slots);
        slots.extend(binding.slots.iter().zip(places).map(|(&slot, ((&home, place), plan))| {
            let begin = match home {
                // The slot is placed as if the array's first element were at address 0.
                TileSlot::Rows(buffer) => {
                    kept.origin(&self.plan.buffers[buffer as usize], rows.start + place).wrapping_add(slot.addr())
                }
                _ => slot,
            };
            let Some((row, column)) = from else { return begin };
            let far = row.wrapping_mul(plan.strides[0]).wrapping_add(column.wrapping_mul(plan.strides[1]));
            begin.wrapping_offset(far)
        }));
        let (program, parts) = (&nest.program, &mut scratch.nest);
        // SAFETY: all that the rows depend on has run, and nobody else runs them; kept rows begin at these slots.
        unsafe {
            let bound = Bound::new(program, binding, self.primitives);
            match &program.schedule {
                Schedule::Map(map) if nest.columns.is_some() => {
                    map::run_box(bound, map, &slots, parts, [rows.end - rows.start, columns.end - columns.start]);
                }
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

/// The times, counted from a border, in which nests write rows that the gap there needs.
fn near_borders(plan: &TilePlan) -> Range<i64> {
    let writes = plan.nests.iter().flat_map(|nest| nest.writes.iter().map(move |write| (nest.late, write)));
    writes.fold(0..0, |near, (late, &(buffer, row))| {
        // At a time, a nest is at the row `late` before it.
        let (gap, behind) = (plan.buffers[buffer as usize].rows.gap, late - row);
        near.start.min(gap.0 + behind)..near.end.max(gap.1 + behind)
    })
}

impl TileProgram {
    /// The rows and columns that the nest does in a tile.
    fn within(&self, area: &[Range<i64>; 2]) -> [Range<i64>; 2] {
        let rows = self.reach[0].of(&area[0], self.steps.positions);
        [rows, self.columns.map_or(0..1, |columns| self.reach[1].of(&area[1], columns))]
    }
}

/// Copies those of the rows that a gap needs.
///
/// # Safety
/// The rows must be in the part's memory at `from` and in the gap's at `to`, where nobody else uses them.
unsafe fn copy(buffer: &LineBuffer, from: Kept, to: Kept, rows: &Range<i64>) {
    let first = rows.start.max(to.time + buffer.rows.gap.0);
    let end = rows.end.min(to.time + buffer.rows.gap.1);
    for row in first..end {
        // SAFETY: the rows are in the part's memory, and nobody else uses those of the gap.
        unsafe { std::ptr::copy_nonoverlapping(from.row(buffer, row), to.row(buffer, row), buffer.pitch as usize) };
    }
}

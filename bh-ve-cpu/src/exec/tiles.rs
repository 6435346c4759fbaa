//! Running a tiling: tiles in any order, at the same time, each strip by strip through all nests of the chain.

use super::map;
use super::scratch::Scratch;
use super::workers::Workers;
use crate::block::{Binding, Bound};
use crate::plan::{TilePlan, TileProgram};
use crate::primitives::Primitives;
use bh_kernel::TileSlot;
use bh_kernel::schedule::Schedule;
use std::ops::Range;

/// What all participants know.
struct Tiles<'a> {
    plan: &'a TilePlan,
    bindings: &'a [Binding],
    primitives: Primitives,
}

/// A tile that runs: its rows and columns, and where its own rows of arrays are.
struct Tile {
    area: [Range<i64>; 2],
    memory: *mut u8,
}

/// Runs the nests of a tiling.
///
/// # Safety
/// The bindings must give valid memory, as for [`Bound::new`], for every slot that is not in rows of the tile, and place those
/// as if their array's first element were at address 0.
pub(crate) unsafe fn run_tiles(plan: &TilePlan, bindings: &[Binding], primitives: Primitives, workers: &mut Workers) {
    let tiles = Tiles { plan, bindings, primitives };
    let participants = workers.participants(plan.work());
    workers.run(participants, plan.tiles() as usize, |scratch, tasks| {
        while let Some(number) = tasks.take() {
            let tile = Tile { area: plan.tile(number as i64), memory: scratch.rows.reserve(plan.row_bytes) };
            // SAFETY: every tile is run once, and writes no memory that others read or write.
            unsafe { tiles.run(scratch, &tile) };
        }
    });
}

impl Tiles<'_> {
    /// Runs a tile.
    ///
    /// # Safety
    /// Nobody else runs the tile, and its memory must have room for the plan's rows. The bindings must be as
    /// [`run_tiles`] asks.
    unsafe fn run(&self, scratch: &mut Scratch, tile: &Tile) {
        let (plan, tiling) = (self.plan, &self.plan.chain);
        let reach = |nest: &TileProgram, axis: usize| {
            nest.reach[axis].of(&tile.area[axis], nest.program.schedule.extent(axis), tiling.around[axis])
        };
        // Most nests of borders do nothing in most tiles.
        let nests: Vec<(usize, Range<i64>, Range<i64>)> = (plan.nests.iter().enumerate())
            .map(|(number, nest)| (number, reach(nest, 0), reach(nest, 1)))
            .filter(|(_, rows, columns)| !rows.is_empty() && !columns.is_empty())
            .collect();
        let late = |number: usize| plan.nests[number].late;
        let begin = nests.iter().map(|(number, rows, _)| rows.start + late(*number)).min().unwrap_or(0);
        let end = nests.iter().map(|(number, rows, _)| rows.end + late(*number)).max().unwrap_or(0);
        let mut time = begin;
        while time < end {
            let next = (time + tiling.strip).min(end);
            for (number, rows, columns) in &nests {
                let late = late(*number);
                let part = (time - late).max(rows.start)..(next - late).min(rows.end);
                if part.is_empty() {
                    continue;
                }
                for rows in self.pieces(*number, 0, part) {
                    for columns in self.pieces(*number, 1, columns.clone()) {
                        // SAFETY: all that these rows depend on has run.
                        unsafe { self.part(scratch, tile, *number, time, [rows.clone(), columns]) };
                    }
                }
            }
            if next < end && !tiling.rings {
                for (own, offset) in tiling.rows.iter().zip(&plan.offsets) {
                    let row = own.pitch as usize * own.size;
                    let begin = tile.memory.wrapping_add(*offset);
                    // SAFETY: the memory has the strip's rows and these.
                    unsafe {
                        std::ptr::copy(
                            begin.wrapping_add((next - time) as usize * row),
                            begin,
                            own.kept as usize * row,
                        );
                    }
                }
            }
            time = next;
        }
    }

    /// The pieces of a range of rows, or columns, that lie between the array's ends.
    fn pieces(&self, number: usize, axis: usize, range: Range<i64>) -> impl Iterator<Item = Range<i64>> + use<> {
        let length = if self.plan.chain.around[axis] {
            self.plan.nests[number].program.schedule.extent(axis)
        } else {
            i64::MAX / 2
        };
        let (mut at, end) = (range.start, range.end);
        std::iter::from_fn(move || {
            let piece = at..end.min((at.div_euclid(length) + 1).saturating_mul(length));
            at = piece.end;
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Runs some rows and columns of a nest, in the strip that begins at a time.
    ///
    /// # Safety
    /// All that the rows and columns depend on must have run, nobody else runs them in this tile, and they lie between
    /// the array's ends. Tile and bindings must be as [`Tiles::run`] asks.
    unsafe fn part(
        &self,
        scratch: &mut Scratch,
        tile: &Tile,
        number: usize,
        time: i64,
        [rows, columns]: [Range<i64>; 2],
    ) {
        let (nest, binding, tiling) = (&self.plan.nests[number], &self.bindings[number], &self.plan.chain);
        let mut slots = std::mem::take(&mut scratch.slots);
        slots.clear();
        let places = nest.slots.iter().zip(&nest.places).zip(&nest.program.slots);
        // Memory has what goes around once.
        let within = |axis: usize, at: i64| {
            if tiling.around[axis] { at.rem_euclid(nest.program.schedule.extent(axis)) } else { at }
        };
        let (here, there) = ((rows.start, columns.start), (within(0, rows.start), within(1, columns.start)));
        slots.extend(binding.slots.iter().zip(places).map(|(&slot, ((&home, place), plan))| {
            let (begin, (row, column)) = match home {
                TileSlot::Rows(own) => {
                    let (own, offset) = (&tiling.rows[own as usize], self.plan.offsets[own as usize]);
                    // The first row and column that are there; in a ring, the row that lies where it begins.
                    let ring = own.kept + 1;
                    let row = place + rows.start;
                    let begin = if tiling.rings { row - row.rem_euclid(ring) } else { time + own.first };
                    let elements = begin * own.pitch + (tile.area[1].start + own.left) * own.column;
                    let first = tile.memory.wrapping_add(offset);
                    let first =
                        first.wrapping_offset((elements as isize).wrapping_mul(own.size as isize).wrapping_neg());
                    (first.wrapping_add(slot.addr()), here)
                }
                TileSlot::Index | TileSlot::Base(_) | TileSlot::Fresh(_) => (slot, there),
            };
            let (row, column) = (row as isize, column as isize);
            begin.wrapping_offset(row.wrapping_mul(plan.strides[0]).wrapping_add(column.wrapping_mul(plan.strides[1])))
        }));
        // SAFETY: the slots lead to where rows and columns begin, in the bindings' memory or in the tile's own rows;
        // they are inside the nest, and nobody else runs them, as `# Safety` asks.
        unsafe {
            let bound = Bound::new(&nest.program, binding, self.primitives);
            if let Schedule::Map(map) = &nest.program.schedule {
                let counts = [rows.end - rows.start, columns.end - columns.start];
                map::run_box(bound, map, &slots, &mut scratch.nest, counts);
            }
        }
        scratch.slots = slots;
    }
}

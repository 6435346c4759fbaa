//! Planned chains: the programs of nests that run in lock-step, tile by tile, and where the rows lie that a tile keeps.

use super::blocks::temporary_bytes;
use super::layout;
use crate::block::{Program, TileMemory, compile, compile_in_tile};
use crate::native::Tier1;
use crate::primitives::Primitives;
use bh_bytecode::BatchRef;
use bh_core::{Error, Result};
use bh_kernel::{BaseUse, LateNest, Reach, Stage, Steps, TileNest, TileRows, TileSlot, Tiling, Uses};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A nest that runs in lock-step with others.
#[derive(Debug)]
pub(crate) struct TileProgram {
    pub(crate) program: Program,
    /// The memory of each slot, and its row at the first row of the nest.
    pub(crate) slots: Vec<TileSlot>,
    pub(crate) places: Vec<i64>,
    pub(crate) steps: Steps,
    /// Iterations of the loop over columns; `None` if a tile has whole rows.
    pub(crate) columns: Option<i64>,
    pub(crate) reach: [Reach; 3],
    pub(crate) late: i64,
    /// The kept rows that it writes, and which of them at its first row.
    pub(crate) writes: Vec<(u32, i64)>,
}

/// Nests that a strip runs at once.
#[derive(Debug)]
pub(crate) struct TileTurn {
    /// The nests, in order.
    pub(crate) nests: Vec<u32>,
    /// The nest that does the work of all of them, if they are several: its number among the joined ones.
    pub(crate) joined: Option<usize>,
}

/// An array of which a participant keeps a few rows.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    pub(crate) rows: TileRows,
    /// Bytes of a row and of a column, and before the first column that is kept, from the tile's first one.
    pub(crate) pitch: isize,
    pub(crate) column: isize,
    pub(crate) left: isize,
    /// Where its rows are in a participant's memory, and in that of a gap.
    pub(crate) offset: usize,
    pub(crate) gap_offset: usize,
    /// The rows of a ring: a row lies where its number modulo this says. Otherwise rows that are needed again move to the
    /// beginning at the end of each strip.
    pub(crate) ring: Option<i64>,
}

/// An array is a ring if at least one in `KEPT` of its rows is needed again after a strip: else moving rows costs less than
/// calls that end where a ring does.
const KEPT: i64 = 8;

/// More threads make no kernel faster that memory limits.
const BUSY: usize = 32;

/// A chain, planned.
#[derive(Debug)]
pub(crate) struct TilePlan {
    /// The chain without its nests.
    pub(crate) chain: Tiling,
    pub(crate) nests: Vec<TileProgram>,
    /// The order in which strips run them.
    pub(crate) turns: Vec<TileTurn>,
    /// Nests that do the work of all nests of a turn.
    pub(crate) joined: Vec<TileProgram>,
    /// Nests that run afterwards, with the memory of each slot.
    pub(crate) after: Vec<(Program, Vec<TileSlot>)>,
    pub(crate) buffers: Vec<LineBuffer>,
    pub(crate) buffer_bytes: usize,
    pub(crate) gap_bytes: usize,
    /// Where temporaries begin, and their bytes in all.
    pub(crate) temporaries: Vec<usize>,
    pub(crate) temporary_bytes: usize,
    /// Bases in memory.
    pub(crate) bases: Vec<BaseUse>,
}

/// The line buffers of a chain, one after the other.
struct LineBuffers {
    list: Vec<LineBuffer>,
    bytes: usize,
    gap_bytes: usize,
}

impl LineBuffers {
    /// Lays out the buffers; `begins` has the bytes by which each begins behind a line's beginning.
    fn new(chain: &Tiling, begins: &[usize]) -> LineBuffers {
        let mut all = LineBuffers { list: Vec::with_capacity(chain.rows.len()), bytes: 0, gap_bytes: 0 };
        for (rows, begin) in chain.rows.iter().zip(begins) {
            let (pitch, column) = (rows.pitch as usize * rows.size, rows.column as isize * rows.size as isize);
            let height = chain.strip + rows.kept;
            all.list.push(LineBuffer {
                rows: *rows,
                pitch: pitch as isize,
                column,
                left: rows.left as isize * column,
                offset: all.bytes + begin,
                gap_offset: all.gap_bytes,
                ring: (rows.apart && rows.kept * KEPT >= height).then_some(height),
            });
            // A line apart, so that rows of one number in several arrays do not compete for one place in the caches.
            all.bytes += (begin + height as usize * pitch).next_multiple_of(64) + 64;
            all.gap_bytes += ((rows.gap.1 - rows.gap.0).max(0) as usize * pitch).next_multiple_of(64);
        }
        all
    }
}

/// The context in which nests are compiled.
struct NestCompiler<'a> {
    batch: &'a BatchRef<'a>,
    buffers: &'a [LineBuffer],
    /// Memory that caches have when it is used again, beside that of rows.
    resident: &'a HashSet<TileSlot>,
    /// Have tiles some columns of the rows?
    has_columns: bool,
    primitives: Primitives,
    tier1: &'a mut Option<Tier1>,
}

impl NestCompiler<'_> {
    /// Names the instruction of an error.
    fn located(&self, stage: &Stage, error: Error) -> Error {
        error.at_instr(self.batch, stage.parameters.instrs.last().copied().unwrap_or(0))
    }

    /// Groups of slots that are as far apart as their views: rows of a ring lie anywhere, so a slot is together with others of
    /// its own row.
    fn groups(&self, nest: &TileNest) -> Vec<u32> {
        let place = |(&slot, place): (&TileSlot, &[i64; 3])| match slot {
            TileSlot::Rows(rows) if self.buffers[rows as usize].ring.is_some() => (slot, place[0]),
            _ => (slot, 0),
        };
        let mut first_there = HashMap::new();
        let places = nest.slots.iter().zip(&nest.places).map(place);
        (0..).zip(places).map(|(slot, place)| *first_there.entry(place).or_insert(slot)).collect()
    }

    fn nest(&mut self, nest: TileNest, in_order: bool) -> Result<TileProgram> {
        let groups = self.groups(&nest);
        let TileNest { stage, slots, places, steps, reach, late, .. } = nest;
        let is_resident = |slot: &TileSlot| matches!(slot, TileSlot::Rows(_)) || self.resident.contains(slot);
        let resident: Vec<bool> = slots.iter().map(is_resident).collect();
        let memory = TileMemory { resident: &resident, groups: &groups, in_order, in_tile: self.has_columns };
        let program = compile_in_tile(&stage, memory, self.primitives, self.tier1);
        let program = program.map_err(|error| self.located(&stage, error))?;
        let written = |((slot, place), own): ((&TileSlot, &[i64; 3]), &bh_kernel::Slot)| match *slot {
            TileSlot::Rows(rows) if own.mode.writes() => Some((rows, place[0])),
            _ => None,
        };
        Ok(TileProgram {
            writes: slots.iter().zip(&places).zip(&stage.kernel.slots).filter_map(written).collect(),
            columns: self.has_columns.then(|| program.schedule.extent(1)),
            places: places.iter().map(|place| place[0]).collect(),
            program,
            slots,
            steps,
            reach,
            late,
        })
    }

    fn after(&mut self, LateNest { stage, slots }: LateNest) -> Result<(Program, Vec<TileSlot>)> {
        let program = compile(&stage, self.primitives, self.tier1);
        Ok((program.map_err(|error| self.located(&stage, error))?, slots))
    }
}

impl TilePlan {
    pub(super) fn new(
        batch: &BatchRef<'_>,
        mut chain: Tiling,
        primitives: Primitives,
        tier1: &mut Option<Tier1>,
    ) -> Result<TilePlan> {
        let begins = layout::align(&mut chain);
        let LineBuffers { list: buffers, bytes: buffer_bytes, gap_bytes } = LineBuffers::new(&chain, &begins);
        let (bases, resident, mut temporary_bytes) = (base_uses(batch, &chain), used_again(&chain), 0);
        let has_columns = chain.borders.is_none();
        let mut compiler =
            NestCompiler { batch, buffers: &buffers, resident: &resident, has_columns, primitives, tier1 };
        let (mut turns, mut joined) = (Vec::with_capacity(chain.turns.len()), Vec::new());
        for turn in std::mem::take(&mut chain.turns) {
            let mut number = None;
            if let Some(all) = turn.joined {
                number = Some(joined.len());
                joined.push(compiler.nest(all, true)?);
            }
            turns.push(TileTurn { nests: turn.nests, joined: number });
        }
        let nests = std::mem::take(&mut chain.nests).into_iter().map(|nest| compiler.nest(nest, false));
        let nests = nests.collect::<Result<Vec<_>>>()?;
        let after = std::mem::take(&mut chain.after).into_iter().map(|late| compiler.after(late));
        let after = after.collect::<Result<Vec<_>>>()?;
        let mut place = |temporary| {
            let begin = temporary_bytes;
            temporary_bytes += self::temporary_bytes(temporary);
            begin
        };
        let temporaries = chain.temporaries.iter().map(&mut place).collect();
        Ok(TilePlan {
            chain,
            nests,
            turns,
            joined,
            after,
            buffers,
            buffer_bytes,
            gap_bytes,
            temporaries,
            temporary_bytes,
            bases,
        })
    }

    /// The bases that are renamed, each with the base and the view that become its alias.
    pub(crate) fn renamed(&self) -> impl Iterator<Item = (u32, Option<(u32, u32)>)> + Clone {
        self.chain.renames.iter().map(|rename| (rename.base, rename.alias))
    }

    /// Bytes that need not move.
    pub(crate) fn saved(&self) -> u64 {
        self.chain.plain_bytes.saturating_sub(self.chain.bytes)
    }

    /// Does the chain pay with this number of threads? If chunks are fewer, the savings must outweigh the threads without one.
    pub(crate) fn pays(&self, threads: usize) -> bool {
        let Tiling { borders: Some(borders), bytes, plain_bytes, .. } = &self.chain else { return true };
        let (chunks, threads) = (borders.len() as u64 - 1, threads.min(BUSY) as u64);
        chunks >= threads || bytes.saturating_mul(threads) <= plain_bytes.saturating_mul(chunks)
    }

    /// The cost of a run, in units of one vectorised addition of an element.
    pub(crate) fn work(&self) -> u64 {
        self.nests.iter().map(|nest| nest.program.work()).sum()
    }

    /// How many tiles there are along an axis.
    fn count(&self, axis: usize) -> i64 {
        let Tiling { area, tile, .. } = &self.chain;
        (area[axis].end - area[axis].start + tile[axis] - 1) / tile[axis]
    }

    /// How many tiles with columns there are.
    pub(crate) fn tiles(&self) -> usize {
        (self.count(0) * self.count(1)) as usize
    }

    /// The rows and columns of a tile. Those of one row of tiles follow each other.
    pub(crate) fn tile(&self, number: i64) -> [Range<i64>; 2] {
        let across = self.count(1);
        let range = |axis: usize, at: i64| {
            let Tiling { area, tile, .. } = &self.chain;
            let start = area[axis].start + at * tile[axis];
            start..(start + tile[axis]).min(area[axis].end)
        };
        [range(0, number / across), range(1, number % across)]
    }
}

/// The memory that several nests of a sliding window use.
fn used_again(chain: &Tiling) -> HashSet<TileSlot> {
    let (mut known, mut again) = (HashSet::new(), HashSet::new());
    for nest in chain.nests.iter().filter(|_| chain.borders.is_some()) {
        let own: HashSet<TileSlot> = nest.slots.iter().copied().collect();
        again.extend(own.into_iter().filter(|slot| !known.insert(*slot)));
    }
    again
}

/// The bases that live in their own memory, and how each is acquired.
fn base_uses(batch: &BatchRef<'_>, chain: &Tiling) -> Vec<BaseUse> {
    let mut uses = Uses::default();
    let nests = chain.nests.iter().map(|nest| (&nest.stage, &nest.slots));
    for (stage, slots) in nests.chain(chain.after.iter().map(|late| (&late.stage, &late.slots))) {
        uses.slots(batch, stage, |slot| match slots[slot] {
            TileSlot::Base(base) => Some(base),
            TileSlot::Index | TileSlot::Fresh(_) | TileSlot::Rows(_) | TileSlot::Temporary(_) => None,
        });
    }
    uses.into_vec()
}

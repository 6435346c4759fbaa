//! Planned tilings: the programs of chains of kernels that run tile by tile, and where the rows of a tile lie.

use crate::block::{Program, WindowMemory, compile_in_window};
use crate::native::Tier1;
use crate::primitives::Primitives;
use bh_bytecode::BatchRef;
use bh_core::{Error, Result};
use bh_kernel::{BaseUse, Reach, TileNest, TileSlot, Tiling, Uses};
use std::ops::Range;

/// A nest of a chain.
#[derive(Debug)]
pub(crate) struct TileProgram {
    pub(crate) program: Program,
    /// What each slot addresses, and its row at the first iteration.
    pub(crate) slots: Vec<TileSlot>,
    pub(crate) places: Vec<i64>,
    /// The rows and columns that it does.
    pub(crate) reach: [Reach; 3],
    pub(crate) late: i64,
}

/// A tiling, planned.
#[derive(Debug)]
pub(crate) struct TilePlan {
    /// What it does, apart from the nests.
    pub(crate) chain: Tiling,
    pub(crate) nests: Vec<TileProgram>,
    /// Where the rows of a tile begin in a participant's memory.
    pub(crate) offsets: Vec<usize>,
    pub(crate) row_bytes: usize,
    /// Bases in memory.
    pub(crate) bases: Vec<BaseUse>,
}

impl TilePlan {
    pub(super) fn new(
        batch: &BatchRef<'_>,
        mut tiling: Tiling,
        primitives: Primitives,
        tier1: &mut Option<Tier1>,
    ) -> Result<TilePlan> {
        let bases = base_uses(batch, &tiling);
        let (mut offsets, mut row_bytes) = (Vec::with_capacity(tiling.rows.len()), 0);
        for own in &tiling.rows {
            offsets.push(row_bytes);
            let height = (tiling.strip + own.kept) as usize;
            // A line apart, so that rows of one number in several arrays do not compete for one place in the caches.
            row_bytes += (height * own.pitch as usize * own.size).next_multiple_of(64) + 64;
        }
        let mut nests = Vec::with_capacity(tiling.nests.len());
        for TileNest { stage, slots, places, reach, late, .. } in std::mem::take(&mut tiling.nests) {
            let in_memory = |slot: &TileSlot| matches!(slot, TileSlot::Base(_) | TileSlot::Fresh(_));
            let resident: Vec<bool> = slots.iter().map(|slot| !in_memory(slot)).collect();
            let places: Vec<i64> = places.iter().map(|place| place[0]).collect();
            let groups = groups(&slots, &places, tiling.rings);
            let memory = WindowMemory { resident: &resident, groups: &groups, in_order: false, in_tile: true };
            let program = compile_in_window(&stage, memory, primitives, tier1);
            let first = stage.parameters.instrs.last().copied().unwrap_or(0);
            let program = program.map_err(|error: Error| error.at_instr(batch, first))?;
            nests.push(TileProgram { program, slots, places, reach, late });
        }
        Ok(TilePlan { chain: tiling, nests, offsets, row_bytes, bases })
    }

    /// Bytes that need not move.
    pub(crate) fn saved(&self) -> u64 {
        self.chain.plain_bytes.saturating_sub(self.chain.bytes)
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

    /// How many tiles there are.
    pub(crate) fn tiles(&self) -> i64 {
        self.count(0) * self.count(1)
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

/// A number for slots that are as far apart as their views: in rings, those of one row.
fn groups(slots: &[TileSlot], places: &[i64], rings: bool) -> Vec<u32> {
    let alike = |one: usize, other: usize| {
        let apart = rings && matches!(slots[one], TileSlot::Rows(_)) && places[one] != places[other];
        slots[one] == slots[other] && !apart
    };
    let first = |slot: usize| (0..slot).find(|&other| alike(slot, other)).unwrap_or(slot);
    (0..slots.len()).map(|slot| first(slot) as u32).collect()
}

/// The bases that live in memory, and how each is acquired.
fn base_uses(batch: &BatchRef<'_>, tiling: &Tiling) -> Vec<BaseUse> {
    let mut uses = Uses::default();
    for TileNest { stage, slots, .. } in &tiling.nests {
        uses.slots(batch, stage, |slot| match slots[slot] {
            TileSlot::Base(base) => Some(base),
            TileSlot::Index | TileSlot::Fresh(_) | TileSlot::Rows(_) => None,
        });
    }
    uses.into_vec()
}

//! Chains of kernels that run in lock-step, as engines see them.
//!
//! A chain runs tile by tile. Within a tile, nests go along the rows together, each as many rows behind the front as its `late`
//! says. Neighbouring tiles may run at the same time, in one of two ways: both compute the elements near their border that both
//! need (tiles in time, which have some columns), or nests leave gaps at the border, which run afterwards (sliding windows, whose
//! tiles are chunks of whole rows).

use crate::{Stage, Temporary};
use std::ops::Range;

/// The memory behind a slot of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileSlot {
    /// None: an index view.
    Index,
    /// The buffer of a base.
    Base(u32),
    /// The fresh buffer of a base.
    Fresh(u32),
    /// Rows that the tile keeps of an array: their number in the tiling.
    Rows(u32),
    /// A temporary of a block: its number in the tiling.
    Temporary(u32),
}

/// The first and the last iteration of a nest in a tile are so far from the tile's first and last row, or column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// From the first one.
    pub low: i64,
    /// From the last one.
    pub high: i64,
}

impl Reach {
    /// The iterations, of this many, in a tile.
    pub fn of(self, tile: &Range<i64>, iterations: i64) -> Range<i64> {
        let start = (tile.start + self.low).clamp(0, iterations);
        start..(tile.end + self.high).clamp(start, iterations)
    }

    pub(crate) fn hull(self, other: Reach) -> Reach {
        Reach { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub(crate) fn shifted(self, by: i64) -> Reach {
        Reach { low: self.low + by, high: self.high + by }
    }

    pub(crate) fn extra(self) -> i64 {
        self.high - self.low
    }
}

/// How the iterations of a nest's outermost loop make rows: row `p` is the iterations from `p * per - phase` to
/// `(p + 1) * per - phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Iterations of a row.
    pub per: i64,
    /// Iterations that the first row lacks.
    pub phase: i64,
    /// Rows in all.
    pub positions: i64,
}

impl Steps {
    /// One step for each of the rows.
    pub(crate) fn single(positions: i64) -> Steps {
        Steps { per: 1, phase: 0, positions }
    }

    /// The iterations, of `extent`, of some rows.
    pub fn iterations(&self, positions: Range<i64>, extent: i64) -> Range<i64> {
        let at = |position: i64| (position * self.per - self.phase).clamp(0, extent);
        at(positions.start)..at(positions.end)
    }
}

/// A nest of a chain: its outermost loop walks rows. In tiles in time the second loop walks columns, and threads do all elements of
/// a column together.
#[derive(Clone, Debug)]
pub struct TileNest {
    /// The block that it belongs to.
    pub block: u32,
    /// The nest. Slots in rows of the tile are placed as if the array's first element were at address 0.
    pub stage: Stage,
    /// The memory of each slot.
    pub slots: Vec<TileSlot>,
    /// The first row, column and element of an array's grid at the first row of the nest, if a slot goes by these.
    pub places: Vec<[i64; 3]>,
    /// The rows of its outermost loop.
    pub steps: Steps,
    /// The rows, columns and elements that it does in a tile.
    pub reach: [Reach; 3],
    /// At time `t` it has done its rows below `t - late`.
    pub late: i64,
}

/// Nests that a strip runs at once.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The nests, in order.
    pub nests: Vec<u32>,
    /// One nest that does the work of all of them; none if there is one only. Its rows are those of the first one. When it is at row
    /// `p`, each other one is at row `p - late + first.late`. It must complete each row before the next one.
    pub joined: Option<TileNest>,
}

/// A nest that runs after the tiles.
#[derive(Clone, Debug)]
pub struct LateNest {
    /// The nest.
    pub stage: Stage,
    /// The memory of each slot.
    pub slots: Vec<TileSlot>,
}

/// Rows that a tile keeps of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileRows {
    /// Bytes of an element.
    pub size: usize,
    /// Elements from row to row.
    pub pitch: i64,
    /// Elements from column to column.
    pub column: i64,
    /// The first row in use, from the time.
    pub first: i64,
    /// Rows that are needed again after a strip.
    pub kept: i64,
    /// The first column, from that of the tile.
    pub left: i64,
    /// The rows that the gap between two chunks needs, from the border.
    pub gap: (i64, i64),
    /// Does every slot lie in one row at a time, so that rows need not follow each other in memory and may be a ring?
    pub apart: bool,
}

/// A rename that takes effect at the end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileRename {
    /// The base, which gets its fresh buffer.
    pub base: u32,
    /// The base that becomes an alias of a view of it.
    pub alias: Option<(u32, u32)>,
}

/// A chain of kernels that runs tile by tile.
#[derive(Clone, Debug)]
pub struct Tiling {
    /// The blocks of the partition that it carries out.
    pub blocks: Range<u32>,
    /// How many of them compute.
    pub kernels: u32,
    /// The nests, in order.
    pub nests: Vec<TileNest>,
    /// The order in which each strip runs them; gaps run them one by one.
    pub turns: Vec<Turn>,
    /// Nests that run after all tiles, in order.
    pub after: Vec<LateNest>,
    /// The rows that a tile keeps.
    pub rows: Vec<TileRows>,
    /// Bases of the arrays that exist as rows of a tile only; several may have the same rows one after the other.
    pub transient: Vec<u32>,
    /// The temporaries of all blocks.
    pub temporaries: Vec<Temporary>,
    /// Renames at the end, in order.
    pub renames: Vec<TileRename>,
    /// The area of all tiles, as rows, columns and elements of these.
    pub area: [Range<i64>; 3],
    /// Rows, columns and elements of a tile; rows of a chunk if there are borders.
    pub tile: [i64; 3],
    /// The first rows of chunks, and the end of the last one, if nests leave gaps between tiles. Otherwise tiles overlap.
    pub borders: Option<Vec<i64>>,
    /// Rows that a nest does before the next one continues.
    pub strip: i64,
    /// Bytes between memory and kernels if they run one by one.
    pub plain_bytes: u64,
    /// Bytes between memory and kernels if they run tile by tile.
    pub bytes: u64,
    /// Bytes of rows in use.
    pub in_use: u64,
    /// Its cost divided by that of its kernels otherwise.
    pub gain: f64,
}

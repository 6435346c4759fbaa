//! How a stage's iterations are gone through: lines and blocks, the loops around them, and the units and chunks of its folds.
//! All of it comes from extents, strides and roles alone, so that a fold has one tree whatever else its kernel does. Block
//! programs, compiled code, sliding windows, tiles and small work all walk by it.

mod chunks;
mod fold;
mod levels;
mod lines;
mod repeat;
mod tree;

use crate::Stage;
pub use chunks::{Chunks, split};
pub use fold::{FoldLoops, Unit};
pub use levels::{LoopLevel, SlotPlan};
pub use lines::{Lines, LoopShape, lengthen};
pub use repeat::joined;
pub use tree::{
    FIXED_LINES, FoldTree, Grouping, LANES, ROW_SETS, SET_PAIRS, fixed_rows, halvings, is_long_row, is_one_chunk,
};

/// How a kernel with given parameters is gone through. It is made once a stage.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// Without folds.
    Map(MapLoops),
    /// With folds.
    Fold(FoldLoops),
}

/// The loops of a stage without folds.
#[derive(Clone, Debug)]
pub struct MapLoops {
    /// Its lines.
    pub lines: Lines,
    /// The loops around lines.
    pub around: LoopLevel,
}

impl Schedule {
    /// Chooses lines for a stage; [`Schedule::set_block`] completes it. Of a tile, lines do not run along the rows.
    pub fn new(stage: &Stage, in_tile: bool) -> Schedule {
        let lines = Lines::new(stage, in_tile);
        if stage.kernel.reduces() {
            return Schedule::Fold(FoldLoops::new(stage, lines));
        }
        Schedule::Map(MapLoops { around: LoopLevel::of(&stage.parameters.extents, 0..lines.dim), lines })
    }

    /// Sets the most elements of a block, where blocks are parts of rows.
    pub fn set_block(&mut self, elements: i64) {
        match self {
            Schedule::Map(map) => map.lines.set_block(elements),
            Schedule::Fold(loops) => loops.lines.set_block(elements),
        }
    }

    /// Its lines.
    #[inline]
    pub fn lines(&self) -> &Lines {
        match self {
            Schedule::Map(map) => &map.lines,
            Schedule::Fold(loops) => &loops.lines,
        }
    }

    /// How it folds, if it does.
    pub fn tree(&self) -> Option<FoldTree> {
        match self {
            Schedule::Map(_) => None,
            Schedule::Fold(loops) => Some(loops.tree),
        }
    }

    /// The loops around lines: all of them in one level, or the kept and the reduced ones.
    fn levels(&self) -> impl Iterator<Item = &LoopLevel> {
        let (outer, reduced) = match self {
            Schedule::Map(map) => (&map.around, None),
            Schedule::Fold(loops) => (&loops.kept, Some(&loops.reduced)),
        };
        std::iter::once(outer).chain(reduced)
    }

    /// The iterations of a dimension.
    pub fn extent(&self, dim: usize) -> i64 {
        let around = self.levels().flat_map(|level| &level.0).find(|&&(own, _)| own == dim);
        around.map_or_else(|| self.lines().extent(dim), |&(_, extent)| extent)
    }

    /// All iterations.
    pub fn iterations(&self) -> i64 {
        self.levels().map(LoopLevel::count).product::<i64>() * self.lines().elements()
    }

    /// Iterations of the outermost loop that end with whole units; `None` if only all of them do.
    pub fn whole_units(&self) -> Option<i64> {
        match self {
            Schedule::Fold(loops) if loops.folds_outermost() => loops.whole_units(),
            _ => (self.lines().dim > 0).then_some(1),
        }
    }
}

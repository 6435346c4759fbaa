//! Lines and blocks.

use super::repeat::repeats;
use super::tree::LANES;
use crate::{Dim, SlotMode, Stage};
use std::ops::RangeInclusive;

/// Rows shorter than this are gathered into blocks of several rows.
const SHORT_ROW: i64 = 48;
/// Elements of a block that spans rows.
const SPAN: i64 = 512;

/// The most elements of rows that blocks of several rows are better for than compiled code, where rows repeat elements and
/// cannot be one row.
const BLOCK_ROW: i64 = 6;

/// Extents of a dimension that makes better lines than blocks of a few elements: of longer ones, the next line would find the memory
/// of the one before no more in the nearest caches.
const LONGER: RangeInclusive<i64> = 16..=2048;

/// Blocks within a line are multiples of this.
const BLOCK_UNIT: i64 = 64;

/// Sets that rows of few kept elements are folded into.
const SETS: i64 = LANES as i64;

/// The kinds of lines and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopShape {
    /// Lines along the innermost dimension, and blocks that are parts of them.
    Lines,
    /// Lines of short rows, of which a block has several.
    ShortRows,
    /// The same; compiled code takes them as one row, as slots go on from row to row or repeat elements.
    JoinedRows,
    /// The same; as rows are that short, and of a number that compiled code cannot repeat elements for, blocks are faster.
    BlockRows,
    /// Reduced lines whose steps are rows of columns.
    ColumnRows,
    /// The same; these follow each other in all slots that do not find the same in all rows, so that compiled code takes as
    /// many as there are sets as one row.
    JoinedColumns,
}

/// The lines of a nest, and how they are cut into blocks.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Their kind.
    pub shape: LoopShape,
    /// The dimension that lines run along: the last, or the last but one when blocks span rows.
    pub dim: usize,
    /// Steps of a line: elements, or rows when blocks span rows.
    pub steps: i64,
    /// Elements of a step.
    pub row: i64,
    /// Steps of a block.
    pub block: i64,
    /// The lines of a plane lie this many iterations of a dimension apart.
    pub(super) plane: (usize, i64),
}

impl LoopShape {
    fn new(stage: &Stage) -> LoopShape {
        let (extents, dims) = (&stage.parameters.extents, &stage.kernel.dims);
        if let Some(columns) = LoopShape::of_columns(stage) {
            return columns;
        }
        let last = extents.len() - 1;
        let row = extents[last];
        if last == 0 || !(1..SHORT_ROW).contains(&row) || extents[last - 1] <= 1 || dims[last] != dims[last - 1] {
            return LoopShape::Lines;
        }
        match (repeats(stage), row.count_ones() == 1) {
            (true, true) => LoopShape::JoinedRows,
            (true, false) if row <= BLOCK_ROW => LoopShape::BlockRows,
            _ => LoopShape::ShortRows,
        }
    }

    /// The shape where columns are the innermost kept dimension of a stage, in a reduced one; `None` if there are none, or too
    /// few rows in a line, or columns are several dimensions.
    fn of_columns(Stage { kernel, parameters }: &Stage) -> Option<LoopShape> {
        let (extents, columns) = (&parameters.extents, parameters.columns);
        let dim = extents.len().checked_sub(2)?;
        let is_wanted = columns > 0 && kernel.dims[dim..] == [Dim::Reduced, Dim::Kept] && extents[dim] >= SETS;
        if !is_wanted || extents[dim + 1] != columns {
            return None;
        }
        let follows = |slot: usize| {
            let strides = parameters.stride(slot);
            // An index view has no memory to be repeated from.
            let again = strides[dim] == 0 && kernel.slots[slot].mode != SlotMode::Index;
            again || strides[dim] == strides[dim + 1].wrapping_mul(columns)
        };
        let joined = (0..kernel.slots.len()).all(follows);
        Some(if joined { LoopShape::JoinedColumns } else { LoopShape::ColumnRows })
    }

    /// Are steps rows of columns?
    #[inline]
    pub fn has_columns(self) -> bool {
        matches!(self, LoopShape::ColumnRows | LoopShape::JoinedColumns)
    }
}

/// Moves a longer dimension inside of two or more that are short together, in a stage whose elements are computed in any order: as
/// in copies of blocks of 2 × 2 elements, where each line would have four.
pub fn lengthen(Stage { kernel, parameters }: &mut Stage) {
    let rank = parameters.extents.len();
    let &[.., around, row] = parameters.extents.as_slice() else { return };
    if kernel.reduces() || !(1..SHORT_ROW).contains(&around.saturating_mul(row)) {
        return;
    }
    let Some(dim) = (0..rank - 2).rev().find(|&dim| LONGER.contains(&parameters.extents[dim])) else { return };
    parameters.extents[dim..].rotate_left(1);
    for strides in parameters.strides.chunks_exact_mut(rank) {
        strides[dim..].rotate_left(1);
    }
}

impl Lines {
    /// The lines of a stage; of a tile, lines do not run along the rows.
    pub(super) fn new(stage: &Stage, in_tile: bool) -> Lines {
        let (extents, last) = (&stage.parameters.extents, stage.parameters.extents.len() - 1);
        let shape = if in_tile && last < 2 { LoopShape::Lines } else { LoopShape::new(stage) };
        let (dim, row) = if shape == LoopShape::Lines { (last, 1) } else { (last - 1, extents[last]) };
        let steps = extents[dim];
        // Folded blocks are a whole number of a fold's lanes, or sets.
        let unit = match stage.kernel.dims[last] {
            _ if shape.has_columns() => SETS,
            Dim::Reduced => SETS >> row.trailing_zeros().min(SETS.ilog2()),
            Dim::Kept => 1,
        };
        let block = match shape {
            LoopShape::Lines => steps.max(1),
            _ => (SPAN / row / unit * unit).max(unit).min(steps),
        };
        // The lines of a plane follow each other along the dimension around them, or steps are lines.
        let plane = match (shape, dim) {
            (LoopShape::JoinedColumns, _) => (dim, SETS),
            (LoopShape::ColumnRows, _) => (dim, 1),
            (_, 0) => (dim, 0),
            _ => (dim - 1, 1),
        };
        Lines { shape, dim, steps, row, block, plane }
    }

    /// Sets the most elements of a block, where blocks are parts of rows. Lines are cut evenly, into whole numbers of
    /// lanes, so that the length has no influence on folds.
    pub(super) fn set_block(&mut self, elements: i64) {
        if self.shape == LoopShape::Lines && self.steps > 0 {
            let blocks = (self.steps + elements - 1) / elements;
            let even = (self.steps + blocks - 1) / blocks;
            self.block = ((even + BLOCK_UNIT - 1) / BLOCK_UNIT * BLOCK_UNIT).min(self.steps);
        }
    }

    /// The dimension of rows, where blocks span these.
    #[inline]
    pub fn row_dim(&self) -> Option<usize> {
        (self.shape != LoopShape::Lines).then_some(self.dim + 1)
    }

    /// The dimension of the elements that compiled code has as a row.
    pub fn inner_dim(&self) -> usize {
        self.row_dim().unwrap_or(self.dim)
    }

    /// The iterations of a dimension that no loops go around.
    pub(super) fn extent(&self, dim: usize) -> i64 {
        if dim == self.dim { self.steps } else { self.row }
    }

    /// The elements of a line.
    #[inline]
    pub fn elements(&self) -> i64 {
        self.steps * self.row
    }

    /// The most elements of a block.
    pub fn block_elements(&self) -> usize {
        (self.block * self.row) as usize
    }

    /// Blocks of a line.
    #[inline]
    pub fn blocks(&self) -> i64 {
        (self.steps + self.block - 1) / self.block
    }

    /// The stride from line to line of a plane, for strides along the dimensions; 0 if there is none. The lines of a plane are long
    /// rows if a line is several long rows of a fold; chunks if all of a fold is one line; rows of columns, or the joined ones, if
    /// these are steps.
    pub fn plane_stride(&self, strides: &[i64]) -> i64 {
        let (dim, iterations) = self.plane;
        strides[dim].wrapping_mul(iterations)
    }

    /// Where rows are joined, does a slot find the same columns, several of them, in all rows?
    pub fn repeats(&self, strides: &[i64]) -> bool {
        self.shape == LoopShape::JoinedColumns && strides[self.dim] == 0 && strides[self.dim + 1] != 0
    }
}

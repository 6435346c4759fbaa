//! Lines, blocks, and the loops around them.

use super::chunks::Chunks;
use super::repeat::repeats;
use super::tree::ReductionTree;
use bh_jit_abi::{LANES, ROW_SETS};
use bh_kernel::{Dim, Kernel, Parameters, SlotMode};

/// Rows shorter than this are gathered into blocks of several rows.
const SHORT_ROW: i64 = 48;
/// Elements of a block that spans rows.
const SPAN: i64 = 512;

/// The most elements of rows that blocks of several rows are better for than compiled code, where rows repeat elements and
/// cannot be one row.
const BLOCK_ROW: i64 = 6;

/// Blocks within a line are multiples of this.
const BLOCK_UNIT: i64 = 64;

/// Innermost folded axes with at least this many elements are long: each of their rows is folded into lanes of its own.
pub(crate) const LONG_ROW: i64 = 64;

/// Sets that rows of few kept elements are folded into.
const SETS: i64 = LANES as i64;

/// What lines and blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopShape {
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

/// A loop nest, cut into lines and blocks.
#[derive(Clone, Debug)]
pub(crate) struct LoopNest {
    pub(crate) shape: LoopShape,
    /// How it folds, if it does.
    pub(crate) tree: Option<ReductionTree>,
    pub(crate) extents: Vec<i64>,
    pub(crate) dims: Vec<Dim>,
    /// Extents of the folded axes before merging.
    pub(super) folded: Vec<i64>,
    /// The dimension that lines run along: the last, or the last but one when blocks span rows.
    pub(crate) line_dim: usize,
    /// Steps of a line: elements, or rows when blocks span rows.
    pub(crate) line: i64,
    /// Elements of a step.
    pub(crate) row: i64,
    /// Elements of the innermost folded axis if it is long. A line has one or, where axes are merged, several of its rows.
    pub(super) long_row: Option<i64>,
    /// Kept elements of a row, if rows are folded into sets; else 0.
    pub(crate) columns: i64,
    /// Steps of a block.
    pub(crate) step: i64,
}

impl LoopShape {
    fn new(kernel: &Kernel, parameters: &Parameters) -> LoopShape {
        let (extents, dims, last) = (&parameters.extents, &kernel.dims, parameters.extents.len() - 1);
        if let Some(columns) = LoopShape::of_columns(kernel, parameters) {
            return columns;
        }
        let row = extents[last];
        if last == 0 || !(1..SHORT_ROW).contains(&row) || extents[last - 1] <= 1 || dims[last] != dims[last - 1] {
            return LoopShape::Lines;
        }
        match (repeats(kernel, parameters), row.count_ones() == 1) {
            (true, true) => LoopShape::JoinedRows,
            (true, false) if row <= BLOCK_ROW => LoopShape::BlockRows,
            _ => LoopShape::ShortRows,
        }
    }

    /// The shape where columns are the innermost kept dimension of a stage, in a reduced one; `None` if there are none, or too
    /// few rows in a line, or columns are several dimensions.
    fn of_columns(kernel: &Kernel, parameters: &Parameters) -> Option<LoopShape> {
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
}

impl LoopNest {
    /// Chooses lines for a stage; [`LoopNest::set_block`] completes it.
    pub(crate) fn new(kernel: &Kernel, parameters: &Parameters) -> LoopNest {
        LoopNest::of_shape(LoopShape::new(kernel, parameters), kernel, parameters)
    }

    /// [`LoopNest::new`] for a stage of a tile: lines do not run along its rows.
    pub(crate) fn in_tile(kernel: &Kernel, parameters: &Parameters) -> LoopNest {
        let shape = if parameters.extents.len() > 2 { LoopShape::new(kernel, parameters) } else { LoopShape::Lines };
        LoopNest::of_shape(shape, kernel, parameters)
    }

    fn of_shape(shape: LoopShape, kernel: &Kernel, parameters: &Parameters) -> LoopNest {
        let (extents, dims, folded) = (parameters.extents.clone(), kernel.dims.clone(), parameters.folded.clone());
        let (last, columns) = (extents.len() - 1, parameters.columns);
        let is_long = |&row: &i64| row >= LONG_ROW && dims[last] == Dim::Reduced && columns == 0;
        let long_row = folded.last().copied().filter(is_long);
        let (line_dim, row) = if shape == LoopShape::Lines { (last, 1) } else { (last - 1, extents[last]) };
        let line = extents[line_dim];
        // Folded blocks are a whole number of a fold's lanes, or sets.
        let unit = match (shape, dims[last]) {
            (LoopShape::ColumnRows | LoopShape::JoinedColumns, _) => SETS,
            (_, Dim::Reduced) => SETS >> row.trailing_zeros().min(SETS.ilog2()),
            (_, Dim::Kept) => 1,
        };
        let step = match shape {
            LoopShape::Lines => line.max(1),
            _ => (SPAN / row / unit * unit).max(unit).min(line),
        };
        let tree = None;
        let nest = LoopNest { shape, tree, extents, dims, folded, line_dim, line, row, long_row, columns, step };
        LoopNest { tree: kernel.reduces().then(|| nest.tree()), ..nest }
    }

    fn tree(&self) -> ReductionTree {
        match (self.shape, self.line_role()) {
            (_, Dim::Kept) if self.columns > 0 => return ReductionTree::KeptColumns,
            (_, Dim::Kept) => return ReductionTree::KeptLines,
            (LoopShape::ColumnRows | LoopShape::JoinedColumns, _) => return ReductionTree::ColumnRows,
            (LoopShape::Lines, _) => {}
            (LoopShape::ShortRows | LoopShape::JoinedRows | LoopShape::BlockRows, _) => return ReductionTree::Runs,
        }
        let chunks = Chunks::new(&self.folded, self.long_row, self.columns);
        let around = self.line_dim.checked_sub(1).map(|dim| self.dims[dim]);
        let is_reduced = |&dim: &usize| self.dims[dim] == Dim::Reduced;
        let lines: i64 = (0..self.line_dim).filter(is_reduced).map(|dim| self.extents[dim]).product();
        let per_line = self.long_row.map_or(1, |row| self.line / row);
        let one_line = around != Some(Dim::Reduced) && self.line > 0 && per_line == 1 && lines == 1;
        let is_beside = around == Some(Dim::Kept) && per_line == 1 && lines > 1 && chunks.elements > 0;
        match chunks.row {
            _ if one_line && chunks.count == 1 => ReductionTree::LineResults,
            None if self.line_dim == 0 && chunks.count > 1 && chunks.per_group == chunks.count => {
                ReductionTree::LineChunks { elements: chunks.elements }
            }
            row if is_beside && chunks.elements % self.line == 0 => {
                ReductionTree::BesideResults { sets: row.map_or(1, |_| ROW_SETS) }
            }
            Some(row) => ReductionTree::LongRows { row, per_line },
            None => ReductionTree::Runs,
        }
    }

    /// Sets the most elements of a block, where blocks are parts of rows. Lines are cut evenly, into whole numbers of
    /// lanes, so that the length has no influence on folds.
    pub(crate) fn set_block(&mut self, elements: i64) {
        if self.shape == LoopShape::Lines && self.line > 0 {
            let blocks = (self.line + elements - 1) / elements;
            let even = (self.line + blocks - 1) / blocks;
            self.step = ((even + BLOCK_UNIT - 1) / BLOCK_UNIT * BLOCK_UNIT).min(self.line);
        }
    }

    /// The dimension of rows, where blocks span these.
    pub(crate) fn row_dim(&self) -> Option<usize> {
        (self.line_dim + 1 < self.extents.len()).then_some(self.line_dim + 1)
    }

    /// The most elements of a block.
    pub(crate) fn block(&self) -> usize {
        (self.step * self.row) as usize
    }

    /// Blocks of a line.
    pub(crate) fn blocks(&self) -> i64 {
        (self.line + self.step - 1) / self.step
    }

    /// The stride from line to line of a plane, for strides along the dimensions. The lines of a plane follow each other
    /// along the dimension around them; where a line is several long rows of a fold, these are the plane, and where all
    /// of a fold is one line, its chunks, and where rows of columns are steps, these, or as many as are joined. 0 if there is
    /// none.
    pub(crate) fn plane_stride(&self, strides: &[i64]) -> i64 {
        let line = strides[self.line_dim];
        match (self.shape, self.long_row, self.tree) {
            (LoopShape::JoinedColumns, ..) => line.wrapping_mul(SETS),
            (LoopShape::ColumnRows, ..) => line,
            (_, Some(row), _) if self.line > row => line.wrapping_mul(row),
            (_, _, Some(ReductionTree::LineChunks { elements })) => line.wrapping_mul(elements),
            _ => self.line_dim.checked_sub(1).map_or(0, |dim| strides[dim]),
        }
    }

    /// Where rows are joined, does a slot find the same columns, several of them, in all rows?
    pub(crate) fn repeats(&self, strides: &[i64]) -> bool {
        self.shape == LoopShape::JoinedColumns && strides[self.line_dim] == 0 && strides[self.line_dim + 1] != 0
    }

    /// The role of the dimension that lines run along.
    fn line_role(&self) -> Dim {
        self.dims[self.line_dim]
    }

    /// All iterations.
    pub(crate) fn iterations(&self) -> i64 {
        self.extents.iter().product()
    }
}

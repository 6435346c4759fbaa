//! How a stage's loop nest is cut into lines and blocks. It depends on the shape alone, so that folds have one tree.

use super::cut::Cut;
use crate::primitives;
use bh_fuser::lower::{Dim, Kernel, Parameters, Slot, SlotMode};

/// Rows shorter than this are gathered into blocks of several rows.
const SHORT_ROW: i64 = 48;
/// Elements of a block that spans rows.
const SPAN: i64 = 512;

/// The most elements of rows that blocks of several rows are better for than compiled code, where rows repeat elements and
/// cannot be one row.
const BLOCK_ROW: i64 = 6;

/// Blocks within a line are multiples of this.
const LANES: i64 = 64;

/// Innermost folded axes with so many elements are long: each of their rows is folded into lanes of its own.
const LONG_ROW: i64 = 64;

/// Sets that rows of few kept elements are folded into.
const SETS: i64 = primitives::LANES as i64;

/// How rows of columns lie that are the steps of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// One after the other in all slots that do not find the same in all rows: as many as there are sets are one long row.
    Joined,
    /// Otherwise.
    Apart,
}

/// Lines, blocks, and the loops around them.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) extents: Vec<i64>,
    pub(crate) dims: Vec<Dim>,
    /// Extents of the folded axes before merging.
    pub(crate) folded: Vec<i64>,
    /// The dimension that lines run along: the last, or the last but one when blocks span rows.
    pub(crate) line_dim: usize,
    /// Steps of a line: elements, or rows when blocks span rows.
    pub(crate) line: i64,
    /// Elements of a step.
    pub(crate) row: i64,
    /// Elements of the innermost folded axis if it is long. A line has one or, where axes are merged, several of its rows.
    pub(crate) long_row: Option<i64>,
    /// Kept elements of a row, if rows are folded into sets; else 0.
    pub(crate) columns: i64,
    /// How they lie if they are the steps of reduced lines.
    pub(crate) steps: Option<Steps>,
    /// Where blocks span rows, can these be one row, as slots go on from row to row or repeat elements?
    pub(crate) flat: bool,
    /// Are these rows so short, and of a number that compiled code cannot repeat elements for, that blocks are faster?
    pub(crate) for_blocks: bool,
    /// Steps of a block.
    pub(crate) step: i64,
}

impl Geometry {
    /// Chooses lines for a stage; [`Geometry::set_block`] completes it.
    pub(crate) fn new(kernel: &Kernel, parameters: &Parameters) -> Geometry {
        let (extents, dims, folded) = (parameters.extents.clone(), kernel.dims.clone(), parameters.folded.clone());
        let last = extents.len() - 1;
        let columns = parameters.columns;
        let is_long = |&row: &i64| row >= LONG_ROW && dims[last] == Dim::Reduced && columns == 0;
        let long_row = folded.last().copied().filter(is_long);
        let steps = Steps::new(kernel, parameters);
        if steps.is_some() {
            let (line_dim, line, row) = (last - 1, extents[last - 1], extents[last]);
            let step = (SPAN / row / SETS * SETS).max(SETS).min(line);
            let (flat, for_blocks) = (false, false);
            return Geometry {
                line_dim,
                line,
                row,
                long_row,
                columns,
                steps,
                flat,
                for_blocks,
                step,
                extents,
                dims,
                folded,
            };
        }
        let spans = last > 0
            && extents[last] < SHORT_ROW
            && extents[last] > 0
            && extents[last - 1] > 1
            && dims[last] == dims[last - 1];
        if spans {
            let (line, row) = (extents[last - 1], extents[last]);
            // Folded blocks are a whole number of a fold's lanes.
            let lanes = primitives::LANES as i64;
            let unit = if dims[last] == Dim::Reduced { lanes >> row.trailing_zeros().min(lanes.ilog2()) } else { 1 };
            let step = (SPAN / row / unit * unit).max(unit).min(line);
            let (line_dim, repeats, is_power) = (last - 1, repeats(kernel, parameters), row.count_ones() == 1);
            let (flat, for_blocks) = (repeats && is_power, repeats && !is_power && row <= BLOCK_ROW);
            Geometry { line_dim, line, row, long_row, columns, steps, flat, for_blocks, step, extents, dims, folded }
        } else {
            let line = extents[last];
            let step = line.max(1);
            let (line_dim, row, flat, for_blocks) = (last, 1, false, false);
            Geometry { line_dim, line, row, long_row, columns, steps, flat, for_blocks, step, extents, dims, folded }
        }
    }

    /// Do blocks span rows?
    pub(crate) fn spans(&self) -> bool {
        self.line_dim + 1 != self.extents.len()
    }

    /// Sets the most elements of a block, where blocks are parts of rows. Lines are cut evenly, into whole numbers of
    /// lanes, so that the length has no influence on folds.
    pub(crate) fn set_block(&mut self, elements: i64) {
        if !self.spans() && self.line > 0 {
            let blocks = (self.line + elements - 1) / elements;
            let even = (self.line + blocks - 1) / blocks;
            self.step = ((even + LANES - 1) / LANES * LANES).min(self.line);
        }
    }

    /// The most elements of a block.
    pub(crate) fn block(&self) -> usize {
        (self.step * self.row) as usize
    }

    /// Blocks of a line.
    pub(crate) fn blocks(&self) -> i64 {
        (self.line + self.step - 1) / self.step
    }

    /// The long rows of a line: more than one if a fold's axes are merged.
    pub(crate) fn rows_of_line(&self) -> i64 {
        self.long_row.map_or(1, |row| self.line / row)
    }

    /// The stride from line to line of a plane, for strides along the dimensions. The lines of a plane follow each other
    /// along the dimension around them; where a line is several long rows of a fold, these are the plane, and where all
    /// of a fold is one line, its chunks, and where rows of columns are steps, these, or as many as are joined. 0 if there is none.
    pub(crate) fn plane_stride(&self, strides: &[i64]) -> i64 {
        match self.steps {
            Some(Steps::Joined) => return strides[self.line_dim].wrapping_mul(SETS),
            Some(Steps::Apart) => return strides[self.line_dim],
            None => {}
        }
        match (self.long_row, self.chunk()) {
            (Some(row), _) if self.line > row => strides[self.line_dim].wrapping_mul(row),
            (_, Some(chunk)) => strides[self.line_dim].wrapping_mul(chunk),
            _ => self.line_dim.checked_sub(1).map_or(0, |dim| strides[dim]),
        }
    }

    /// Are rows of columns the steps of reduced lines, and as many as there are sets one long row?
    pub(crate) fn joins_rows(&self) -> bool {
        self.steps == Some(Steps::Joined)
    }

    /// Where rows are joined, does a slot find the same columns, several of them, in all rows?
    pub(crate) fn repeats(&self, strides: &[i64]) -> bool {
        self.joins_rows() && strides[self.line_dim] == 0 && strides[self.line_dim + 1] != 0
    }

    /// The elements of a chunk, if a fold's only line is several chunks, which begin at multiples of that.
    pub(crate) fn chunk(&self) -> Option<i64> {
        if self.extents.len() > 1 || self.line_role() != Dim::Reduced {
            return None;
        }
        let cut = Cut::new(&self.folded, self.long_row, self.columns);
        (cut.row.is_none() && cut.chunks > 1 && cut.per_group == cut.chunks).then_some(cut.elements)
    }

    /// The role of the dimension that lines run along.
    pub(crate) fn line_role(&self) -> Dim {
        self.dims[self.line_dim]
    }

    /// All iterations.
    pub(crate) fn iterations(&self) -> i64 {
        self.extents.iter().product()
    }
}

/// How a slot repeats elements where short rows are one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Not at all: it goes on from row to row.
    None,
    /// Each row is an element, the next one of its neighbours.
    Again,
    /// All rows are the same neighbours.
    Cycle,
}

impl Repeat {
    /// How a slot with these strides from row to row and along rows of so many elements does that; `None` if it does
    /// something else.
    pub(crate) fn of(slot: &Slot, (outer, inner): (i64, i64), row: i64) -> Option<Repeat> {
        let may = slot.mode == SlotMode::Read && !slot.dtype.is_complex();
        match (outer, inner) {
            _ if outer == inner.wrapping_mul(row) => Some(Repeat::None),
            (1, 0) if may => Some(Repeat::Again),
            (0, 1) if may => Some(Repeat::Cycle),
            _ => None,
        }
    }
}

/// Do the slots of a stage without folds go on from row to row or repeat elements?
fn repeats(kernel: &Kernel, parameters: &Parameters) -> bool {
    let dim = parameters.extents.len() - 1;
    let repeats = |(index, slot): (usize, &Slot)| {
        let strides = parameters.stride(index);
        Repeat::of(slot, (strides[dim - 1], strides[dim]), parameters.extents[dim]).is_some()
    };
    !kernel.reduces() && kernel.slots.iter().enumerate().all(repeats)
}

impl Steps {
    /// How rows of columns lie that are the innermost kept dimension of a stage, in a reduced one; `None` if there are none, or
    /// too few in a line.
    fn new(kernel: &Kernel, parameters: &Parameters) -> Option<Steps> {
        let (extents, columns) = (&parameters.extents, parameters.columns);
        let dim = extents.len().checked_sub(2)?;
        if columns == 0 || kernel.dims[dim..] != [Dim::Reduced, Dim::Kept] || extents[dim] < SETS {
            return None;
        }
        let follows = |slot: usize| {
            let strides = parameters.stride(slot);
            // An index view has no memory to be repeated from.
            let again = strides[dim] == 0 && kernel.slots[slot].mode != SlotMode::Index;
            again || strides[dim] == strides[dim + 1].wrapping_mul(columns)
        };
        match (extents[dim + 1] == columns, (0..kernel.slots.len()).all(follows)) {
            (true, true) => Some(Steps::Joined),
            (true, false) => Some(Steps::Apart),
            // Columns are several dimensions.
            (false, _) => None,
        }
    }
}

//! How a fold's iterations are divided into units of work, and its folded elements into chunks. Both come from the folded
//! view alone, so that the tree of a fold is always the same.

use super::ROW_SETS;
use super::chunks::{Chunks, WHOLE_ROW, split};
use super::levels::LoopLevel;
use super::lines::{LONG_ROW, Lines, LoopShape};
use crate::nest::kept_inside;
use crate::window::gcd;
use crate::{Dim, Stage};
use bh_bytecode::AxisOrder;
use std::ops::Range;

/// Elements of a chunk, about, where lines are kept: each leaves as many partial results as a line has elements.
const KEPT_CHUNK: i64 = 32_768;
/// The most elements of partial results, about, where lines are kept.
const PARTIALS: i64 = 1 << 20;
/// Where this many elements are kept, which are enough to share out, chunks have at least the first number of lines, and
/// else at least the second one: their results go through memory, and compiled code folds up to eight lines side by side.
const MANY_KEPT: i64 = 1 << 16;
const LINES: i64 = 64;
const FEW_LINES: i64 = 16;
/// Lines of a chunk where lines are kept and the tree is the fixed one.
pub const FIXED_LINES: i64 = 256;

/// The tree of folds that ask for the fixed one: the chunks, and what they are folded into.
#[derive(Clone, Debug)]
pub struct FixedTree {
    /// Are kept lines folded one after the other? Else elements go to lanes.
    pub keeps_lines: bool,
    /// Elements of a long row, each of which goes to the next set of lanes; `None` if all elements of a chunk are one row.
    pub row: Option<i64>,
    /// The chunks: of elements, or of kept lines.
    pub chunks: Chunks,
}

impl FixedTree {
    /// The tree over folded axes with these extents, outermost first; `keeps_lines`: the innermost axis of all is kept.
    pub fn new(folded: &[i64], keeps_lines: bool) -> FixedTree {
        let row = folded.last().copied().filter(|row| !keeps_lines && (LONG_ROW..=WHOLE_ROW).contains(row));
        let chunks = match keeps_lines {
            true => Chunks::even(folded.iter().product(), FIXED_LINES),
            false => Chunks::new(folded, row, 0),
        };
        FixedTree { keeps_lines, row, chunks }
    }
}

/// The outermost of the axes that a fold with a fixed tree takes, and how many of its rows make a chunk; `None` if chunks are other parts.
pub fn fixed_rows(shape: &[i64], reduced: u16, order: &AxisOrder) -> Option<(usize, i64)> {
    let of_fold = |&axis: &usize| reduced >> axis & 1 == 1 && shape[axis] != 1;
    let axes: Vec<usize> = order.axes().iter().map(|&axis| axis as usize).filter(of_fold).collect();
    let folded: Vec<i64> = axes.iter().map(|&axis| shape[axis]).collect();
    let (rows, inner) = folded.split_first()?;
    let inner: i64 = inner.iter().product();
    let chunks = FixedTree::new(&folded, kept_inside(shape, reduced, order).is_some()).chunks;
    let is_rows = inner > 0 && chunks.elements > 0 && chunks.elements % inner == 0 && chunks.group == rows * inner;
    is_rows.then(|| (axes[0], chunks.elements / inner))
}

/// How the elements of a result are folded. Element `i` of a chunk goes to lane `i % 32`, and the lanes are folded by halving,
/// unless a variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldTree {
    /// Each result is the fold of one line, and these lines follow each other along the dimension around them, if there is
    /// one.
    LineResults,
    /// The only line is several chunks.
    LineChunks,
    /// Several reduced lines make a result, beside those of the next one. They go to `sets` sets of lanes in turn.
    BesideResults {
        /// Sets of lanes.
        sets: usize,
    },
    /// Chunks are long rows, each of which goes to the next set of lanes. A line has one of them, or several.
    LongRows {
        /// Elements of a row.
        row: i64,
    },
    /// Chunks are parts of lines, or lines.
    Runs,
    /// Kept lines are folded element by element.
    KeptLines,
    /// Rows of columns, each of which goes to the next of 32 sets: kept lines, or the steps of reduced ones.
    Columns,
}

impl FoldTree {
    /// Is each line or row folded into lanes?
    #[inline]
    pub fn has_lanes(self) -> bool {
        !matches!(self, Self::Columns | Self::KeptLines)
    }

    /// Can compiled code join lanes to results, as it folds lines that make one each?
    pub fn joins_lanes(self) -> bool {
        matches!(self, Self::LineResults | Self::LineChunks)
    }
}

/// The loops of a stage with folds, and how they are divided.
#[derive(Clone, Debug)]
pub struct FoldLoops {
    /// Its lines.
    pub lines: Lines,
    /// How the elements of a result are folded.
    pub tree: FoldTree,
    /// The kept loops around lines.
    pub kept: LoopLevel,
    /// The reduced loops around lines.
    pub reduced: LoopLevel,
    /// How folded elements make chunks: where lines are kept, whole lines.
    pub chunks: Chunks,
}

/// Kept elements that are folded together, about: their accumulators fit the nearest cache.
const FOLDED: i64 = 4096;

/// One unit of work.
pub struct Unit {
    /// The iteration of the kept loops.
    pub kept: i64,
    /// The part of its line.
    pub part: i64,
    /// The chunk of its folded elements.
    pub chunk: i64,
}

impl FoldLoops {
    pub(super) fn new(stage: &Stage, mut lines: Lines) -> FoldLoops {
        let (dims, parameters) = (&stage.kernel.dims, &stage.parameters);
        let (folded, columns) = (&parameters.folded, parameters.columns);
        let level = |role: Dim| LoopLevel::of(&parameters.extents, (0..lines.dim).filter(|&dim| dims[dim] == role));
        let (kept, reduced) = (level(Dim::Kept), level(Dim::Reduced));
        let is_long = |&row: &i64| row >= LONG_ROW && dims.last() == Some(&Dim::Reduced) && columns == 0;
        let long_row = folded.last().copied().filter(is_long);
        let row = long_row.filter(|&row| row <= WHOLE_ROW);
        let keeps_lines = dims[lines.dim] == Dim::Kept;
        let chunks = match keeps_lines && columns == 0 {
            true if parameters.fixed => Chunks::even(reduced.count(), FIXED_LINES),
            true => chunks_of_kept(stage, kept.count() * lines.elements(), reduced.count()),
            false => Chunks::new(folded, row, columns),
        };
        let per_line = long_row.map_or(1, |row| lines.steps / row);
        let around = lines.dim.checked_sub(1).map(|dim| dims[dim]);
        let is_line = lines.steps > 0 && per_line == 1 && reduced.count() == 1 && around != Some(Dim::Reduced);
        let is_beside = around == Some(Dim::Kept) && per_line == 1 && reduced.count() > 1;
        let tree = match row.filter(|_| chunks.elements > 0) {
            _ if columns > 0 && (keeps_lines || lines.shape.has_columns()) => FoldTree::Columns,
            _ if keeps_lines => FoldTree::KeptLines,
            _ if lines.shape != LoopShape::Lines => FoldTree::Runs,
            _ if is_line && chunks.count == 1 => FoldTree::LineResults,
            None if lines.dim == 0 && chunks.count > 1 && chunks.per_group == chunks.count => FoldTree::LineChunks,
            row if is_beside && chunks.elements > 0 && chunks.elements % lines.steps == 0 => {
                FoldTree::BesideResults { sets: row.map_or(1, |_| ROW_SETS) }
            }
            Some(row) => FoldTree::LongRows { row },
            None => FoldTree::Runs,
        };
        match long_row {
            _ if lines.shape.has_columns() => {}
            Some(row) if lines.steps > row => lines.plane = (lines.dim, row),
            _ if tree == FoldTree::LineChunks => lines.plane = (lines.dim, chunks.elements),
            _ => {}
        }
        FoldLoops { lines, tree, kept, reduced, chunks }
    }

    /// Are lines kept, and folded element by element, or each into a set?
    #[inline]
    pub fn keeps_lines(&self) -> bool {
        !self.tree.has_lanes() && !self.lines.shape.has_columns()
    }

    /// Is the outermost loop reduced?
    #[inline]
    pub fn folds_outermost(&self) -> bool {
        self.reduced.0.first().map_or(self.lines.dim == 0 && !self.keeps_lines(), |&(dim, _)| dim == 0)
    }

    /// Kept elements of a line: 1 if it is reduced, but for columns.
    #[inline]
    pub fn line_elements(&self) -> i64 {
        match self.tree {
            FoldTree::Columns if self.lines.shape.has_columns() => self.lines.row,
            FoldTree::Columns | FoldTree::KeptLines => self.lines.elements(),
            _ => 1,
        }
    }

    /// Kept elements in all.
    #[inline]
    pub fn kept_elements(&self) -> i64 {
        self.kept.count() * self.line_elements()
    }

    /// Steps of a kept line that belong together, in whole blocks.
    #[inline]
    pub fn part_steps(&self) -> i64 {
        let Lines { block, row, .. } = self.lines;
        (FOLDED / row / block * block).max(block)
    }

    /// How many such parts a line has; one if it is reduced.
    #[inline]
    fn parts(&self) -> i64 {
        if self.keeps_lines() {
            let steps = self.part_steps();
            return (self.lines.steps + steps - 1) / steps;
        }
        1
    }

    /// Iterations of the outermost loop, which is reduced, that end with whole units; `None` if only all of them do.
    pub(super) fn whole_units(&self) -> Option<i64> {
        let each = self.outer_elements();
        match self.chunks {
            Chunks { count: 1, .. } => None,
            Chunks { group, .. } if each % group == 0 => Some(1),
            Chunks { group, per_group, elements, count } if count == per_group || group % elements == 0 => {
                Some(elements / gcd(elements, each))
            }
            Chunks { group, .. } => Some(group / gcd(group, each)),
        }
    }

    /// The number of elements, or of kept lines, that an iteration of an outermost loop that is reduced folds.
    fn outer_elements(&self) -> i64 {
        let Lines { dim, steps, row, .. } = self.lines;
        let (lines, steps) = if dim == 0 { (1, 1) } else { (self.reduced.inner(), steps) };
        match self.tree {
            _ if self.keeps_lines() => lines,
            // Columns are folded each for itself.
            FoldTree::Columns => lines * steps,
            _ => lines * steps * row,
        }
    }

    /// The kept iterations of some iterations of the outermost loop, if that is kept.
    pub fn kept_of(&self, iterations: Range<i64>) -> Range<i64> {
        let each = self.kept.inner();
        iterations.start * each..iterations.end * each
    }

    /// The units of some iterations of the outermost loop, which [`Schedule::whole_units`](super::Schedule::whole_units)
    /// allows.
    pub fn units_of(&self, iterations: Range<i64>) -> Range<i64> {
        if !self.folds_outermost() {
            let (kept, each) = (self.kept_of(iterations), self.chunks.count * self.parts());
            return kept.start * each..kept.end * each;
        }
        let extent = self.reduced.0.first().map_or(self.lines.steps, |&(_, extent)| extent);
        let (each, units) = (self.outer_elements(), self.kept.count() * self.parts());
        let chunk = |iteration: i64| {
            let Chunks { group, per_group, elements, count } = self.chunks;
            match iteration == extent {
                true => count,
                false => iteration * each / group * per_group + iteration * each % group / elements.max(1),
            }
        };
        chunk(iterations.start) * units..chunk(iterations.end) * units
    }

    /// The number of units of work: each gives one partial result for one kept element or one part of a line.
    pub fn units(&self) -> i64 {
        self.kept.count() * self.chunks.count * self.parts()
    }

    /// A unit.
    #[inline]
    pub fn unit(&self, unit: i64) -> Unit {
        let parts = self.parts();
        match self.tree {
            // All units of a chunk follow each other, as reduced loops surround all kept ones.
            _ if self.folds_outermost() => {
                let (chunk, inside) = split(unit, self.kept.count() * parts);
                let (kept, part) = split(inside, parts);
                Unit { kept, part, chunk }
            }
            // The same chunk of all results that lie beside each other.
            FoldTree::BesideResults { .. } => {
                let beside = self.kept.0.last().map_or(1, |&(_, extent)| extent);
                let (outer, inside) = split(unit, self.chunks.count * beside);
                let (chunk, inner) = split(inside, beside);
                Unit { kept: outer * beside + inner, part: 0, chunk }
            }
            // The chunks of a result.
            _ => {
                let (kept, inside) = split(unit, self.chunks.count * parts);
                let (chunk, part) = split(inside, parts);
                Unit { kept, part, chunk }
            }
        }
    }

    /// How many lines, from an index of the reduced loops on, lie one plane apart.
    #[inline]
    pub fn lines_ahead(&self, index: &[i64]) -> i64 {
        match self.reduced.0.last() {
            Some(&(dim, _)) if dim + 1 == self.lines.dim => self.reduced.ahead(index),
            _ => 1,
        }
    }
}

/// The chunks of `lines` kept lines, which have `kept_elements` elements in all.
fn chunks_of_kept(stage: &Stage, kept_elements: i64, lines: i64) -> Chunks {
    let most = (PARTIALS / kept_elements.max(1)).max(1);
    // However much of it is merged into lines.
    let dims = stage.parameters.extents.iter().zip(&stage.kernel.dims);
    let run: i64 = dims.rev().take_while(|(_, dim)| **dim == Dim::Kept).map(|(extent, _)| extent).product();
    let least = if kept_elements < MANY_KEPT { FEW_LINES } else { LINES };
    Chunks::even(lines, ((lines + most - 1) / most).max(KEPT_CHUNK / run.max(1)).max(least))
}

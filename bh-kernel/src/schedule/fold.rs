//! The loops of a stage with folds, and how its iterations are divided into units of work, along the tree of its folds.

use super::chunks::{Chunks, split};
use super::levels::LoopLevel;
use super::lines::{Lines, LoopShape};
use super::tree::{FoldTree, Grouping, LONG_ROW, ROW_SETS};
use crate::window::gcd;
use crate::{Dim, Stage};
use std::ops::Range;

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
        let columns = parameters.columns;
        let level = |role: Dim| LoopLevel::of(&parameters.extents, (0..lines.dim).filter(|&dim| dims[dim] == role));
        let (kept, reduced) = (level(Dim::Kept), level(Dim::Reduced));
        let keeps_lines = dims[lines.dim] == Dim::Kept;
        let Grouping { row, chunks, .. } = Grouping::of(stage, keeps_lines);
        let is_long = |&row: &i64| row >= LONG_ROW && !keeps_lines && columns == 0;
        let long_row = parameters.folded.last().copied().filter(is_long);
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

//! How a fold's iterations are divided into units of work, and its folded elements into chunks. Both come from the folded
//! view alone, so that the tree of a fold is always the same.

use super::chunks::{Chunks, split};
use super::levels::LoopLevel;
use super::nest::LoopNest;
use super::tree::ReductionTree;
use bh_kernel::{Dim, Stage, gcd};
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

/// How the iterations of a fold are divided.
#[derive(Debug)]
pub(crate) struct Reduction {
    pub(crate) tree: ReductionTree,
    /// The kept loops around lines.
    pub(crate) kept: LoopLevel,
    /// The reduced loops around lines.
    pub(crate) reduced: LoopLevel,
    /// Kept elements in all.
    pub(crate) kept_elements: i64,
    /// Kept elements of a line: 1 if it is reduced, but for columns.
    pub(crate) line_elements: i64,
    /// Steps of a line that belong together, and how many such parts a line has.
    pub(crate) part_steps: i64,
    parts: i64,
    /// How folded elements make chunks: where lines are kept, whole lines.
    pub(crate) chunks: Chunks,
    order: UnitOrder,
}

/// Kept elements that are folded together, about: what they are folded into fits the nearest cache.
const FOLDED: i64 = 4096;

/// Which units follow each other.
#[derive(Debug)]
enum UnitOrder {
    /// All of a chunk, as reduced loops surround all kept ones.
    ChunksOutside,
    /// The same chunk of all results that lie beside each other.
    Beside,
    /// The chunks of a result.
    ResultsOutside,
}

/// One unit of work.
pub(crate) struct Unit {
    /// The iteration of the kept loops.
    pub(crate) kept: i64,
    /// The part of its line.
    pub(crate) part: i64,
    pub(crate) chunk: i64,
}

impl Reduction {
    /// Divides a nest.
    pub(crate) fn new(nest: &LoopNest, tree: ReductionTree) -> Reduction {
        let level = |role: Dim| LoopLevel::of(&nest.extents, (0..nest.line_dim).filter(|&dim| nest.dims[dim] == role));
        let (kept, reduced) = (level(Dim::Kept), level(Dim::Reduced));
        let reduced_chunks = || Chunks::new(&nest.folded, nest.long_row, nest.columns);
        let (line_elements, part_steps, parts, chunks) = match tree {
            ReductionTree::KeptLines | ReductionTree::KeptColumns => {
                let part_steps = (FOLDED / nest.row / nest.step * nest.step).max(nest.step);
                let (line, parts) = (nest.line * nest.row, (nest.line + part_steps - 1) / part_steps);
                (line, part_steps, parts, kept_chunks(nest, tree, kept.count() * line, reduced.count()))
            }
            ReductionTree::ColumnRows => (nest.row, nest.line, 1, reduced_chunks()),
            _ => (1, nest.line, 1, reduced_chunks()),
        };
        Reduction {
            tree,
            kept_elements: kept.count() * line_elements,
            kept,
            reduced,
            line_elements,
            part_steps,
            parts,
            chunks,
            order: match tree {
                _ if nest.dims[0] == Dim::Reduced => UnitOrder::ChunksOutside,
                ReductionTree::BesideResults { .. } => UnitOrder::Beside,
                _ => UnitOrder::ResultsOutside,
            },
        }
    }

    /// Iterations of a stage's outermost loop that end with whole units; `None` if only all of them do.
    pub(crate) fn rows_of(stage: &Stage) -> Option<i64> {
        let nest = LoopNest::new(&stage.kernel, &stage.parameters);
        let Some(tree) = nest.tree.filter(|_| nest.dims[0] == Dim::Reduced) else {
            return (nest.line_dim > 0).then_some(1);
        };
        let reduction = Reduction::new(&nest, tree);
        let each = reduction.outer_elements(&nest);
        match reduction.chunks {
            Chunks { count: 1, .. } => None,
            Chunks { group, .. } if each % group == 0 => Some(1),
            Chunks { group, per_group, elements, count, .. } if count == per_group || group % elements == 0 => {
                Some(elements / gcd(elements, each))
            }
            Chunks { group, .. } => Some(group / gcd(group, each)),
        }
    }

    /// What is folded in one iteration of an outermost loop that is reduced: elements, or lines where they are kept.
    fn outer_elements(&self, nest: &LoopNest) -> i64 {
        let lines = || self.reduced.count() / nest.extents[0];
        match (nest.line_dim, self.tree) {
            // Columns are folded each for itself.
            (0, ReductionTree::ColumnRows) => 1,
            (0, _) => nest.row,
            (_, ReductionTree::KeptLines | ReductionTree::KeptColumns) => lines(),
            (_, ReductionTree::ColumnRows) => lines() * nest.line,
            _ => lines() * nest.line * nest.row,
        }
    }

    /// The kept iterations of some iterations of the outermost loop, if that is kept.
    pub(crate) fn kept_of(&self, nest: &LoopNest, iterations: Range<i64>) -> Range<i64> {
        let each = self.kept.count() / nest.extents[0];
        iterations.start * each..iterations.end * each
    }

    /// The units of some iterations of the outermost loop, which [`Reduction::rows_of`] allows.
    pub(crate) fn units_of(&self, nest: &LoopNest, iterations: Range<i64>) -> Range<i64> {
        if nest.dims[0] == Dim::Kept {
            let (kept, each) = (self.kept_of(nest, iterations), self.chunks.count * self.parts);
            return kept.start * each..kept.end * each;
        }
        let (extent, each) = (nest.extents[0], self.outer_elements(nest));
        let units = self.kept.count() * self.parts;
        let chunk = |iteration: i64| {
            let Chunks { group, per_group, elements, count, .. } = self.chunks;
            match iteration == extent {
                true => count,
                false => iteration * each / group * per_group + iteration * each % group / elements.max(1),
            }
        };
        chunk(iterations.start) * units..chunk(iterations.end) * units
    }

    /// Are whole lines folded, several of them for a result?
    pub(crate) fn folds_lines(&self) -> bool {
        match self.tree {
            ReductionTree::LongRows { per_line: 1, .. } => self.reduced.count() > 1,
            ReductionTree::BesideResults { sets } => sets > 1,
            _ => false,
        }
    }

    /// The number of units of work: each gives one partial result for one kept element or one part of a line.
    pub(crate) fn units(&self) -> i64 {
        self.kept.count() * self.chunks.count * self.parts
    }

    /// A unit.
    pub(crate) fn unit(&self, unit: i64) -> Unit {
        match self.order {
            UnitOrder::ChunksOutside => {
                let (chunk, inside) = split(unit, self.kept.count() * self.parts);
                let (kept, part) = split(inside, self.parts);
                Unit { kept, part, chunk }
            }
            UnitOrder::Beside => {
                let beside = self.kept.0.last().map_or(1, |&(_, extent)| extent);
                let (outer, inside) = split(unit, self.chunks.count * beside);
                let (chunk, inner) = split(inside, beside);
                Unit { kept: outer * beside + inner, part: 0, chunk }
            }
            UnitOrder::ResultsOutside => {
                let (kept, inside) = split(unit, self.chunks.count * self.parts);
                let (chunk, part) = split(inside, self.parts);
                Unit { kept, part, chunk }
            }
        }
    }

    /// How many lines, from an index of the reduced loops on, lie one plane apart.
    pub(crate) fn lines_ahead(&self, nest: &LoopNest, index: &[i64]) -> i64 {
        match self.reduced.0.last() {
            Some(&(dim, _)) if dim + 1 == nest.line_dim => self.reduced.ahead(index),
            _ => 1,
        }
    }
}

/// The chunks of `lines` kept lines, which have `kept_elements` elements in all.
fn kept_chunks(nest: &LoopNest, tree: ReductionTree, kept_elements: i64, lines: i64) -> Chunks {
    if tree == ReductionTree::KeptColumns {
        return Chunks::new(&nest.folded, None, nest.columns);
    }
    let most = (PARTIALS / kept_elements.max(1)).max(1);
    // However much of it is merged into lines.
    let run = (0..nest.dims.len()).rev().take_while(|&dim| nest.dims[dim] == Dim::Kept);
    let run: i64 = run.map(|dim| nest.extents[dim]).product();
    let least = if kept_elements < MANY_KEPT { FEW_LINES } else { LINES };
    Chunks::even(lines, ((lines + most - 1) / most).max(KEPT_CHUNK / run.max(1)).max(least))
}

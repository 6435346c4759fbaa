//! How a fold's iterations are divided into units of work, and its folded elements into chunks. Both come from the folded
//! view alone, so that the tree of a fold is always the same.

use super::cursor::Level;
use crate::program::{Cut, FOLDED, Geometry, gcd, split};
use bh_fuser::lower::{Dim, Stage};
use std::ops::Range;

/// Elements of a chunk, about, where lines are kept: each leaves as many partial results as a line has elements.
const KEPT_CHUNK: i64 = 32_768;
/// The most elements of partial results, about, where lines are kept.
const PARTIALS: i64 = 1 << 20;
/// Where so many elements are kept, which are enough to share out, chunks have at least so many lines, and else at least so
/// few: their results go through memory, and compiled code folds up to eight lines side by side.
const MANY_KEPT: i64 = 1 << 16;
const LINES: i64 = 64;
const FEW_LINES: i64 = 16;

/// How the iterations are divided.
#[derive(Debug)]
pub(crate) struct Division {
    /// The kept loops around lines.
    pub(super) kept: Level,
    /// The reduced loops around lines.
    pub(super) reduced: Level,
    /// Are lines reduced?
    pub(super) line_reduced: bool,
    /// Kept elements in all.
    pub(super) kept_elements: i64,
    /// Kept elements of a line: 1 if it is reduced, but for columns.
    pub(super) line_elements: i64,
    /// Steps of a line that belong together, and how many such parts a line has.
    pub(super) part_steps: i64,
    pub(super) parts: i64,
    /// Chunks of one (kept) result.
    pub(super) chunks: i64,
    /// How folded elements make chunks: where lines are kept, whole lines.
    pub(super) cut: Cut,
    /// Do reduced loops surround all kept ones?
    pub(super) chunks_outside: bool,
    /// Do lines that are reduced, several of them for a result, lie beside those of the next result?
    pub(super) lies_beside: bool,
}

impl Division {
    /// Divides a nest; about `tile` kept elements are folded together, which changes nothing else.
    pub(crate) fn new(geometry: &Geometry, tile: i64) -> Division {
        let level = |role: Dim| {
            let dims = (0..geometry.line_dim).filter(|&dim| geometry.dims[dim] == role);
            Level(dims.map(|dim| (dim, geometry.extents[dim])).collect())
        };
        let (kept, reduced) = (level(Dim::Kept), level(Dim::Reduced));
        let ceil = |a: i64, b: i64| (a + b - 1) / b;
        let chunks_outside = geometry.dims[0] == Dim::Reduced;
        if geometry.line_role() == Dim::Reduced {
            let cut = Cut::new(&geometry.folded, geometry.long_row, geometry.columns);
            let line_elements = if geometry.steps.is_some() { geometry.row } else { 1 };
            let around = geometry.line_dim.checked_sub(1).map(|dim| geometry.dims[dim]);
            let lies_beside = around == Some(Dim::Kept)
                && !geometry.spans()
                && geometry.rows_of_line() == 1
                && reduced.count() > 1
                && cut.elements > 0
                && cut.elements % geometry.line == 0;
            Division {
                kept_elements: kept.count() * line_elements,
                kept,
                reduced,
                line_reduced: true,
                line_elements,
                part_steps: geometry.line,
                parts: 1,
                chunks: cut.chunks,
                cut,
                chunks_outside,
                lies_beside,
            }
        } else {
            let line = geometry.line * geometry.row;
            let (kept_elements, rows) = (kept.count() * line, reduced.count());
            let most = (PARTIALS / kept_elements.max(1)).max(1);
            // However much of it is merged into lines.
            let run = (0..geometry.dims.len()).rev().take_while(|&dim| geometry.dims[dim] == Dim::Kept);
            let run: i64 = run.map(|dim| geometry.extents[dim]).product();
            let least = if kept_elements < MANY_KEPT { FEW_LINES } else { LINES };
            let cut = match geometry.columns {
                0 => Cut::even(rows, ceil(rows, most).max(KEPT_CHUNK / run.max(1)).max(least)),
                columns => Cut::new(&geometry.folded, None, columns),
            };
            let part_steps = (tile / geometry.row / geometry.step * geometry.step).max(geometry.step);
            Division {
                kept,
                reduced,
                line_reduced: false,
                kept_elements,
                line_elements: line,
                part_steps,
                parts: ceil(geometry.line, part_steps),
                chunks: cut.chunks,
                cut,
                chunks_outside,
                lies_beside: false,
            }
        }
    }

    /// Iterations of a stage's outermost loop that end with whole units; `None` if only all of them do.
    pub(crate) fn rows_of(stage: &Stage) -> Option<i64> {
        let geometry = Geometry::new(&stage.kernel, &stage.parameters);
        let division = Division::new(&geometry, FOLDED);
        if geometry.dims[0] == Dim::Kept {
            return (geometry.line_dim > 0).then_some(1);
        }
        if division.chunks == 1 {
            return None;
        }
        let each = division.outer_elements(&geometry);
        let Cut { group, per_group, elements, chunks, .. } = division.cut;
        if each % group == 0 {
            Some(1)
        } else if chunks == per_group || group % elements == 0 {
            Some(elements / gcd(elements, each))
        } else {
            Some(group / gcd(group, each))
        }
    }

    /// What is folded in one iteration of an outermost loop that is reduced: elements, or lines where they are kept.
    pub(super) fn outer_elements(&self, geometry: &Geometry) -> i64 {
        // Columns are folded each for itself.
        let row = if geometry.steps.is_some() { 1 } else { geometry.row };
        match (geometry.line_dim, self.line_reduced) {
            (0, _) => row,
            (_, true) => self.reduced.count() / geometry.extents[0] * geometry.line * row,
            (_, false) => self.reduced.count() / geometry.extents[0],
        }
    }

    /// The kept iterations of some iterations of the outermost loop, if that is kept.
    pub(super) fn kept_of(&self, geometry: &Geometry, iterations: Range<i64>) -> Range<i64> {
        let each = self.kept.count() / geometry.extents[0];
        iterations.start * each..iterations.end * each
    }

    /// The units of some iterations of the outermost loop, which [`Division::rows_of`] allows.
    pub(super) fn units_of(&self, geometry: &Geometry, iterations: Range<i64>) -> Range<i64> {
        let extent = geometry.extents[0];
        let parts = if self.line_reduced { 1 } else { self.parts };
        if geometry.dims[0] == Dim::Kept {
            let (kept, each) = (self.kept_of(geometry, iterations), self.chunks * parts);
            return kept.start * each..kept.end * each;
        }
        let each = self.outer_elements(geometry);
        let units = self.kept.count() * parts;
        let chunk = |iteration: i64| {
            let Cut { group, per_group, elements, .. } = self.cut;
            match iteration == extent {
                true => self.chunks,
                false => iteration * each / group * per_group + iteration * each % group / elements.max(1),
            }
        };
        chunk(iterations.start) * units..chunk(iterations.end) * units
    }

    /// Are whole lines folded, several of them for a result?
    pub(crate) fn folds_lines(&self, geometry: &Geometry) -> bool {
        self.line_reduced
            && !geometry.spans()
            && self.cut.row.is_some()
            && geometry.rows_of_line() == 1
            && self.reduced.count() > 1
    }

    /// Is each result the fold of one line, so that a unit is a line, and do these follow each other along the dimension
    /// around them, if there is one?
    pub(crate) fn has_lines_for_results(&self, geometry: &Geometry) -> bool {
        self.line_reduced
            && geometry.line_dim.checked_sub(1).is_none_or(|dim| geometry.dims[dim] == Dim::Kept)
            && !geometry.spans()
            && geometry.line > 0
            && geometry.rows_of_line() == 1
            && self.reduced.count() == 1
            && self.chunks == 1
    }

    /// The number of units of work: each gives one partial result for one kept element or one part of a line.
    pub(super) fn units(&self) -> i64 {
        self.kept.count() * self.chunks * if self.line_reduced { 1 } else { self.parts }
    }

    /// The unit that comes next where parts of all planes are folded before the next part: with lines that are reduced,
    /// and groups of several chunks, which are what is folded of a plane.
    pub(super) fn in_tiles(&self, at: i64) -> i64 {
        let Cut { per_group, chunks, .. } = self.cut;
        if !self.line_reduced || self.kept.count() > 1 || per_group <= 1 {
            return at;
        }
        let groups = chunks / per_group;
        at % groups * per_group + at / groups
    }

    /// The kept iteration, the part of the line and the chunk of a unit.
    pub(super) fn unit(&self, unit: i64) -> (i64, i64, i64) {
        let parts = if self.line_reduced { 1 } else { self.parts };
        let kept = self.kept.count();
        if self.chunks_outside {
            let (chunk, inside) = split(unit, kept * parts);
            let (kept_iteration, part) = split(inside, parts);
            (kept_iteration, part, chunk)
        } else if self.lies_beside {
            // The same chunk of all that lie beside each other.
            let beside = self.kept.0.last().map_or(1, |&(_, extent)| extent);
            let (outer, inside) = split(unit, self.chunks * beside);
            let (chunk, inner) = split(inside, beside);
            (outer * beside + inner, 0, chunk)
        } else {
            let (kept_iteration, inside) = split(unit, self.chunks * parts);
            let (chunk, part) = split(inside, parts);
            (kept_iteration, part, chunk)
        }
    }
}

//! The tree of a fold: the accumulators that its elements go to, their grouping into chunks, and the order in which partial results
//! are joined. It comes from the folded view alone, so that a fold always has the same bits. Block programs, compiled code, work at
//! once, the fixed trees of devices, and ranks read it here.
//!
//! ```text
//! elements of a chunk ──► lanes, or sets of lanes ──► sets by SET_PAIRS ──► lanes by halvings(LANES) ──► result of the chunk
//! results of chunks ────► by halvings(count) ──► result
//! ```

use super::chunks::Chunks;
use crate::nest::kept_inside;
use crate::{Dim, FoldAxes, Stage};
use bh_bytecode::AxisOrder;

/// Lanes of a fold: element `i` goes to lane `i % LANES`.
pub const LANES: usize = 32;

/// Sets of lanes that long rows are folded into in turn: row `r` of a chunk goes to set `r % ROW_SETS`.
pub const ROW_SETS: usize = 4;

/// How the sets of long rows are joined, in order: the first set of each pair takes the second one, lane by lane.
pub const SET_PAIRS: [(usize, usize); ROW_SETS - 1] = [(0, 1), (2, 3), (0, 2)];

/// Innermost folded axes with at least this many elements are long: each of their rows is folded into lanes of its own.
pub const LONG_ROW: i64 = 64;
/// Longer rows are cut into chunks; of those up to here a chunk has four or more, if there are four.
const WHOLE_ROW: i64 = 32_768;

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

/// The steps in which partial results are folded by halving into the first of them. A step `(pairs, from)` lets each of the first
/// `pairs` results take one of those from number `from` on, in order; `from` results are left.
pub fn halvings(count: i64) -> impl Iterator<Item = (i64, i64)> {
    let left = std::iter::successors(Some(count), |left| Some((left + 1) / 2)).take_while(|&left| left > 1);
    left.map(|left| (left / 2, (left + 1) / 2))
}

/// Does each row of this many elements go to the next set of lanes, if it is the innermost of the folded axes and folded into lanes?
pub fn is_long_row(elements: i64) -> bool {
    (LONG_ROW..=WHOLE_ROW).contains(&elements)
}

/// How the folded elements of a result are grouped.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// Are kept lines folded one after the other, element by element? Else elements go to lanes.
    pub keeps_lines: bool,
    /// Elements of a long row; `None` if all elements of a chunk are one row.
    pub row: Option<i64>,
    /// The chunks: of elements, or of kept lines.
    pub chunks: Chunks,
}

impl Grouping {
    /// The fixed tree over folded axes with these extents, outermost first; `keeps_lines`: the innermost axis of all is kept.
    pub fn fixed(folded: &[i64], keeps_lines: bool) -> Grouping {
        match keeps_lines {
            true => Grouping { keeps_lines, row: None, chunks: Chunks::even(folded.iter().product(), FIXED_LINES) },
            false => Grouping::in_lanes(folded),
        }
    }

    fn in_lanes(folded: &[i64]) -> Grouping {
        let row = folded.last().copied().filter(|&row| is_long_row(row));
        Grouping { keeps_lines: false, row, chunks: Chunks::new(folded, row, 0) }
    }

    /// The tree of a stage; `keeps_lines`: its lines are kept.
    pub(super) fn of(stage: &Stage, keeps_lines: bool) -> Grouping {
        let parameters = &stage.parameters;
        match parameters.columns {
            0 if parameters.fixed => Grouping::fixed(&parameters.folded, keeps_lines),
            0 if keeps_lines => Grouping { keeps_lines, row: None, chunks: chunks_of_kept(stage) },
            0 => Grouping::in_lanes(&parameters.folded),
            columns => Grouping { keeps_lines, row: None, chunks: Chunks::new(&parameters.folded, None, columns) },
        }
    }
}

/// The chunks of kept lines.
fn chunks_of_kept(stage: &Stage) -> Chunks {
    let dims = || stage.parameters.extents.iter().zip(&stage.kernel.dims);
    let of = |role: Dim| dims().filter(|(_, dim)| **dim == role).map(|(extent, _)| extent).product::<i64>();
    let (kept, lines) = (of(Dim::Kept), of(Dim::Reduced));
    let most = (PARTIALS / kept.max(1)).max(1);
    // However much of it is merged into lines.
    let run: i64 = dims().rev().take_while(|(_, dim)| **dim == Dim::Kept).map(|(extent, _)| extent).product();
    let least = if kept < MANY_KEPT { FEW_LINES } else { LINES };
    Chunks::even(lines, ((lines + most - 1) / most).max(KEPT_CHUNK / run.max(1)).max(least))
}

/// The outermost of the axes that a fold with a fixed tree takes, and how many of its rows make a chunk; `None` if chunks are other parts.
pub fn fixed_rows(shape: &[i64], reduced: u16, order: &AxisOrder) -> Option<(usize, i64)> {
    let of_fold = |&axis: &usize| reduced >> axis & 1 == 1 && shape[axis] != 1;
    let axes: Vec<usize> = order.axes().iter().map(|&axis| axis as usize).filter(of_fold).collect();
    let folded: Vec<i64> = axes.iter().map(|&axis| shape[axis]).collect();
    let (rows, inner) = folded.split_first()?;
    let inner: i64 = inner.iter().product();
    let chunks = Grouping::fixed(&folded, kept_inside(shape, reduced, order).is_some()).chunks;
    let is_rows = inner > 0 && chunks.elements > 0 && chunks.elements % inner == 0 && chunks.group == rows * inner;
    is_rows.then(|| (axes[0], chunks.elements / inner))
}

/// Is all that is folded into a result one chunk, whatever else the fold's kernel does?
pub fn is_one_chunk(fold: &FoldAxes, order: &AxisOrder) -> bool {
    let folded: Vec<i64> = fold.extents(Dim::Reduced).collect();
    let chunks = match (fold.columns, fold.in_lanes) {
        (0, in_lanes) if in_lanes || order.is_fixed() => Grouping::fixed(&folded, !in_lanes).chunks,
        (0, _) => {
            let (kept, lines) = (fold.extents(Dim::Kept).product::<i64>(), folded.iter().product::<i64>());
            return lines <= FEW_LINES || kept.saturating_mul(lines) <= KEPT_CHUNK;
        }
        (columns, _) => Chunks::new(&folded, None, columns),
    };
    chunks.count == 1
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

#[cfg(test)]
mod tests {
    use super::halvings;

    #[test]
    fn halvings_join_each_half_with_the_other_in_order() {
        assert_eq!(halvings(0).count() + halvings(1).count(), 0);
        for count in 2..200 {
            // Each result is the list of those that it is made of.
            let mut results: Vec<Vec<i64>> = (0..count).map(|at| vec![at]).collect();
            let mut wanted = results.clone();
            for (pairs, from) in halvings(count) {
                for at in 0..pairs as usize {
                    let taken = results[from as usize + at].clone();
                    results[at].extend(taken);
                }
            }
            while wanted.len() > 1 {
                let upper = wanted.split_off(wanted.len().div_ceil(2));
                wanted.iter_mut().zip(upper).for_each(|(to, from)| to.extend(from));
            }
            assert_eq!(results[0], wanted[0], "{count}");
        }
    }
}

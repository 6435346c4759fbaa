//! How folded elements are cut into chunks, whose results are folded in turn. It depends on the shape alone, so that folds
//! have one tree.

use super::tree::{LANES, ROW_SETS};
use crate::window::gcd;

/// Elements of a chunk, about, where lines are reduced: so few that participants finish at about the same time.
const CHUNK: i64 = 8192;

/// Elements of a chunk, about, where rows of few kept elements are folded into sets.
const COLUMNS_CHUNK: i64 = 32_768;

/// How the folded elements of one result are cut into chunks. As the boundaries come from the extents of axes alone, each
/// chunk is a part of a line or a number of lines, or of the long rows of a line, whatever dimensions are merged.
#[derive(Clone, Debug)]
pub struct Chunks {
    /// Chunks start anew after this many elements: those of an inner part of the axes.
    pub group: i64,
    /// Chunks of a group.
    pub per_group: i64,
    /// Elements of a chunk that is not the last of its group.
    pub elements: i64,
    /// Chunks in all; at least one.
    pub count: i64,
}

impl Chunks {
    /// Cuts the elements of these axes, outermost first. The innermost one may be a row of which chunks have whole ones; with
    /// `columns`, each is one of a row of `columns` elements that are kept.
    pub(super) fn new(folded: &[i64], row: Option<i64>, columns: i64) -> Chunks {
        if folded.contains(&0) {
            return Chunks::even(0, 1);
        }
        if columns > 0 {
            // A power of two, as other chunks are, so that sliding windows find iterations at which several folds' chunks end.
            let rows = 1 << (COLUMNS_CHUNK / columns).ilog2();
            return Chunks::of(folded, rows, LANES as i64);
        }
        let sets = ROW_SETS as i64;
        match (row, folded.split_last()) {
            (Some(row), Some((_, outer))) => {
                // Rows side by side need four of them, even if that is more than a chunk has else.
                let rows = Chunks::of(outer, (CHUNK / row / sets * sets).max(sets), sets);
                Chunks { group: rows.group * row, elements: rows.elements * row, ..rows }
            }
            _ => Chunks::of(folded, CHUNK, 1),
        }
    }

    /// Cuts into chunks of at most `most` elements, and of a multiple of `unit` if there are that many.
    fn of(axes: &[i64], most: i64, unit: i64) -> Chunks {
        let mut inner = 1;
        let mut rest = axes.iter().rev();
        // As many inner axes as a chunk holds, and the next one.
        let next = loop {
            match rest.next() {
                Some(&extent) if inner * extent <= most => inner *= extent,
                Some(&extent) => break extent,
                None => break 1,
            }
        };
        let (mut steps, unit) = ((most / inner).clamp(1, next), unit / gcd(unit, inner));
        if steps >= unit {
            steps -= steps % unit;
        }
        let per_group = (next + steps - 1) / steps;
        let count = axes.iter().product::<i64>() / (inner * next) * per_group;
        Chunks { group: inner * next, per_group, elements: inner * steps, count }
    }

    /// Cuts `elements` elements into chunks of `each`.
    pub(super) fn even(elements: i64, each: i64) -> Chunks {
        if elements == 0 {
            return Chunks { group: 1, per_group: 1, elements: 0, count: 1 };
        }
        let count = (elements + each - 1) / each;
        Chunks { group: elements, per_group: count, elements: each, count }
    }

    /// The first element of a chunk and their number.
    #[inline]
    pub fn chunk(&self, chunk: i64) -> (i64, i64) {
        let (group, number) = split(chunk, self.per_group);
        let first = number * self.elements;
        (group * self.group + first, self.elements.min(self.group - first))
    }
}

/// Quotient and remainder of numbers that are not negative. Divisions take longer than all else that a small unit needs
/// beside its elements, and these are mostly trivial.
#[inline]
pub fn split(number: i64, by: i64) -> (i64, i64) {
    match by {
        1 => (number, 0),
        _ if number < by => (0, number),
        _ => (number / by, number % by),
    }
}

//! Cuts of arrays and iteration spaces: rank `r` owns the elements from `cuts.at(r)` to before `cuts.at(r + 1)`. Cuts
//! are formulas, so their size does not depend on the number of ranks.

use crate::plan::boxes::Span;
use bh_bytecode::{Base, BatchRef, View};
use std::ops::Range;
use std::sync::Arc;

/// Each rank's weight in the distribution of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    ranks: usize,
    /// `None` if all weights are equal.
    uneven: Option<Arc<Uneven>>,
}

/// Unequal weights.
#[derive(Debug, PartialEq)]
struct Uneven {
    each: Vec<f64>,
    /// Sums of the weights up to and including each rank's.
    sums: Vec<f64>,
    smallest: f64,
}

impl Weights {
    /// Equal weights.
    pub fn even(ranks: usize) -> Weights {
        Weights { ranks, uneven: None }
    }

    /// The given weights, one per rank. `None` unless they are finite, not negative, and not all 0.
    pub fn given(weights: Vec<f64>) -> Option<Weights> {
        let fit = weights.iter().all(|&weight| weight >= 0.0 && weight.is_finite());
        if !fit || weights.iter().all(|&weight| weight == 0.0) {
            return None;
        }
        let ranks = weights.len();
        if weights.iter().all(|&weight| weight == weights[0]) {
            return Some(Weights::even(ranks));
        }
        let running = |sum: &mut f64, weight: &f64| {
            *sum += weight;
            Some(*sum)
        };
        let sums = weights.iter().scan(0.0, running).collect();
        let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        Some(Weights { ranks, uneven: Some(Arc::new(Uneven { each: weights, sums, smallest })) })
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Are they identical? A quick test: one planner's weights share memory.
    fn are(&self, other: &Weights) -> bool {
        let same = match (&self.uneven, &other.uneven) {
            (None, None) => true,
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            _ => false,
        };
        same && self.ranks == other.ranks
    }

    /// The weights by rank; empty if all are equal.
    pub fn as_slice(&self) -> &[f64] {
        match self.uneven.as_deref() {
            None => &[],
            Some(uneven) => &uneven.each,
        }
    }

    /// The first of `count` items that a rank gets.
    fn first(&self, count: i64, rank: usize) -> i64 {
        if rank == 0 || rank >= self.ranks {
            return if rank == 0 { 0 } else { count };
        }
        match self.uneven.as_deref() {
            None => match count.checked_mul(rank as i64) {
                Some(product) => product / self.ranks as i64,
                None => (i128::from(count) * rank as i128 / self.ranks as i128) as i64,
            },
            Some(Uneven { sums, .. }) => {
                ((count as f64 * sums[rank - 1] / sums[self.ranks - 1]).round() as i64).clamp(0, count)
            }
        }
    }

    /// A lower limit for the items, of `count`, that any rank gets.
    fn least(&self, count: i64) -> i64 {
        match self.uneven.as_deref() {
            None => count / self.ranks.max(1) as i64,
            Some(Uneven { sums, smallest, .. }) => {
                ((count as f64 * smallest / sums[self.ranks - 1]).floor() as i64 - 1).max(0)
            }
        }
    }
}

/// A number for each rank that is linear in its first row, `base + step · row`, clamped to `low` and `high`.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    rows: i64,
    weights: Weights,
    base: i64,
    step: i64,
    low: i64,
    high: i64,
}

impl Line {
    fn straight(&self, rank: usize) -> i64 {
        self.base + self.step * self.weights.first(self.rows, rank)
    }

    fn at(&self, rank: usize) -> i64 {
        self.straight(rank).clamp(self.low, self.high)
    }
}

/// The numbers of all ranks except for the first.
#[derive(Clone, Debug)]
enum Inner {
    Line(Line),
    Listed(Arc<[i64]>),
}

/// Non-decreasing numbers for all ranks: 0 for the first, `end` behind the last.
#[derive(Clone, Debug)]
struct Marks {
    ranks: usize,
    end: i64,
    inner: Inner,
}

impl Marks {
    /// A line in normal form: its limits are the numbers of the second rank and the last.
    fn line(end: i64, mut line: Line) -> Marks {
        let ranks = line.weights.ranks;
        let last = ranks.saturating_sub(1).max(1);
        (line.low, line.high) = (line.at(1), line.at(last));
        if line.low == line.high {
            (line.rows, line.base, line.step) = (0, line.low, 0);
        }
        Marks { ranks, end, inner: Inner::Line(line) }
    }

    fn at(&self, rank: usize) -> i64 {
        match &self.inner {
            _ if rank == 0 => 0,
            _ if rank >= self.ranks => self.end,
            Inner::Line(line) => line.at(rank),
            Inner::Listed(list) => list[rank],
        }
    }

    /// Each number minus `low`, divided by `step` and rounded up; clamped to 0 and `end`.
    fn divided(&self, low: i64, step: i64, end: i64) -> Marks {
        let up = |number: i64| -(low - number).div_euclid(step);
        self.mapped(
            end,
            |number| up(number).clamp(0, end),
            |line| (line.step % step == 0).then(|| (up(line.base), line.step / step)),
        )
    }

    /// `start` plus each number times `step`; clamped to 0 and `end`.
    fn multiplied(&self, start: i64, step: i64, end: i64) -> Marks {
        let one = |number: i64| (start + number * step).clamp(0, end);
        self.mapped(end, one, |line| Some((start + line.base * step, line.step * step)))
    }

    /// Maps each number; results must not decrease. `straight`: base and step of a mapped line, if it is linear.
    fn mapped(&self, end: i64, one: impl Fn(i64) -> i64, straight: impl Fn(&Line) -> Option<(i64, i64)>) -> Marks {
        if let Inner::Line(line) = &self.inner
            && let Some((base, step)) = straight(line)
        {
            let (low, high) = (one(line.low), one(line.high));
            return Marks::line(end, Line { base, step, low, high, ..line.clone() });
        }
        let list = (0..=self.ranks).map(|rank| one(self.at(rank))).collect();
        Marks { ranks: self.ranks, end, inner: Inner::Listed(list) }
    }

    /// How many ranks have at most this number; the end counts as a rank.
    fn up_to(&self, number: i64) -> usize {
        first_of(0..self.ranks + 1, |rank| self.at(rank) > number)
    }
}

/// The first rank for which `holds` is true; the range's end if there is none. `holds` must also be true for all ranks
/// behind it.
pub fn first_of(ranks: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (ranks.start, ranks.end.max(ranks.start));
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

impl PartialEq for Marks {
    fn eq(&self, other: &Marks) -> bool {
        if (self.ranks, self.end) != (other.ranks, other.end) {
            return false;
        }
        if let (Inner::Line(one), Inner::Line(two)) = (&self.inner, &other.inner)
            && one == two
        {
            return true;
        }
        let same = |rank: usize| self.at(rank) == other.at(rank);
        [1, self.ranks / 2, self.ranks.saturating_sub(1)].into_iter().all(same) && (1..self.ranks).all(same)
    }
}

/// The cuts of a base, in elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Cuts(Marks);

impl Cuts {
    /// Cuts at these elements, in non-decreasing order.
    #[cfg(test)]
    pub fn new(cuts: Vec<i64>) -> Cuts {
        let (ranks, end) = (cuts.len() - 1, cuts[cuts.len() - 1]);
        Cuts(Marks { ranks, end, inner: Inner::Listed(cuts.into()) })
    }

    /// All elements on rank 0.
    pub fn first(len: i64, ranks: usize) -> Cuts {
        let line = Line { rows: 0, weights: Weights::even(ranks), base: len, step: 0, low: len, high: len };
        Cuts(Marks::line(len, line))
    }

    /// Whole rows of `row` elements, distributed by weight.
    pub fn rows(len: i64, row: i64, weights: &Weights) -> Cuts {
        let row = row.clamp(1, len.max(1));
        // Elements behind the last whole row belong to the last row.
        let rows = (len / row).max(1);
        Cuts(Marks::line(len, Line { rows, weights: weights.clone(), base: 0, step: row, low: 0, high: rows * row }))
    }

    /// The cuts of `count` items that correspond to every `step`th element from `first` on.
    pub fn part(&self, first: i64, step: i64, count: i64) -> Cuts {
        Cuts(self.0.divided(first, step, count))
    }

    /// Appends the cuts to a description.
    pub fn describe(&self, words: &mut Vec<u64>) {
        words.push(self.0.end as u64);
        match &self.0.inner {
            Inner::Line(Line { rows, base, step, low, high, .. }) => {
                words.extend([0, *rows as u64, *base as u64, *step as u64, *low as u64, *high as u64]);
            }
            Inner::Listed(list) => {
                words.push(1);
                words.extend(list.iter().map(|&cut| cut as u64));
            }
        }
    }

    /// The elements that a rank owns.
    pub fn own(&self, rank: usize) -> Span {
        Span::new(self.0.at(rank), self.0.at(rank + 1))
    }

    /// The first element of each rank, and the length: faster for many look-ups.
    pub fn list(&self) -> Vec<i64> {
        (0..=self.0.ranks).map(|rank| self.0.at(rank)).collect()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.0.ranks
    }

    /// Are all cuts multiples of `row`?
    pub fn are_between(&self, row: i64) -> bool {
        let between = |number: i64| number % row == 0;
        let straight = match &self.0.inner {
            Inner::Line(Line { base, step, low, high, .. }) => [*base, *step, *low, *high].into_iter().all(between),
            Inner::Listed(_) => false,
        };
        straight && between(self.0.end) || (0..=self.0.ranks).all(|rank| between(self.0.at(rank)))
    }

    /// Are all elements on rank 0?
    pub fn is_first(&self) -> bool {
        self.0.at(1) == self.0.end
    }

    /// The range from the first to the last rank that owns elements of a span.
    pub fn range(&self, span: Span) -> Range<usize> {
        if span.is_empty() || self.0.end == 0 {
            return 0..0;
        }
        let first = self.0.up_to(span.low).saturating_sub(1);
        first..first_of(first..self.0.ranks, |rank| self.0.at(rank) >= span.high)
    }

    /// The ranks that own elements of a span.
    pub fn owners(&self, span: Span) -> impl Iterator<Item = usize> + use<> {
        let cuts = self.clone();
        self.range(span).filter(move |&rank| cuts.0.at(rank + 1) > cuts.0.at(rank).max(span.low))
    }

    /// The ranks along which these cuts and another array's advance by constant steps for each row. `None` if the cuts
    /// do not follow the same rows.
    pub fn beside(&self, other: &Cuts) -> Option<Range<usize>> {
        let (Inner::Line(one), Inner::Line(two)) = (&self.0.inner, &other.0.inner) else { return None };
        if one.rows != two.rows
            || !one.weights.are(&two.weights)
            || one.step == 0
            || two.step == 0
            || self.least_rows() < 1
        {
            return None;
        }
        let inside = |line: &Line| {
            let all = 1..self.0.ranks;
            let first = first_of(all.clone(), |rank| line.straight(rank) >= line.low);
            let behind = first_of(all, |rank| line.straight(rank) > line.high);
            first..behind.saturating_sub(1).max(first)
        };
        let (one, two) = (inside(one), inside(two));
        Some(one.start.max(two.start)..one.end.min(two.end))
    }

    /// The fewest rows of any rank; 0 if the cuts do not follow rows.
    pub fn least_rows(&self) -> i64 {
        match &self.0.inner {
            Inner::Line(line) => line.weights.least(line.rows),
            Inner::Listed(_) => 0,
        }
    }

    /// The fewest rows of this many elements of any rank, if known; otherwise 0.
    pub fn fewest(&self, row: i64) -> i64 {
        match self.least_rows() {
            // The single cut between two ranks may be a constant.
            0 if self.0.ranks == 2 => self.own(0).len().min(self.own(1).len()) / row.max(1),
            rows => rows,
        }
    }

    /// The rows of a rank; 0 if the cuts do not follow rows.
    pub fn rows_of(&self, rank: usize) -> i64 {
        match &self.0.inner {
            Inner::Line(Line { rows, weights, .. }) => weights.first(*rows, rank + 1) - weights.first(*rows, rank),
            Inner::Listed(_) => 0,
        }
    }

    /// The distance of cuts in elements per row; 0 if the cuts do not follow rows.
    pub fn step(&self) -> i64 {
        match &self.0.inner {
            Inner::Line(line) => line.step,
            Inner::Listed(_) => 0,
        }
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        match &self.0.inner {
            Inner::Line(_) => 0,
            Inner::Listed(list) => size_of_val(&list[..]),
        }
    }
}

/// The cuts of an iteration space along its outermost dimension with more than one index.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    dim: usize,
    /// The first index of each rank, and the extent.
    firsts: Marks,
}

/// The outermost dimension with more than one index.
pub fn outermost(shape: &[i64]) -> Option<usize> {
    shape.iter().position(|&extent| extent > 1)
}

impl Parts {
    /// The cuts of a view that correspond to those of its base; `None` if the view's rows do not follow the base's.
    pub fn of(view: &View, cuts: &Cuts) -> Option<Parts> {
        if cuts.is_first() {
            return None;
        }
        let dim = outermost(view.shape())?;
        let (extent, step) = (view.shape()[dim], view.stride()[dim]);
        let low = view.extent()?.0;
        if step <= 0 || steps_inside(view, dim).any(|(_, inner)| inner >= step) {
            return None;
        }
        Some(Parts { dim, firsts: cuts.0.divided(low, step, extent) })
    }
    /// The same without the dimensions in `mask`; `None` if these include the cut one.
    pub fn without(&self, mask: u32) -> Option<Parts> {
        let kept = (0..self.dim).filter(|dim| mask >> dim & 1 == 0).count();
        (mask >> self.dim & 1 == 0).then(|| Parts { dim: kept, firsts: self.firsts.clone() })
    }

    /// The same for an input of this shape with additional dimensions in `mask`.
    pub fn widen(&self, mask: u32, shape: &[i64]) -> Option<Parts> {
        let dim = (0..shape.len()).filter(|dim| mask >> dim & 1 == 0).nth(self.dim)?;
        Some(Parts { dim, firsts: self.firsts.clone() })
    }

    /// The cuts of a base of `len` elements that correspond to those of a view of it, between rows if possible.
    pub fn cuts(&self, view: &View, len: i64) -> Option<Cuts> {
        let step = *view.stride().get(self.dim)?;
        let low = view.extent()?.0;
        if step <= 0
            || outermost(view.shape()) != Some(self.dim)
            || steps_inside(view, self.dim).any(|(_, inner)| inner >= step)
        {
            return None;
        }
        let reach: i64 = steps_inside(view, self.dim).map(|(extent, inner)| (extent - 1) * inner).sum();
        // A row includes the elements before the view in it.
        let margin = if low % step + reach < step { low % step } else { 0 };
        Some(Cuts(self.firsts.multiplied(low - margin, step, len)))
    }
}

/// Extents and absolute strides of the dimensions inside of `dim` with more than one index.
fn steps_inside(view: &View, dim: usize) -> impl Iterator<Item = (i64, i64)> + '_ {
    let dims = view.shape().iter().zip(view.stride()).skip(dim + 1);
    dims.filter(|&(&extent, _)| extent > 1).map(|(&extent, step)| (extent, step.abs()))
}

/// Does an output view cover its base? Output views have no element twice.
pub(crate) fn covers(batch: &BatchRef<'_>, view: u32) -> bool {
    batch.base_of(view).is_some_and(|base| base.len == batch.views[view as usize].len)
}

/// Elements per row: the base's hint, or, if that is a single row, the outermost stride of the view that first writes
/// it.
pub(crate) fn row_of(base: &Base, view: Option<&View>) -> i64 {
    let step = view.and_then(|view| Some(view.stride()[outermost(view.shape())?].abs()));
    let several = base.row_hint > 0 && base.row_hint < base.len;
    let row = if several { base.row_hint } else { step.unwrap_or(1) };
    row.clamp(1, base.len.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::DType;

    #[test]
    fn rows_are_shared_out() {
        let cuts = Cuts::rows(35, 5, &Weights::even(3));
        assert_eq!((cuts.own(0), cuts.own(1), cuts.own(2)), (Span::new(0, 10), Span::new(10, 20), Span::new(20, 35)));
        let few = Cuts::rows(10, 5, &Weights::even(4));
        assert_eq!((0..4).map(|rank| few.own(rank).len()).collect::<Vec<_>>(), [0, 5, 0, 5]);
        let weighted = Cuts::rows(8, 1, &Weights::given(vec![3.0, 1.0]).unwrap());
        assert_eq!(weighted.own(0), Span::new(0, 6));
        assert!(Weights::given(vec![0.0]).is_none());
        let some = Cuts::rows(8, 1, &Weights::given(vec![0.0, 1.0, 0.0, 1.0, 0.0]).unwrap());
        assert_eq!((0..5).map(|rank| some.own(rank).len()).collect::<Vec<_>>(), [0, 4, 0, 4, 0]);
    }

    #[test]
    fn owners_of_a_span_are_found() {
        let cuts = Cuts::new(vec![0, 0, 4, 4, 8]);
        let owners = |low, high| cuts.owners(Span::new(low, high)).collect::<Vec<_>>();
        assert_eq!(owners(0, 8), [1, 3]);
        assert_eq!(owners(4, 5), [3]);
        assert_eq!(owners(3, 4), [1]);
        assert_eq!(owners(3, 3), [0usize; 0]);
    }

    #[test]
    fn the_inside_of_a_grid_is_cut_as_the_grid() {
        let grid = View::contiguous(&[12, 5]).unwrap();
        let cuts = Cuts::rows(60, 5, &Weights::even(3));
        let inner = grid.slice(0, Some(1), Some(-1), 1).unwrap().slice(1, Some(1), Some(-1), 1).unwrap();
        let parts = Parts::of(&inner, &cuts).unwrap();
        assert_eq!((0..4).map(|rank| parts.firsts.at(rank)).collect::<Vec<_>>(), [0, 3, 7, 10]);
        assert_eq!(parts.cuts(&inner, 60).unwrap(), cuts);
        let fresh = View::contiguous(&[10, 3]).unwrap();
        assert_eq!(parts.cuts(&fresh, 30).unwrap(), Cuts::new(vec![0, 9, 21, 30]));
        assert!(Parts::of(&grid.reverse(0).unwrap(), &cuts).is_none());
        assert!(Parts::of(&grid.transpose(&[1, 0]).unwrap(), &cuts).is_none());
    }

    #[test]
    fn one_row_is_cut_along_its_elements() {
        let base = Base { row_hint: 12, ..Base::new(1, DType::F64, 12) };
        let rows = |shape: &[i64]| row_of(&base, Some(&View::contiguous(shape).unwrap()));
        assert_eq!((rows(&[12]), rows(&[1, 12]), rows(&[1, 3, 4]), row_of(&base, None)), (1, 1, 4, 1));
        assert_eq!(row_of(&Base { row_hint: 4, ..base }, None), 4);
    }

    /// Cuts as formulas equal those in a list.
    #[test]
    fn formulas_equal_lists() {
        let weights =
            [Weights::even(1), Weights::even(5), Weights::even(16), Weights::given(vec![1.0, 3.0, 0.2, 1.0]).unwrap()];
        for weights in &weights {
            for (rows, row) in [(3, 4), (11, 1), (40, 6), (41, 5)] {
                let cuts = Cuts::rows(rows * row + 2, row, weights);
                let listed = Cuts::new(cuts.list());
                assert_eq!(cuts, listed);
                for elements in [1, 2, 3, row, 2 * row] {
                    let each = cuts.list().into_iter().all(|cut| cut % elements == 0);
                    assert_eq!((cuts.are_between(elements), listed.are_between(elements)), (each, each));
                }
                let grid = View::contiguous(&[rows, row]).unwrap();
                for (from, by) in [(0, 1), (1, 1), (2, 1), (1, 2)] {
                    let view = grid.slice(0, Some(from), None, by).unwrap();
                    let (Some(one), Some(two)) = (Parts::of(&view, &cuts), Parts::of(&view, &listed)) else { continue };
                    assert_eq!(one, two, "{rows} rows of {row} from {from} by {by} on {weights:?}");
                    let fresh = View::contiguous(&[view.shape()[0], 3]).unwrap();
                    assert_eq!(one.cuts(&fresh, fresh.len()), two.cuts(&fresh, fresh.len()));
                }
                for low in 0..rows * row {
                    let span = Span::new(low, low + 3);
                    assert_eq!(cuts.owners(span).collect::<Vec<_>>(), listed.owners(span).collect::<Vec<_>>());
                }
            }
        }
    }
}

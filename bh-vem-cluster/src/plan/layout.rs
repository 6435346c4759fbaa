//! Where arrays and iteration spaces are cut: rank `r` owns the elements from `cuts[r]` to before `cuts[r + 1]`.

use crate::plan::boxes::Span;
use bh_bytecode::{Base, BatchRef, View};
use std::sync::Arc;

/// The cuts of a base, in elements: one more than there are ranks, from 0 to the base's length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuts(Arc<[i64]>);

impl Cuts {
    /// Cuts at these elements, which must not decrease.
    pub fn new(cuts: Vec<i64>) -> Cuts {
        debug_assert!(cuts.windows(2).all(|pair| pair[0] <= pair[1]));
        Cuts(cuts.into())
    }

    /// Everything on rank 0.
    pub fn first(len: i64, ranks: usize) -> Cuts {
        let mut cuts = vec![len; ranks + 1];
        cuts[0] = 0;
        Cuts::new(cuts)
    }

    /// Whole rows of `row` elements, shared out by weight.
    pub fn rows(len: i64, row: i64, weights: &Weights) -> Cuts {
        let row = row.clamp(1, len.max(1));
        // What does not fill a row belongs to the last one.
        let rows = (len / row).max(1);
        let mut cuts: Vec<i64> = weights.share(rows).iter().map(|&first| first * row).collect();
        if let Some(last) = cuts.last_mut() {
            *last = len;
        }
        Cuts::new(cuts)
    }

    /// Appends them to a description.
    pub fn describe(&self, words: &mut Vec<u64>) {
        words.extend(self.0.iter().map(|&cut| cut as u64));
    }

    /// The elements that a rank owns.
    pub fn own(&self, rank: usize) -> Span {
        Span::new(self.0[rank], self.0[rank + 1])
    }

    /// The rank that owns an element.
    pub fn owner(&self, element: i64) -> usize {
        self.0.partition_point(|&cut| cut <= element) - 1
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.0.len() - 1
    }

    /// Is everything on rank 0?
    pub fn is_first(&self) -> bool {
        self.0[1] == self.0[self.0.len() - 1]
    }

    /// The ranks that own elements of a span.
    pub fn owners(&self, span: Span) -> impl Iterator<Item = usize> + use<> {
        let cuts = self.0.clone();
        let first = cuts.partition_point(|&cut| cut <= span.low).saturating_sub(1);
        (first..cuts.len() - 1)
            .take_while({
                let cuts = cuts.clone();
                move |&rank| !span.is_empty() && cuts[rank] < span.high
            })
            .filter(move |&rank| cuts[rank + 1] > cuts[rank].max(span.low))
    }
}

/// How much of the work each rank gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights(Vec<f64>);

impl Weights {
    /// The same for all.
    pub fn even(ranks: usize) -> Weights {
        Weights(vec![1.0; ranks])
    }

    /// Given weights, one for each rank: finite, not negative, and not all 0.
    pub fn given(weights: Vec<f64>) -> Option<Weights> {
        let fit = weights.iter().all(|&weight| weight >= 0.0 && weight.is_finite());
        (fit && weights.iter().any(|&weight| weight > 0.0)).then_some(Weights(weights))
    }

    /// Do all ranks get the same?
    pub fn is_even(&self) -> bool {
        self.0.iter().all(|&weight| weight == self.0[0])
    }

    /// By rank.
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// The first of `count` things that each rank gets, and `count` behind the last.
    fn share(&self, count: i64) -> Vec<i64> {
        let total: f64 = self.0.iter().sum();
        let even = self.is_even();
        let ranks = self.0.len() as i128;
        let mut sum = 0.0;
        let mut firsts = vec![0];
        for (rank, weight) in self.0.iter().enumerate() {
            sum += weight;
            let next = match even {
                true => (i128::from(count) * (rank as i128 + 1) / ranks) as i64,
                false => (count as f64 * sum / total).round() as i64,
            };
            firsts.push(next.clamp(firsts[rank], count));
        }
        firsts[self.0.len()] = count;
        firsts
    }
}

/// Where the outermost dimension of an iteration space with more than one index is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    dim: usize,
    /// The first index of each rank, and the extent behind the last.
    firsts: Vec<i64>,
}

/// The outermost dimension with more than one index.
pub fn outermost(shape: &[i64]) -> Option<usize> {
    shape.iter().position(|&extent| extent > 1)
}

impl Parts {
    /// How the cuts of a base cut a view of it; `None` if the view's rows do not follow the base's.
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
        let first = |&cut: &i64| (-(low - cut).div_euclid(step)).clamp(0, extent);
        let mut firsts: Vec<i64> = cuts.0.iter().map(first).collect();
        let last = firsts.len() - 1;
        (firsts[0], firsts[last]) = (0, extent);
        Some(Parts { dim, firsts })
    }

    /// The same without the dimensions in `mask`; `None` if the cut one is among them.
    pub fn without(&self, mask: u32) -> Option<Parts> {
        let kept = (0..self.dim).filter(|dim| mask >> dim & 1 == 0).count();
        (mask >> self.dim & 1 == 0).then(|| Parts { dim: kept, firsts: self.firsts.clone() })
    }

    /// The same for an input of this shape with further dimensions in `mask`.
    pub fn widen(&self, mask: u32, shape: &[i64]) -> Option<Parts> {
        let dim = (0..shape.len()).filter(|dim| mask >> dim & 1 == 0).nth(self.dim)?;
        Some(Parts { dim, firsts: self.firsts.clone() })
    }

    /// The cuts of a base of `len` elements that suit a view of it, between rows where that is possible.
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
        // What comes before the view in its row goes with the row.
        let margin = if low % step + reach < step { low % step } else { 0 };
        let ranks = self.firsts.len() - 1;
        let cut = |(rank, &first): (usize, &i64)| match rank {
            0 => 0,
            _ if rank == ranks => len,
            _ => (low + first * step - margin).clamp(0, len),
        };
        let mut cuts: Vec<i64> = self.firsts.iter().enumerate().map(cut).collect();
        for rank in 1..cuts.len() {
            cuts[rank] = cuts[rank].max(cuts[rank - 1]);
        }
        Some(Cuts::new(cuts))
    }
}

/// Extents and lengths of the strides of the dimensions inside of `dim` that have more than one index.
fn steps_inside(view: &View, dim: usize) -> impl Iterator<Item = (i64, i64)> + '_ {
    let dims = view.shape().iter().zip(view.stride()).skip(dim + 1);
    dims.filter(|&(&extent, _)| extent > 1).map(|(&extent, step)| (extent, step.abs()))
}

/// Does an output view, which has no element twice, cover its base?
pub(crate) fn covers(batch: &BatchRef<'_>, view: u32) -> bool {
    batch.base_of(view).is_some_and(|base| base.len == batch.views[view as usize].len)
}

/// Elements per row: what the base says, or the step of the view that it is first written through.
pub(crate) fn row_of(base: &Base, view: Option<&View>) -> i64 {
    let step = view.and_then(|view| Some(view.stride()[outermost(view.shape())?].abs()));
    let row = if base.row_hint > 0 { base.row_hint } else { step.unwrap_or(1) };
    row.clamp(1, base.len.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(parts.firsts, [0, 3, 7, 10]);
        assert_eq!(parts.cuts(&inner, 60).unwrap(), cuts);
        let fresh = View::contiguous(&[10, 3]).unwrap();
        assert_eq!(parts.cuts(&fresh, 30).unwrap(), Cuts::new(vec![0, 9, 21, 30]));
        assert!(Parts::of(&grid.reverse(0).unwrap(), &cuts).is_none());
        assert!(Parts::of(&grid.transpose(&[1, 0]).unwrap(), &cuts).is_none());
    }
}

//! Boxes of indices: parts of a view, and the elements of a view in a range of its base.

use bh_bytecode::View;
use bh_bytecode::view::MAX_RANK;
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// The most boxes per rank that are worth their kernels. Above that, the operation runs on one rank.
const MOST_BOXES: usize = 64;

/// A half-open range of elements of a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First element.
    pub low: i64,
    /// The element after the last.
    pub high: i64,
}

impl Span {
    /// The elements from `low` to before `high`; empty if `high` is below `low`.
    pub fn new(low: i64, high: i64) -> Span {
        Span { low, high: high.max(low) }
    }

    /// The number of elements.
    pub fn len(self) -> i64 {
        self.high - self.low
    }

    /// Is it empty?
    pub fn is_empty(self) -> bool {
        self.high <= self.low
    }

    /// Does it hold all of `other`?
    pub fn contains(self, other: Span) -> bool {
        other.is_empty() || (self.low <= other.low && other.high <= self.high)
    }

    /// The intersection.
    pub fn meet(self, other: Span) -> Span {
        let low = self.low.max(other.low);
        Span::new(low, self.high.min(other.high))
    }

    /// The smallest span that contains both.
    pub fn join(self, other: Span) -> Span {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Span::new(self.low.min(other.low), self.high.max(other.high)),
        }
    }
}

/// The range of elements that a view reaches; empty for an empty view.
pub fn span_of(view: &View) -> Span {
    view.extent().map_or(Span::default(), |(low, high)| Span::new(low, high + 1))
}

/// A box of the indices of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexBox {
    rank: usize,
    first: [i64; MAX_RANK],
    extent: [i64; MAX_RANK],
}

impl IndexBox {
    /// All indices of a shape.
    pub fn whole(shape: &[i64]) -> IndexBox {
        let mut all = IndexBox { rank: shape.len(), first: [0; MAX_RANK], extent: [1; MAX_RANK] };
        all.extent[..shape.len()].copy_from_slice(shape);
        all
    }

    /// First indices, by dimension.
    pub fn first(&self) -> &[i64] {
        &self.first[..self.rank]
    }

    /// Extents, by dimension.
    pub fn extent(&self) -> &[i64] {
        &self.extent[..self.rank]
    }

    /// The number of indices.
    pub fn len(&self) -> i64 {
        self.extent().iter().product()
    }

    /// Restricts one dimension.
    pub fn with(mut self, dim: usize, first: i64, extent: i64) -> IndexBox {
        (self.first[dim], self.extent[dim]) = (first, extent);
        self
    }

    /// Does the box span these dimensions (a bit mask) of a shape completely?
    pub fn is_whole(&self, shape: &[i64], dims: u32) -> bool {
        (0..self.rank).all(|dim| dims >> dim & 1 == 0 || self.extent[dim] == shape[dim])
    }

    /// The intersection; `None` if it is empty.
    pub fn meet(&self, other: &IndexBox) -> Option<IndexBox> {
        (0..self.first().len()).try_fold(*self, |both, dim| {
            let common = self.along(dim).meet(other.along(dim));
            (!common.is_empty()).then(|| both.with(dim, common.low, common.len()))
        })
    }

    /// The box relative to the first indices of a box that contains it.
    pub fn within(&self, whole: &IndexBox) -> IndexBox {
        (0..self.first().len())
            .fold(*self, |part, dim| part.with(dim, self.first()[dim] - whole.first()[dim], self.extent()[dim]))
    }

    /// The indices along a dimension.
    fn along(&self, dim: usize) -> Span {
        Span::new(self.first()[dim], self.first()[dim] + self.extent()[dim])
    }

    /// The box without the dimensions in `mask`.
    pub fn without(&self, mask: u32) -> IndexBox {
        let mut kept = IndexBox { rank: 0, first: [0; MAX_RANK], extent: [1; MAX_RANK] };
        for dim in (0..self.rank).filter(|dim| mask >> dim & 1 == 0) {
            (kept.first[kept.rank], kept.extent[kept.rank]) = (self.first[dim], self.extent[dim]);
            kept.rank += 1;
        }
        kept
    }

    /// The box of an input: dimensions in `mask`, which this box lacks, span all of `shape`.
    pub fn widen(&self, mask: u32, shape: &[i64]) -> IndexBox {
        let mut wide = IndexBox::whole(shape);
        for (at, dim) in (0..shape.len()).filter(|dim| mask >> dim & 1 == 0).enumerate() {
            (wide.first[dim], wide.extent[dim]) = (self.first[at], self.extent[at]);
        }
        wide
    }

    /// The view's elements at these indices, as a view of a base whose first element is `origin`.
    pub fn of(&self, view: &View, origin: i64) -> Result<View> {
        let reach: i64 = self.first().iter().zip(view.stride()).map(|(first, stride)| first * stride).sum();
        let start = if self.len() == 0 { 0 } else { view.start() + reach - origin };
        View::new(start, self.extent(), view.stride()).map_err(|error| Error::new(status::BATCH, error.0))
    }
}

/// The indices of a view whose elements are in `span`, as disjoint boxes; `None` if there are too many.
pub fn inside(view: &View, span: Span) -> Option<Vec<IndexBox>> {
    let Some((low, high)) = view.extent() else { return Some(Vec::new()) };
    let whole = IndexBox::whole(view.shape());
    if span.contains(Span::new(low, high + 1)) {
        return Some(vec![whole]);
    }
    if span.meet(Span::new(low, high + 1)).is_empty() {
        return Some(Vec::new());
    }
    let mut order: Vec<usize> = (0..view.rank()).filter(|&dim| view.shape()[dim] > 1).collect();
    order.sort_by_key(|&dim| std::cmp::Reverse(view.stride()[dim].abs()));
    let mut cutter = Cutter { view, span, order, boxes: Vec::new() };
    cutter.cut(0, view.start(), whole).then_some(cutter.boxes)
}

struct Cutter<'a> {
    view: &'a View,
    span: Span,
    /// Dimensions with more than one index, the largest stride first.
    order: Vec<usize>,
    boxes: Vec<IndexBox>,
}

impl Cutter<'_> {
    /// Cuts the dimensions from `level` on; the outer ones are fixed, and reach element `at`. False if there are too
    /// many boxes.
    fn cut(&mut self, level: usize, at: i64, part: IndexBox) -> bool {
        let Some(&dim) = self.order.get(level) else {
            if self.span.low <= at && at < self.span.high {
                self.boxes.push(part);
            }
            return self.boxes.len() <= MOST_BOXES;
        };
        // The range of offsets that the inner dimensions add.
        let (mut down, mut up) = (0, 0);
        for &inner in &self.order[level + 1..] {
            let reach = (self.view.shape()[inner] - 1) * self.view.stride()[inner];
            if reach < 0 { down += reach } else { up += reach }
        }
        let (extent, step) = (self.view.shape()[dim], self.view.stride()[dim]);
        let whole = range(at, step, extent, self.span.low - down, self.span.high - 1 - up);
        let touched = range(at, step, extent, self.span.low - up, self.span.high - 1 - down);
        let each = |cutter: &mut Self, from: i64, to: i64| {
            (from..to).all(|index| cutter.cut(level + 1, at + index * step, part.with(dim, index, 1)))
        };
        if whole.is_empty() {
            return each(self, touched.low, touched.high);
        }
        if !each(self, touched.low, whole.low) {
            return false;
        }
        self.boxes.push(part.with(dim, whole.low, whole.len()));
        self.boxes.len() <= MOST_BOXES && each(self, whole.high, touched.high)
    }
}

/// The indices below `extent` whose element `at + index * step` is at least `low` and at most `high`.
fn range(at: i64, step: i64, extent: i64, low: i64, high: i64) -> Span {
    let (low, high) = (low - at, high - at);
    if low > high {
        return Span::default();
    }
    let (first, last) = match step {
        0 if low <= 0 && 0 <= high => (0, extent - 1),
        0 => return Span::default(),
        1.. => (-(-low).div_euclid(step), high.div_euclid(step)),
        _ => (-high.div_euclid(-step), (-low).div_euclid(-step)),
    };
    Span::new(first.max(0), (last + 1).min(extent))
}

/// A view with one index for each dimension that repeats elements, so that every element occurs once.
pub fn unrepeated(view: &View) -> Result<View> {
    let shape: Vec<i64> = view
        .shape()
        .iter()
        .zip(view.stride())
        .map(|(&extent, &step)| if step == 0 { extent.min(1) } else { extent })
        .collect();
    View::new(view.start(), &shape, view.stride()).map_err(|error| Error::new(status::BATCH, error.0))
}

/// The indices of `view` on a base that holds its unrepeated elements contiguously.
pub fn packed(view: &View) -> Result<View> {
    let once = unrepeated(view)?;
    let dense = View::contiguous(once.shape()).map_err(|error| Error::new(status::BATCH, error.0))?;
    let stride: Vec<i64> =
        dense.stride().iter().zip(view.stride()).map(|(&dense, &step)| if step == 0 { 0 } else { dense }).collect();
    View::new(0, view.shape(), &stride).map_err(|error| Error::new(status::BATCH, error.0))
}

/// The indices of a view's dimension `dim`, the outermost, whose rows reach into a span.
pub(crate) fn rows_in(view: &View, dim: usize, span: Span) -> Span {
    let (step, extent) = (view.stride()[dim], view.shape()[dim]);
    let all = span_of(view);
    if step <= 0 {
        return Span::new(0, extent);
    }
    let inner = all.len() - 1 - (extent - 1) * step;
    let first = -(all.low + inner - span.low).div_euclid(step);
    let last = (span.high - 1 - all.low).div_euclid(step);
    Span::new(first.clamp(0, extent), (last + 1).clamp(0, extent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::interp::offsets;

    fn elements(view: &View) -> Vec<i64> {
        offsets(view.start(), view.shape(), view.stride()).collect()
    }

    fn check(view: &View) {
        let span = span_of(view);
        for low in span.low - 1..=span.high + 1 {
            for high in low..=span.high + 1 {
                let Some(boxes) = inside(view, Span::new(low, high)) else { continue };
                let mut found: Vec<i64> = boxes.iter().flat_map(|part| elements(&part.of(view, 0).unwrap())).collect();
                let mut wanted: Vec<i64> =
                    elements(view).into_iter().filter(|&element| low <= element && element < high).collect();
                found.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(found, wanted, "{view:?} in {low}..{high}");
            }
        }
    }

    #[test]
    fn boxes_hold_exactly_the_elements_in_a_span() {
        let grid = View::contiguous(&[4, 5]).unwrap();
        check(&grid);
        check(&grid.transpose(&[1, 0]).unwrap());
        check(&grid.reverse(0).unwrap());
        check(&grid.reverse(1).unwrap());
        check(&grid.slice(0, Some(1), Some(3), 1).unwrap().slice(1, Some(1), None, 2).unwrap());
        check(&View::contiguous(&[3]).unwrap().broadcast_to(&[2, 3]).unwrap());
        check(&View::contiguous(&[3, 1]).unwrap().broadcast_to(&[3, 4]).unwrap());
        check(&View::new(4, &[3, 3], &[1, 1]).unwrap());
        check(&View::new(7, &[], &[]).unwrap());
        check(&View::contiguous(&[2, 3, 4]).unwrap().transpose(&[2, 0, 1]).unwrap());
        check(&grid.diagonal(0, 0, 1).unwrap());
    }

    #[test]
    fn rows_are_one_box() {
        let grid = View::contiguous(&[6, 5]).unwrap();
        assert_eq!(inside(&grid, Span::new(10, 20)).unwrap(), [IndexBox::whole(&[6, 5]).with(0, 2, 2)]);
        assert_eq!(inside(&grid, Span::new(9, 21)).unwrap().len(), 3);
    }

    #[test]
    fn repeated_elements_are_packed_once() {
        let row = View::contiguous(&[3]).unwrap().broadcast_to(&[4, 3]).unwrap();
        assert_eq!(unrepeated(&row).unwrap().shape(), [1, 3]);
        assert_eq!(packed(&row).unwrap(), View::new(0, &[4, 3], &[0, 1]).unwrap());
        let reversed = View::contiguous(&[2, 3]).unwrap().reverse(0).unwrap();
        assert_eq!(packed(&reversed).unwrap(), View::contiguous(&[2, 3]).unwrap());
    }
}

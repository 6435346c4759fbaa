//! Layouts on a grid of ranks: an array cut along several axes, a box for each rank. The cuts along each axis are
//! formulas, as for rows, so a rank finds its neighbours without examining the others.

use crate::plan::boxes::{IndexBox, Span};
use crate::plan::layout::{Cuts, Weights};
use bh_bytecode::View;
#[cfg(debug_assertions)]
use bh_bytecode::interp::offsets;
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// A box of an array: a span along each axis.
pub type Region = Vec<Span>;

/// The position of a view along an axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The first index.
    pub start: i64,
    /// The distance between the view's indices.
    pub step: i64,
    /// The view's dimension along this axis; `None` if all of the view is at one index of it.
    pub dim: Option<usize>,
    /// The number of indices.
    pub count: i64,
}

impl Axis {
    /// The indices of the view's dimension in a span of the axis. Without a dimension: 0 if the span contains the
    /// axis's index.
    pub fn inside(&self, span: Span) -> Span {
        let up = |number: i64| -(self.start - number).div_euclid(self.step);
        Span::new(up(span.low).clamp(0, self.count), up(span.high).clamp(0, self.count))
    }

    /// The part of the axis that some indices of the dimension reach.
    pub fn reach(&self, indices: Span) -> Span {
        match indices.is_empty() {
            true => Span::default(),
            false => Span::new(self.start + indices.low * self.step, self.start + (indices.high - 1) * self.step + 1),
        }
    }
}

/// The position of a view along each axis of an array of this shape; `None` if its dimensions do not follow the axes.
pub fn axes_of(shape: &[i64], view: &View) -> Option<Vec<Axis>> {
    if view.is_empty() {
        return None;
    }
    let (mut rest, mut pitch) = (view.start(), shape.iter().product::<i64>());
    let mut axes = Vec::with_capacity(shape.len());
    let mut pitches = Vec::with_capacity(shape.len());
    for &extent in shape {
        pitch /= extent;
        axes.push(Axis { start: rest / pitch, step: 1, dim: None, count: 1 });
        pitches.push(pitch);
        rest %= pitch;
    }
    for (dim, (&extent, &stride)) in view.shape().iter().zip(view.stride()).enumerate() {
        if extent == 1 || stride == 0 {
            continue;
        }
        let along = (0..shape.len()).find(|&axis| shape[axis] > 1 && pitches[axis] <= stride)?;
        let (axis, step) = (&mut axes[along], stride / pitches[along]);
        if stride % pitches[along] != 0 || axis.dim.is_some() || axis.start + (extent - 1) * step >= shape[along] {
            return None;
        }
        *axis = Axis { start: axis.start, step, dim: Some(dim), count: extent };
    }
    Some(axes)
}

/// The box of a view of this shape whose elements are in a region; `None` if it is empty.
pub fn part(axes: &[Axis], shape: &[i64], region: &[Span]) -> Option<IndexBox> {
    let mut part = IndexBox::whole(shape);
    for (axis, &span) in axes.iter().zip(region) {
        let indices = axis.inside(span);
        if indices.is_empty() {
            return None;
        }
        if let Some(dim) = axis.dim {
            part = part.with(dim, indices.low, indices.len());
        }
    }
    Some(part)
}

/// The region that the whole view reaches.
pub fn region_of(axes: &[Axis]) -> Region {
    axes.iter().map(|axis| axis.reach(Span::new(0, axis.count))).collect()
}

/// The intersection of two regions; `None` if it is empty.
pub fn meet(one: &[Span], other: &[Span]) -> Option<Region> {
    let both: Region = one.iter().zip(other).map(|(one, other)| one.meet(*other)).collect();
    both.iter().all(|span| !span.is_empty()).then_some(both)
}

/// An array's layout on a grid: its cuts, and the halos around the ranks' boxes. Halos are equal on all ranks, except
/// at the array's ends.
#[derive(Clone, Debug, PartialEq)]
pub struct GridLayout {
    /// The array's extents.
    pub shape: Vec<i64>,
    /// The cuts of each axis, over as many lines of ranks as the grid has along it.
    pub cuts: Vec<Cuts>,
    /// Halo elements before and behind a rank's box along each axis that its memory has space for.
    pub capacity: Vec<[i64; 2]>,
    /// Halo elements with current values, along one axis at a time.
    pub halo: Vec<[i64; 2]>,
    /// The halo's corners, outside of the box along several axes, have current values, too.
    pub corners: bool,
}

impl GridLayout {
    /// A layout on this grid, every axis cut by weight; `None` if the weights are no product of the lines' weights.
    pub fn even(shape: &[i64], grid: &[usize], weights: &Weights) -> Option<GridLayout> {
        let weights = weights_of(grid, weights)?;
        let each = shape.iter().zip(&weights).map(|(&extent, weights)| Cuts::rows(extent, 1, weights));
        let rest = shape.iter().skip(grid.len()).map(|&extent| Cuts::rows(extent, 1, &Weights::even(1)));
        Some(GridLayout::of(shape, each.chain(rest).collect()))
    }

    /// A layout with these cuts.
    pub fn of(shape: &[i64], cuts: Vec<Cuts>) -> GridLayout {
        let none = vec![[0, 0]; shape.len()];
        GridLayout { shape: shape.to_vec(), cuts, capacity: none.clone(), halo: none, corners: false }
    }

    /// The axes that are cut.
    pub fn cut(&self) -> Vec<usize> {
        (0..self.cuts.len()).filter(|&axis| self.cuts[axis].ranks() > 1).collect()
    }

    /// The numbers of lines along the cut axes. Boxes of two arrays correspond if these are equal.
    pub fn grid(&self) -> Vec<usize> {
        self.cut().into_iter().map(|axis| self.cuts[axis].ranks()).collect()
    }

    /// A rank's coordinates in the grid.
    pub fn place(&self, mut rank: usize) -> Vec<usize> {
        let mut place = vec![0; self.cuts.len()];
        for (at, cuts) in place.iter_mut().zip(&self.cuts).rev() {
            *at = rank % cuts.ranks();
            rank /= cuts.ranks();
        }
        place
    }

    /// The rank at coordinates.
    pub fn rank(&self, place: &[usize]) -> usize {
        self.cuts.iter().zip(place).fold(0, |rank, (cuts, at)| rank * cuts.ranks() + at)
    }

    /// The box that a rank owns; `None` if it is empty.
    pub fn own(&self, rank: usize) -> Option<Region> {
        let own: Region = self.cuts.iter().zip(self.place(rank)).map(|(cuts, at)| cuts.own(at)).collect();
        own.iter().all(|span| !span.is_empty()).then_some(own)
    }

    /// A region extended along each axis, up to the array's ends.
    fn wider(&self, region: &[Span], by: &[[i64; 2]]) -> Region {
        let all = self.shape.iter().map(|&extent| Span::new(0, extent));
        let wide = region.iter().zip(by).map(|(span, by)| Span::new(span.low - by[0], span.high + by[1]));
        wide.zip(all).map(|(wide, all)| wide.meet(all)).collect()
    }

    /// The region that a rank's memory covers.
    pub fn window(&self, rank: usize) -> Option<Region> {
        Some(self.wider(&self.own(rank)?, &self.capacity))
    }

    /// The owners of a region's elements, in order.
    pub fn owners(&self, region: &[Span]) -> Vec<usize> {
        let lines: Vec<Vec<usize>> =
            self.cuts.iter().zip(region).map(|(cuts, &span)| cuts.owners(span).collect()).collect();
        self.at(&lines)
    }

    /// The ranks with elements of a region, if each has this halo.
    pub fn ranks_reaching(&self, region: &[Span], by: &[[i64; 2]]) -> Vec<usize> {
        let back: Vec<[i64; 2]> = by.iter().map(|by| [by[1], by[0]]).collect();
        self.owners(&self.wider(region, &back))
    }

    /// The ranks at the given lines of each axis.
    fn at(&self, lines: &[Vec<usize>]) -> Vec<usize> {
        let mut ranks = vec![0];
        for (line, cuts) in lines.iter().zip(&self.cuts) {
            ranks = ranks.iter().flat_map(|rank| line.iter().map(move |at| rank * cuts.ranks() + at)).collect();
        }
        ranks
    }

    /// The boxes with current values on a rank, its own first.
    pub fn valid(&self, rank: usize) -> Vec<Region> {
        let none = GridLayout { halo: vec![[0, 0]; self.shape.len()], corners: false, ..self.clone() };
        let own: Vec<Region> = self.own(rank).into_iter().collect();
        own.into_iter().chain(self.halo_boxes(&none, rank)).collect()
    }

    /// The halo boxes that a rank has in this layout and not in `old`, which has the same cuts.
    pub fn halo_boxes(&self, old: &GridLayout, rank: usize) -> Vec<Region> {
        let Some(own) = self.own(rank) else { return Vec::new() };
        // Boxes, the number of axes along which each is outside of the rank's own box, and whether `old` covers it
        // along each of them.
        let mut boxes: Vec<(Region, usize, bool)> = vec![(Vec::new(), 0, true)];
        for (axis, &span) in own.iter().enumerate() {
            let ([up, down], [before, behind]) = (self.halo[axis], old.halo[axis]);
            let (before, behind) = (before.min(up), behind.min(down));
            let parts = [
                (Span::new(span.low - up, span.low - before), 1, false),
                (Span::new(span.low - before, span.low), 1, true),
                (span, 0, true),
                (Span::new(span.high, span.high + behind), 1, true),
                (Span::new(span.high + behind, span.high + down), 1, false),
            ];
            let all = Span::new(0, self.shape[axis]);
            let parts = parts.map(|(part, beside, there)| (part.meet(all), beside, there));
            boxes = boxes
                .iter()
                .flat_map(|(region, beside, there)| {
                    let some = parts.iter().filter(|(part, ..)| !part.is_empty());
                    some.map(move |(part, more, before)| {
                        let region = region.iter().copied().chain([*part]).collect();
                        (region, beside + more, *there && *before)
                    })
                })
                .collect();
        }
        let has = |layout: &GridLayout, beside: usize| beside <= 1 || layout.corners;
        boxes.retain(|(_, beside, there)| has(self, *beside) && !(*there && has(old, *beside)));
        boxes.into_iter().map(|(region, ..)| region).collect()
    }

    /// A view relative to a rank's memory, which covers this window.
    pub fn local(&self, window: &[Span], view: &View) -> Result<View> {
        let malformed =
            || Error::new(status::EXECUTION, "a view does not follow the axes of an array on a grid of ranks");
        let axes = axes_of(&self.shape, view).ok_or_else(malformed)?;
        let (mut pitch, mut start) = (1, 0);
        let mut stride = vec![0; view.rank()];
        for (axis, span) in axes.iter().zip(window).rev() {
            start += (axis.start - span.low) * pitch;
            if let Some(dim) = axis.dim {
                stride[dim] = axis.step * pitch;
            }
            pitch *= span.len();
        }
        View::new(start, view.shape(), &stride).map_err(|error| Error::new(status::BATCH, error.0))
    }

    /// A region as a view of the array.
    pub fn view(&self, region: &[Span]) -> Result<View> {
        let extents: Vec<i64> = region.iter().map(|span| span.len()).collect();
        let (mut pitch, mut start) = (1, 0);
        let mut stride = vec![0; region.len()];
        for axis in (0..region.len()).rev() {
            (stride[axis], start) = (pitch, start + region[axis].low * pitch);
            pitch *= self.shape[axis];
        }
        View::new(start, &extents, &stride).map_err(|error| Error::new(status::BATCH, error.0))
    }

    /// The elements of a view in a rank's memory, and their offsets there.
    #[cfg(debug_assertions)]
    pub fn places(&self, rank: usize, view: &View) -> Vec<(i64, i64)> {
        let elements = |view: &View| offsets(view.start(), view.shape(), view.stride());
        let local = self.window(rank).and_then(|window| self.local(&window, view).ok());
        local.map_or(Vec::new(), |local| elements(view).zip(elements(&local)).collect())
    }

    /// Appends the layout to a description.
    pub fn describe(&self, words: &mut Vec<u64>) {
        words.push(self.shape.len() as u64 * 2 + u64::from(self.corners));
        words.extend(self.shape.iter().map(|&extent| extent as u64));
        for (cuts, (capacity, halo)) in self.cuts.iter().zip(self.capacity.iter().zip(&self.halo)) {
            words.push(cuts.ranks() as u64);
            cuts.describe(words);
            words.extend(capacity.iter().chain(halo).map(|&count| count as u64));
        }
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let cuts: usize = self.cuts.iter().map(|cuts| size_of::<Cuts>() + cuts.bytes()).sum();
        size_of::<GridLayout>() + cuts + self.shape.len() * size_of::<[i64; 5]>()
    }
}

/// The weights of the lines along each axis; `None` if the ranks' weights are not their products.
pub fn weights_of(grid: &[usize], weights: &Weights) -> Option<Vec<Weights>> {
    let each = weights.as_slice();
    if each.is_empty() {
        return Some(grid.iter().map(|&lines| Weights::even(lines)).collect());
    }
    let mut sums: Vec<Vec<f64>> = grid.iter().map(|&lines| vec![0.0; lines]).collect();
    let place = |mut rank: usize| {
        let mut place = vec![0; grid.len()];
        for (at, lines) in place.iter_mut().zip(grid).rev() {
            (*at, rank) = (rank % lines, rank / lines);
        }
        place
    };
    for (rank, weight) in each.iter().enumerate() {
        place(rank).into_iter().zip(&mut sums).for_each(|(at, sums)| sums[at] += weight);
    }
    let total: f64 = each.iter().sum();
    let follows = |(rank, weight): (usize, &f64)| {
        let product: f64 = place(rank).into_iter().zip(&sums).map(|(at, sums)| sums[at] / total).product();
        (product * total - weight).abs() <= 1e-9 * total
    };
    each.iter().enumerate().all(follows).then(|| sums.into_iter().map(Weights::given).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::interp::offsets;
    use bh_bytecode::random::Rng;
    use std::collections::{BTreeMap, BTreeSet};

    /// A random view whose dimensions follow the axes, in order or reversed.
    fn some_view(rng: &mut Rng, shape: &[i64]) -> View {
        let mut view = View::contiguous(shape).unwrap();
        for (dim, &extent) in shape.iter().enumerate() {
            let from = rng.between(0, extent - 1);
            let step = rng.between(1, 2);
            view = view.slice(dim, Some(from), Some(rng.between(from + 1, extent)), step).unwrap();
        }
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if rng.below(3) == 0 {
            order.reverse();
        }
        view.transpose(&order).unwrap()
    }

    fn elements(view: &View) -> Vec<i64> {
        offsets(view.start(), view.shape(), view.stride()).collect()
    }

    /// Compares owners, views, halos and offsets with those found element by element.
    #[test]
    fn boxes_equal_those_found_element_by_element() {
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let grid =
                rng.pick(&[vec![2, 2], vec![2, 3], vec![3, 2], vec![1, 5], vec![4, 1], vec![2, 2, 2]]).unwrap().clone();
            let axes = grid.len() + rng.below(2);
            let shape: Vec<i64> = (0..axes).map(|_| rng.between(1, 7)).collect();
            let ranks = grid.iter().product();
            let weights = match rng.below(2) {
                0 => Weights::even(ranks),
                _ => Weights::given((0..ranks).map(|rank| if rank < ranks / grid[0] { 2.0 } else { 1.0 }).collect())
                    .unwrap(),
            };
            let mut layout = GridLayout::even(&shape, &grid, &weights).unwrap();
            let whole: i64 = shape.iter().product();
            let mut owner = BTreeMap::new();
            for rank in 0..ranks {
                assert_eq!(layout.rank(&layout.place(rank)), rank);
                let Some(own) = layout.own(rank) else { continue };
                for element in elements(&layout.view(&own).unwrap()) {
                    assert_eq!(owner.insert(element, rank), None, "seed {seed}");
                }
            }
            assert_eq!(owner.len() as i64, whole, "seed {seed}");
            let view = some_view(&mut rng, &shape);
            let axes_of_view = axes_of(&shape, &view).unwrap();
            let found = layout.owners(&region_of(&axes_of_view));
            for rank in 0..ranks {
                let mine: BTreeSet<i64> =
                    elements(&view).into_iter().filter(|element| owner[element] == rank).collect();
                assert!(mine.is_empty() || found.contains(&rank), "seed {seed}");
                let part = layout.own(rank).and_then(|own| part(&axes_of_view, view.shape(), &own));
                let there = part.map_or(Vec::new(), |part| elements(&part.of(&view, 0).unwrap()));
                assert_eq!(there.iter().copied().collect::<BTreeSet<_>>(), mine, "seed {seed}, rank {rank}");
                if let (Some(part), Some(own)) = (part, layout.own(rank)) {
                    // A rank's memory has its box in C order.
                    let here = layout.local(&own, &part.of(&view, 0).unwrap()).unwrap();
                    let memory = elements(&layout.view(&own).unwrap());
                    let found: Vec<i64> = elements(&here).into_iter().map(|place| memory[place as usize]).collect();
                    assert_eq!(found, there, "seed {seed}");
                }
            }
            let old = layout.clone();
            let margins = |rng: &mut Rng| (0..axes).map(|_| [rng.between(0, 3), rng.between(0, 3)]).collect();
            (layout.halo, layout.corners) = (margins(&mut rng), rng.below(2) == 0);
            let mut more = layout.clone();
            for by in &mut more.halo {
                *by = by.map(|by| by + rng.between(0, 2));
            }
            more.corners |= rng.below(2) == 0;
            let all = |layout: &GridLayout, old: &GridLayout, rank| -> Vec<i64> {
                layout.halo_boxes(old, rank).iter().flat_map(|region| elements(&layout.view(region).unwrap())).collect()
            };
            for rank in 0..ranks {
                let (first, second, both) =
                    (all(&layout, &old, rank), all(&more, &layout, rank), all(&more, &old, rank));
                let set: BTreeSet<i64> = first.iter().chain(&second).copied().collect();
                assert_eq!(set.len(), first.len() + second.len(), "seed {seed}: elements come once");
                assert_eq!(set, both.into_iter().collect(), "seed {seed}");
                for &element in &set {
                    let region: Region = axes_of(&shape, &View::new(element, &[1], &[1]).unwrap())
                        .unwrap()
                        .iter()
                        .map(|axis| Span::new(axis.start, axis.start + 1))
                        .collect();
                    assert!(layout.ranks_reaching(&region, &more.halo).contains(&rank), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn weights_follow_the_lines_of_a_grid_or_there_is_none() {
        let given = |each: &[f64]| Weights::given(each.to_vec()).unwrap();
        assert!(weights_of(&[2, 2], &given(&[1.0, 2.0, 2.0, 4.0])).is_some());
        assert!(weights_of(&[2, 2], &given(&[1.0, 2.0, 2.0, 3.0])).is_none());
        let lines = weights_of(&[2, 2], &given(&[1.0, 1.0, 3.0, 3.0])).unwrap();
        assert_eq!((lines[0].as_slice(), lines[1].as_slice()), (&[2.0, 6.0][..], &[][..]));
    }
}

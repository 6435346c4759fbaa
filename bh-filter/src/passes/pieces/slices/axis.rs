//! A short axis of a base, and where views are along it.

use bh_bytecode::View;

/// An axis of a base: the element at an offset is in slice `offset / step % count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The distance of neighbouring slices.
    pub step: i64,
    /// The number of slices.
    pub count: i64,
}

/// Where a view is along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this slice.
    Within(i64),
    /// In all slices, one for each index of this dimension.
    Across(usize),
}

impl Axis {
    /// Where a canonical view is that is not empty; none if it is in some slices but not in all, or in several at one index.
    pub fn place(&self, view: &View) -> Option<Place> {
        let all = self.step * self.count;
        let (mut low, mut high) = (view.start() % self.step, view.start() % self.step);
        let mut across = None;
        for (dim, (&extent, &stride)) in view.shape().iter().zip(view.stride()).enumerate() {
            if extent == 1 || stride % all == 0 {
                continue;
            }
            if stride.abs() < self.step {
                let reach = stride.checked_mul(extent - 1)?;
                (low, high) = (low + reach.min(0), high + reach.max(0));
            } else if stride.abs() == self.step && extent == self.count && across.is_none() {
                across = Some((dim, stride));
            } else {
                return None;
            }
        }
        let first = view.start() / self.step % self.count;
        match across {
            _ if low < 0 || high >= self.step => None,
            Some((dim, stride)) => (first == if stride > 0 { 0 } else { self.count - 1 }).then_some(Place::Across(dim)),
            None => Some(Place::Within(first)),
        }
    }

    /// A view within a slice, as a view of an array that has that slice only.
    pub fn within(&self, view: &View) -> View {
        let all = self.step * self.count;
        let stride = |&stride: &i64| if stride % all == 0 { stride / self.count } else { stride };
        let strides: Vec<i64> = view.stride().iter().map(stride).collect();
        let start = view.start() / all * self.step + view.start() % self.step;
        View::new(start, view.shape(), &strides).expect("a slice of a legal view is a legal view")
    }
}

/// A view at one index of a dimension.
pub fn at_index(view: &View, dim: usize, index: i64) -> View {
    let without = |list: &[i64]| -> Vec<i64> { [&list[..dim], &list[dim + 1..]].concat() };
    let start = view.start() + index * view.stride()[dim];
    View::new(start, &without(view.shape()), &without(view.stride())).expect("a part of a legal view is a legal view")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::random::Rng;

    fn offsets(view: &View) -> Vec<i64> {
        let mut all = vec![view.start()];
        for (&extent, &stride) in view.shape().iter().zip(view.stride()) {
            all = all.iter().flat_map(|&at| (0..extent).map(move |i| at + i * stride)).collect();
        }
        all
    }

    #[test]
    fn places_are_those_of_the_elements() {
        let mut rng = Rng::new(11);
        let (mut within, mut across) = (0, 0);
        for _ in 0..20_000 {
            let shape: Vec<i64> = (0..3).map(|_| 1 + rng.below(4) as i64).collect();
            let mut view = View::contiguous(&shape).unwrap();
            let dim = rng.below(3);
            let axis = Axis { step: view.stride()[dim], count: shape[dim] };
            for dim in 0..3 {
                let extent = view.shape()[dim];
                let first = rng.below(extent as usize) as i64;
                view = match rng.below(6) {
                    0 => view.slice(dim, Some(first), Some(first + 1), 1).unwrap(),
                    1 => view.slice(dim, Some(first), None, 1).unwrap(),
                    2 => view.reverse(dim).unwrap(),
                    3 => view.slice(dim, Some(0), None, 2).unwrap(),
                    _ => view,
                };
            }
            let view = view.transpose(&[[0, 1, 2], [2, 0, 1], [1, 0, 2]][rng.below(3)]).unwrap().canonical();
            let slice = |offset: i64| offset / axis.step % axis.count;
            let inside = |offset: i64| offset / (axis.step * axis.count) * axis.step + offset % axis.step;
            match axis.place(&view) {
                Some(Place::Within(number)) => {
                    within += 1;
                    assert!(offsets(&view).iter().all(|&at| slice(at) == number), "{axis:?} {view:?}");
                    let expected: Vec<i64> = offsets(&view).into_iter().map(inside).collect();
                    assert_eq!(offsets(&axis.within(&view)), expected, "{axis:?} {view:?}");
                }
                Some(Place::Across(dim)) => {
                    across += 1;
                    let mut seen: Vec<i64> = (0..axis.count)
                        .map(|index| match axis.place(&at_index(&view, dim, index).canonical()) {
                            Some(Place::Within(number)) => number,
                            other => panic!("{axis:?} {view:?} {index} {other:?}"),
                        })
                        .collect();
                    seen.sort_unstable();
                    assert_eq!(seen, (0..axis.count).collect::<Vec<i64>>(), "{axis:?} {view:?}");
                }
                None => {
                    let mut slices: Vec<i64> = offsets(&view).into_iter().map(slice).collect();
                    slices.dedup();
                    assert!(slices.len() > 1, "{axis:?} {view:?}");
                }
            }
        }
        assert!(within > 1000 && across > 1000);
    }
}

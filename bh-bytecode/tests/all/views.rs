//! Views against brute force: every answer of the view algebra is compared with the offsets it stands for.

use bh_bytecode::interp::offsets;
use bh_bytecode::{Overlap, View, view::overlap};
use proptest::prelude::*;
use std::collections::HashSet;

/// The offsets of a view's elements in C order.
fn elements(view: &View) -> Vec<i64> {
    offsets(view.start(), view.shape(), view.stride()).collect()
}

/// Small views: any strides, or slices of a grid.
fn any_view() -> impl Strategy<Value = View> {
    let wild = prop::collection::vec((0i64..5, -7i64..8), 0..4).prop_flat_map(|dims| {
        (0i64..30).prop_map(move |start| {
            let (shape, stride): (Vec<i64>, Vec<i64>) = dims.iter().copied().unzip();
            View::new(start, &shape, &stride).unwrap()
        })
    });
    prop_oneof![wild, grid_slice()]
}

/// Slices of one grid of 6 by 7, stepped and backwards.
fn grid_slice() -> impl Strategy<Value = View> {
    let bound = prop::option::of(-8i64..9);
    let slice = (bound.clone(), bound, prop_oneof![Just(1i64), Just(2), Just(-1), Just(3)]);
    (slice.clone(), slice).prop_map(|(rows, columns)| {
        let grid = View::contiguous(&[6, 7]).unwrap();
        grid.slice(0, rows.0, rows.1, rows.2).unwrap().slice(1, columns.0, columns.1, columns.2).unwrap()
    })
}

/// Python's slice as a list of indices.
fn python_slice(extent: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<i64> {
    let place = |bound: i64| if bound < 0 { bound + extent } else { bound };
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let first = start.map_or(if step > 0 { low } else { high }, |bound| place(bound).clamp(low, high));
    let end = stop.map_or(if step > 0 { high } else { low }, |bound| place(bound).clamp(low, high));
    let mut indices = Vec::new();
    let mut at = first;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        indices.push(at);
        at += step;
    }
    indices
}

/// The strides with which a list of offsets would be a view of this shape, if there are any.
fn strides_for(offsets: &[i64], shape: &[i64]) -> Option<Vec<i64>> {
    let mut strides = Vec::new();
    let mut inner: i64 = shape.iter().product();
    for &extent in shape {
        inner /= extent;
        strides.push(if extent > 1 { offsets[inner as usize] - offsets[0] } else { 0 });
    }
    let view = View::new(offsets[0], shape, &strides).unwrap();
    (elements(&view) == offsets).then_some(strides)
}

/// All shapes of rank up to 3 with this number of elements.
fn shapes_of(count: i64) -> Vec<Vec<i64>> {
    let divisors: Vec<i64> = (1..=count).filter(|divisor| count % divisor == 0).collect();
    let mut shapes = vec![vec![count]];
    for &a in &divisors {
        shapes.push(vec![a, count / a]);
        for &b in divisors.iter().filter(|&&b| count / a % b == 0) {
            shapes.push(vec![a, b, count / a / b]);
        }
    }
    shapes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overlap_is_never_wrong(a in any_view(), b in any_view()) {
        let (first, second) = (elements(&a), elements(&b));
        let common = first.iter().collect::<HashSet<_>>().intersection(&second.iter().collect()).count() > 0;
        match overlap(&a, &b) {
            Overlap::Identical => prop_assert!(first == second && a.shape() == b.shape()),
            Overlap::Disjoint => prop_assert!(!common),
            Overlap::Overlapping => prop_assert!(!first.is_empty() && !second.is_empty()),
        }
        if a.shape() == b.shape() && first == second {
            prop_assert_eq!(overlap(&a, &b), Overlap::Identical);
        }
        prop_assert_eq!(overlap(&a, &b), overlap(&b, &a));
    }

    #[test]
    fn overlap_of_unit_slices_is_exact(a in grid_slice(), b in grid_slice()) {
        if !a.stride().iter().chain(b.stride()).all(|stride| [1, 7].contains(&stride.abs())) {
            return Ok(());
        }
        let (first, second) = (elements(&a), elements(&b));
        if !first.iter().any(|offset| second.contains(offset)) && (a.shape() != b.shape() || !first.is_empty()) {
            prop_assert_eq!(overlap(&a, &b), Overlap::Disjoint);
        }
    }

    #[test]
    fn injective_is_never_wrong(view in any_view()) {
        let all = elements(&view);
        let distinct = all.iter().collect::<HashSet<_>>().len();
        prop_assert!(!view.is_injective() || distinct == all.len());
    }

    #[test]
    fn slices_of_grids_are_injective(view in grid_slice()) {
        prop_assert!(view.is_injective());
    }

    #[test]
    fn extents_and_contiguity_are_exact(view in any_view()) {
        let all = elements(&view);
        prop_assert_eq!(view.len(), all.len() as i64);
        prop_assert_eq!(view.extent(), all.iter().min().map(|&low| (low, *all.iter().max().unwrap())));
        let dense = all.iter().enumerate().all(|(at, &offset)| offset == view.start() + at as i64);
        prop_assert_eq!(view.is_contiguous(), dense);
        prop_assert_eq!(elements(&view.canonical()), all);
    }

    #[test]
    fn slicing_is_pythons(
        extent in 0i64..7,
        start in prop::option::of(-9i64..10),
        stop in prop::option::of(-9i64..10),
        step in prop_oneof![-4i64..0, 1i64..5, Just(i64::MIN), Just(i64::MAX)],
    ) {
        let view = View::new(100, &[extent], &[10]).unwrap().slice(0, start, stop, step).unwrap();
        let expected: Vec<i64> = if step.unsigned_abs() > 10 {
            python_slice(extent, start, stop, 10 * step.signum())
        } else {
            python_slice(extent, start, stop, step)
        };
        prop_assert_eq!(elements(&view), expected.iter().map(|index| 100 + 10 * index).collect::<Vec<_>>());
    }

    #[test]
    fn reshape_succeeds_exactly_when_strides_exist(view in any_view()) {
        if view.is_empty() {
            return Ok(());
        }
        let all = elements(&view);
        for shape in shapes_of(view.len()) {
            match view.reshape(&shape).unwrap() {
                Some(reshaped) => {
                    prop_assert_eq!(reshaped.shape(), &shape[..]);
                    prop_assert_eq!(elements(&reshaped), all.clone());
                }
                None => prop_assert_eq!(strides_for(&all, &shape), None, "{:?} to {:?}", view, shape),
            }
        }
        prop_assert!(view.reshape(&[view.len() + 1]).is_err());
    }

    #[test]
    fn transpositions_diagonals_and_axes_move_elements(view in any_view(), offset in -5i64..6) {
        let rank = view.rank();
        let reversed: Vec<usize> = (0..rank).rev().collect();
        let transposed = view.transpose(&reversed).unwrap();
        let sorted = |view: &View| { let mut all = elements(view); all.sort(); all };
        prop_assert_eq!(sorted(&transposed), sorted(&view));
        prop_assert_eq!(transposed.transpose(&reversed).unwrap(), view);
        let stretched = view.new_axis(0).unwrap();
        prop_assert_eq!(elements(&stretched), elements(&view));
        let mut shape = vec![3];
        shape.extend_from_slice(view.shape());
        let broadcast = view.broadcast_to(&shape).unwrap();
        prop_assert_eq!(elements(&broadcast), elements(&view).repeat(3));
        if rank >= 2 {
            let diagonal = view.diagonal(offset, 0, 1).unwrap();
            let (rows, columns) = (view.shape()[0], view.shape()[1]);
            let (row, column) = ((-offset).max(0), offset.max(0));
            let length = (rows - row).min(columns - column).max(0);
            prop_assert_eq!(diagonal.shape()[rank - 2], length);
            if length > 0 && rank == 2 {
                let expected = (0..length).map(|at| {
                    view.index(0, row + at).unwrap().index(0, column + at).unwrap().start()
                });
                prop_assert_eq!(elements(&diagonal), expected.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn extreme_numbers_are_errors_or_answers(
        start in any::<i64>(),
        dims in prop::collection::vec((prop_oneof![0i64..4, any::<i64>()], prop_oneof![-3i64..4, any::<i64>()]), 0..4),
        shift in any::<i64>(),
    ) {
        let (shape, stride): (Vec<i64>, Vec<i64>) = dims.into_iter().unzip();
        if let Ok(view) = View::new(start, &shape, &stride) {
            let other = View::new(shift, &shape, &stride).unwrap_or(view);
            let _ = (overlap(&view, &other), view.is_injective(), view.is_contiguous(), view.fits(shift), view.canonical());
            for dim in 0..view.rank() {
                let _ = (view.slice(dim, Some(shift), None, shift), view.index(dim, shift), view.reverse(dim));
                let _ = view.diagonal(shift, 0, dim);
            }
            let _ = (view.reshape(&[view.len()]), view.broadcast_to(&[2, 2, 2, 2]), view.new_axis(0));
        }
    }
}

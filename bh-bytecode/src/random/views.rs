//! Random shapes and views.

use super::{Options, Rng};
use crate::view::View;

/// A random shape: mostly of rank 1 to 3, sometimes a single element, empty, or of high rank.
pub(super) fn shape(rng: &mut Rng, options: &Options) -> Vec<i64> {
    let rank = match rng.below(20) {
        0 | 1 => 0,
        2 => rng.below(options.max_rank + 1),
        3 => options.max_rank,
        _ => 1 + rng.below(3),
    }
    .min(options.max_rank);
    let mut shape = vec![1; rank];
    let mut left = options.max_elements;
    let mut order: Vec<usize> = (0..rank).collect();
    shuffle(rng, &mut order);
    for dim in order {
        let largest = if rank > 4 { 2 } else { 12 };
        shape[dim] = rng.between(1, largest).min(left.max(1));
        left /= shape[dim];
    }
    if options.allow_empty && rank > 0 && rng.chance(4) {
        shape[rng.below(rank)] = 0;
    }
    shape
}

/// Brings the items into random order.
fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at + 1));
    }
}

/// Extents of a base on which slices of a shape can be shifted: each up to 2 longer.
pub(super) fn grid(rng: &mut Rng, shape: &[i64]) -> Vec<i64> {
    let padded = shape.len() <= 3 && rng.chance(50);
    shape.iter().map(|&extent| if padded { extent + rng.between(0, 2) } else { extent }).collect()
}

/// A random view of a shape on a base of `length` elements laid out as `grid`; with `injective`, no element occurs
/// twice.
pub(super) fn view(rng: &mut Rng, grid: &[i64], length: i64, shape: &[i64], injective: bool) -> Option<View> {
    if !injective && length > 0 && rng.chance(15) {
        return broadcast(rng, length, shape);
    }
    if rng.chance(60)
        && let Some(view) = slice(rng, grid, shape)
    {
        return Some(view);
    }
    for _ in 0..3 {
        if let Some(view) = strided(rng, length, shape, injective) {
            return Some(view);
        }
    }
    let dense = View::contiguous(shape).ok()?;
    if dense.fits(length) {
        Some(dense)
    } else if injective || length == 0 {
        None
    } else {
        broadcast(rng, length, shape)
    }
}

/// A slice of the base's grid with random offsets, sometimes backwards.
fn slice(rng: &mut Rng, grid: &[i64], shape: &[i64]) -> Option<View> {
    let mut view = View::contiguous(grid).ok()?;
    if grid.len() != shape.len() {
        return None;
    }
    for (dim, (&whole, &part)) in grid.iter().zip(shape).enumerate() {
        if part > whole {
            return None;
        }
        let first = rng.between(0, whole - part);
        view = view.slice(dim, Some(first), Some(first + part), 1).ok()?;
        if rng.chance(8) {
            view = view.reverse(dim).ok()?;
        }
    }
    Some(view)
}

/// A view with random nested strides; dimensions in random order.
fn strided(rng: &mut Rng, length: i64, shape: &[i64], injective: bool) -> Option<View> {
    let mut order: Vec<usize> = (0..shape.len()).rev().collect();
    if rng.chance(40) {
        shuffle(rng, &mut order);
    }
    let mut stride = vec![0; shape.len()];
    let (mut step, mut reach, mut low) = (if rng.chance(30) { rng.between(2, 3) } else { 1 }, 0, 0);
    for dim in order {
        if !injective && rng.chance(12) {
            continue;
        }
        let span = (shape[dim] - 1).max(0) * step;
        reach += span;
        let backwards = rng.chance(20);
        stride[dim] = if backwards { -step } else { step };
        low += if backwards { span } else { 0 };
        step *= shape[dim].max(1);
        if rng.chance(25) {
            step += rng.between(0, 3);
        }
    }
    if reach >= length {
        return None;
    }
    View::new(low + rng.between(0, length - 1 - reach), shape, &stride).ok()
}

/// A view of few elements stretched over a shape.
fn broadcast(rng: &mut Rng, length: i64, shape: &[i64]) -> Option<View> {
    let mut stride = vec![0; shape.len()];
    let mut reach = 0;
    if !shape.is_empty() && rng.chance(70) {
        let dim = rng.below(shape.len());
        if shape[dim] <= length {
            stride[dim] = 1;
            reach = (shape[dim] - 1).max(0);
        }
    }
    View::new(rng.between(0, length - 1 - reach), shape, &stride).ok()
}

/// A view for random numbers and ranges: any start and strides.
pub(super) fn index_view(rng: &mut Rng, shape: &[i64]) -> Option<View> {
    if rng.chance(50) {
        return View::contiguous(shape).ok();
    }
    let stride: Vec<i64> = shape.iter().map(|_| rng.between(-3, 40)).collect();
    let start = if rng.chance(20) { rng.bits() as i64 / 2 } else { rng.between(-50, 1000) };
    View::new(start, shape, &stride).ok()
}

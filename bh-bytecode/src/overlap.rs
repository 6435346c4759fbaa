//! The question of how two views on one base overlap.

use crate::view::{MAX_RANK, View, reach};

/// How the elements of two views on one base relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// The same elements in the same order under the same shape.
    Identical,
    /// Certainly no common element.
    Disjoint,
    /// Common elements, or not proved otherwise.
    Overlapping,
}

/// A view by reference, of legal shape and strides.
#[derive(Clone, Copy, Debug)]
pub struct ViewRef<'a> {
    /// See [`View::start`].
    pub start: i64,
    /// See [`View::shape`].
    pub shape: &'a [i64],
    /// See [`View::stride`].
    pub stride: &'a [i64],
}

impl<'a> From<&'a View> for ViewRef<'a> {
    fn from(view: &'a View) -> ViewRef<'a> {
        ViewRef { start: view.start(), shape: view.shape(), stride: view.stride() }
    }
}

impl ViewRef<'_> {
    fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// As [`View::extent`].
    fn extent(&self) -> Option<(i64, i64)> {
        if self.is_empty() { None } else { reach(self.start, self.shape, self.stride) }
    }

    /// The dimensions that have more than one index, as (extent, stride).
    fn steps(&self) -> impl Iterator<Item = (i64, i64)> {
        self.shape.iter().copied().zip(self.stride.iter().copied()).filter(|&(extent, _)| extent > 1)
    }
}

/// Offsets beyond this, which no memory has, are not computed with.
const FARTHEST: i64 = 1 << 60;

/// How `a` and `b`, both on one base, overlap. Exact for identical views, for views in one grid whose boxes can be
/// compared dimension by dimension, and for pairs separated by range or by a common divisor of their strides;
/// otherwise it answers `Overlapping`.
pub fn overlap<'a>(a: impl Into<ViewRef<'a>>, b: impl Into<ViewRef<'a>>) -> Overlap {
    overlap_of(&a.into(), &b.into())
}

fn overlap_of(a: &ViewRef<'_>, b: &ViewRef<'_>) -> Overlap {
    if identical(a, b) {
        return Overlap::Identical;
    }
    let (Some((a_low, a_high)), Some((b_low, b_high))) = (a.extent(), b.extent()) else {
        return Overlap::Disjoint;
    };
    if a_high < b_low || b_high < a_low {
        return Overlap::Disjoint;
    }
    if a_low.min(b_low) < -FARTHEST || a_high.max(b_high) > FARTHEST {
        return Overlap::Overlapping;
    }
    if differ_by_gcd(a, b) || disjoint_boxes(a, b, a_low, b_low) {
        return Overlap::Disjoint;
    }
    Overlap::Overlapping
}

/// Do equal indices lead to equal elements?
fn identical(a: &ViewRef<'_>, b: &ViewRef<'_>) -> bool {
    a.shape == b.shape
        && (a.is_empty()
            || (a.start == b.start && a.steps().map(|(_, stride)| stride).eq(b.steps().map(|(_, stride)| stride))))
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

/// No common element because the starts differ modulo the common divisor of all strides.
fn differ_by_gcd(a: &ViewRef<'_>, b: &ViewRef<'_>) -> bool {
    let divisor = a.steps().chain(b.steps()).fold(0, |divisor, (_, stride)| gcd(divisor, stride));
    divisor > 1 && (a.start - b.start) % divisor != 0
}

/// No common element because the boxes differ in some digit, when offsets are written as digits of the strides of
/// both views, largest first. A digit's range is [low, low + Σ (extent-1)] over the dimensions with its stride; it is
/// unambiguous if, for each view, everything below stays inside one stride.
fn disjoint_boxes(a: &ViewRef<'_>, b: &ViewRef<'_>, a_low: i64, b_low: i64) -> bool {
    let mut grid = [0i64; 2 * MAX_RANK];
    let mut count = 0;
    for (_, stride) in a.steps().chain(b.steps()) {
        let stride = stride.abs();
        if stride != 0 && !grid[..count].contains(&stride) {
            grid[count] = stride;
            count += 1;
        }
    }
    let grid = &mut grid[..count];
    grid.sort_unstable_by(|x, y| y.cmp(x));
    let reach = |view: &ViewRef<'_>, stride: i64| -> i64 {
        view.steps().filter(|&(_, step)| step.abs() == stride).map(|(extent, _)| extent - 1).sum()
    };
    let (mut a_rest, mut b_rest) = (a_low, b_low);
    for (level, &stride) in grid.iter().enumerate() {
        let (a_digit, b_digit) = (a_rest.div_euclid(stride), b_rest.div_euclid(stride));
        a_rest = a_rest.rem_euclid(stride);
        b_rest = b_rest.rem_euclid(stride);
        let below = |view: &ViewRef<'_>, rest: i64| -> i64 {
            rest + grid[level + 1..].iter().map(|&lower| reach(view, lower) * lower).sum::<i64>()
        };
        if below(a, a_rest) >= stride || below(b, b_rest) >= stride {
            return false;
        }
        if a_digit + reach(a, stride) < b_digit || b_digit + reach(b, stride) < a_digit {
            return true;
        }
    }
    a_rest != b_rest
}

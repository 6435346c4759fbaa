//! Memory layouts of a case's operands.

use bh_bytecode::View;

/// The memory layout of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Contiguous, in C order.
    Contiguous,
    /// Contiguous, and long enough for several blocks of any engine.
    Long,
    /// Every second or third element, with a margin.
    Strided,
    /// Backwards along every dimension.
    Negative,
    /// In Fortran order.
    Transposed,
    /// Inputs broadcast with stride 0.
    Broadcast,
    /// The output is the first input; not for reductions.
    InPlace,
    /// Inputs are shifted windows on one base.
    Overlapping,
    /// Inputs after the first are constants.
    Constant,
    /// No elements.
    Empty,
    /// One element, no dimensions.
    Scalar,
    /// Sixteen dimensions in an order that cannot be merged.
    Rank16,
}

impl Layout {
    /// All layouts.
    pub const ALL: &[Layout] = &[
        Layout::Contiguous,
        Layout::Long,
        Layout::Strided,
        Layout::Negative,
        Layout::Transposed,
        Layout::Broadcast,
        Layout::InPlace,
        Layout::Overlapping,
        Layout::Constant,
        Layout::Empty,
        Layout::Scalar,
        Layout::Rank16,
    ];

    /// The name in titles.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Contiguous => "contiguous",
            Layout::Long => "long",
            Layout::Strided => "strided",
            Layout::Negative => "negative",
            Layout::Transposed => "transposed",
            Layout::Broadcast => "broadcast",
            Layout::InPlace => "in place",
            Layout::Overlapping => "overlapping",
            Layout::Constant => "constant",
            Layout::Empty => "empty",
            Layout::Scalar => "0-d",
            Layout::Rank16 => "rank 16",
        }
    }

    /// The shape of the main operands.
    pub fn shape(self) -> &'static [i64] {
        match self {
            Layout::Long => &[3, 1111],
            Layout::Empty => &[3, 0, 2],
            Layout::Scalar => &[],
            Layout::Rank16 => &[2, 1, 1, 3, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 1, 2],
            _ => &[7, 19],
        }
    }

    /// The base's length and the view for an output of a shape.
    pub fn output(self, shape: &[i64]) -> (i64, View) {
        match self {
            Layout::Strided => strided(shape),
            Layout::Negative => negative(shape),
            Layout::Transposed | Layout::Rank16 => reversed_order(shape),
            _ => dense(shape),
        }
    }

    /// The base's length and the view for the input with this number.
    pub fn input(self, shape: &[i64], place: usize) -> (i64, View) {
        match self {
            Layout::Broadcast => stretched(shape, place),
            Layout::Overlapping => shifted(shape, place),
            // The second input in C order, so that no order of loops suits all.
            Layout::Transposed | Layout::Rank16 if place == 1 => dense(shape),
            _ => self.output(shape),
        }
    }
}

fn make(start: i64, shape: &[i64], stride: &[i64]) -> View {
    View::new(start, shape, stride).unwrap_or_else(|error| panic!("a layout's view is wrong: {error}"))
}

/// Strides of a dense array in C order.
fn c_order(shape: &[i64]) -> Vec<i64> {
    let mut stride = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        stride[dim - 1] = stride[dim] * shape[dim].max(1);
    }
    stride
}

fn dense(shape: &[i64]) -> (i64, View) {
    (shape.iter().product(), make(0, shape, &c_order(shape)))
}

fn strided(shape: &[i64]) -> (i64, View) {
    let grid: Vec<i64> = shape.iter().enumerate().map(|(dim, extent)| 2 + (2 + dim as i64 % 2) * extent).collect();
    let stride: Vec<i64> = c_order(&grid).iter().enumerate().map(|(dim, step)| step * (2 + dim as i64 % 2)).collect();
    (grid.iter().product(), make(i64::from(!shape.is_empty()), shape, &stride))
}

fn negative(shape: &[i64]) -> (i64, View) {
    let stride: Vec<i64> = c_order(shape).iter().map(|step| -step).collect();
    let start = shape.iter().zip(&stride).map(|(extent, step)| (extent - 1) * -step).sum();
    (shape.iter().product(), make(start, shape, &stride))
}

fn reversed_order(shape: &[i64]) -> (i64, View) {
    let turned: Vec<i64> = shape.iter().rev().copied().collect();
    let stride: Vec<i64> = c_order(&turned).into_iter().rev().collect();
    (shape.iter().product(), make(0, shape, &stride))
}

/// Stride 0 along the even or the odd dimensions, alternating with `place`.
fn stretched(shape: &[i64], place: usize) -> (i64, View) {
    let kept = |dim: usize| dim % 2 != place % 2;
    let grid: Vec<i64> = shape.iter().enumerate().map(|(dim, &extent)| if kept(dim) { extent } else { 1 }).collect();
    let mut stride = c_order(&grid);
    stride.iter_mut().enumerate().filter(|(dim, _)| !kept(*dim)).for_each(|(_, step)| *step = 0);
    (grid.iter().product(), make(0, shape, &stride))
}

/// A window at an offset that depends on `place`, in a larger base.
fn shifted(shape: &[i64], place: usize) -> (i64, View) {
    let grid: Vec<i64> = shape.iter().map(|extent| extent + 2).collect();
    let stride = c_order(&grid);
    let start = stride.iter().sum::<i64>() * (place as i64).min(2);
    (grid.iter().product(), make(start, shape, &stride))
}

//! Evenly spaced numbers.

use crate::scope::Scope;
use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Location, Recorder};

/// Evenly spaced numbers from a start to a limit, by NumPy's formula.
#[derive(Clone, Copy)]
pub struct Spacing {
    /// The first number.
    pub start: f64,
    /// The limit.
    pub stop: f64,
    /// The number of numbers.
    pub count: i64,
    /// Is the limit the last number? Otherwise the last is one step before it.
    pub endpoint: bool,
}

impl Spacing {
    /// The divisor of positions, if there is one, and their factor.
    fn factors(&self) -> (Option<f64>, f64) {
        let (span, parts) = (self.stop - self.start, self.count.saturating_sub(i64::from(self.endpoint)));
        if parts <= 0 {
            return (None, span);
        }
        let step = span / parts as f64;
        // A step that underflows would make all numbers equal.
        if step == 0.0 { (Some(parts as f64), span) } else { (None, step) }
    }

    /// Is the last number set to the limit, instead of the formula's result?
    fn ends_exactly(&self) -> bool {
        self.endpoint && self.count > 1
    }

    /// The numbers in order.
    pub fn numbers(self) -> impl Iterator<Item = f64> {
        let (divisor, factor) = self.factors();
        let exact = if self.ends_exactly() { self.count - 1 } else { -1 };
        (0..self.count).map(move |place| {
            let number = divisor.map_or(place as f64, |divisor| place as f64 / divisor) * factor + self.start;
            if place == exact { self.stop } else { number }
        })
    }
}

/// A new array of start + i·step for its elements i in C order, of a real floating-point type.
pub fn steps(
    recorder: &Recorder,
    dtype: DType,
    shape: &[i64],
    (start, step): (f64, f64),
    place: Location<'_>,
) -> Result<ArrayId> {
    scaled(recorder, dtype, shape, (None, step, start), place)
}

/// The positions of elements in C order, divided by a number if there is one, times a second, plus a third.
fn scaled(
    recorder: &Recorder,
    dtype: DType,
    shape: &[i64],
    (divisor, factor, start): (Option<f64>, f64, f64),
    place: Location<'_>,
) -> Result<ArrayId> {
    if !dtype.is_float() {
        let text = format!("a range of fractions has a floating-point type, not {dtype}");
        return Err(Error::new(status::TYPE, text));
    }
    let scope = Scope::new(recorder, place);
    let array = scope.empty(dtype, shape)?;
    let number = |value: f64| Input::Constant(Constant::from_value(value).cast(dtype));
    recorder.range(array, 0, 1, place)?;
    if let Some(divisor) = divisor {
        scope.operate_into(Opcode::Divide, array, &[Input::Array(array), number(divisor)])?;
    }
    scope.operate_into(Opcode::Multiply, array, &[Input::Array(array), number(factor)])?;
    scope.operate_into(Opcode::Add, array, &[Input::Array(array), number(start)])?;
    Ok(scope.keep(array))
}

/// A new array of evenly spaced numbers, as many as the shape has elements.
pub fn linspace(
    recorder: &Recorder,
    dtype: DType,
    shape: &[i64],
    spacing: Spacing,
    place: Location<'_>,
) -> Result<ArrayId> {
    let (divisor, factor) = spacing.factors();
    let array = scaled(recorder, dtype, shape, (divisor, factor, spacing.start), place)?;
    let scope = Scope::new(recorder, place);
    scope.note(array);
    if spacing.ends_exactly() {
        let last = scope
            .view(array, |view| (0..shape.len()).try_fold(*view, |view, dim| view.slice(dim, Some(-1), None, 1)))?;
        let stop = Constant::from_value(spacing.stop).cast(dtype);
        scope.operate_into(Opcode::Copy, last, &[Input::Constant(stop)])?;
    }
    Ok(scope.keep(array))
}

//! Numbers at equal distances.

use crate::scope::Scope;
use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Location, Recorder};

/// A new array of start + i·step for its elements i in C order, of a real floating-point type.
pub fn steps(
    recorder: &Recorder,
    dtype: DType,
    shape: &[i64],
    (start, step): (f64, f64),
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
    scope.operate_into(Opcode::Multiply, array, &[Input::Array(array), number(step)])?;
    scope.operate_into(Opcode::Add, array, &[Input::Array(array), number(start)])?;
    Ok(scope.keep(array))
}

/// A new array of as many numbers from start to stop, both included, as the shape has elements.
pub fn linspace(
    recorder: &Recorder,
    dtype: DType,
    shape: &[i64],
    (start, stop): (f64, f64),
    place: Location<'_>,
) -> Result<ArrayId> {
    let count: i64 = shape.iter().product();
    let step = if count > 1 { (stop - start) / (count - 1) as f64 } else { 0.0 };
    let array = steps(recorder, dtype, shape, (start, step), place)?;
    let scope = Scope::new(recorder, place);
    scope.note(array);
    if count > 1 {
        // The last element is exact, as in NumPy.
        let last = scope
            .view(array, |view| (0..shape.len()).try_fold(*view, |view, dim| view.slice(dim, Some(-1), None, 1)))?;
        scope.operate_into(Opcode::Copy, last, &[Input::Constant(Constant::from_value(stop).cast(dtype))])?;
    }
    Ok(scope.keep(array))
}

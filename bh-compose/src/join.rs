//! Joins arrays, and creates matrices with ones on a diagonal.

use crate::scope::{Scope, check_axis};
use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Location, Recorder};

/// A new array with the parts joined along an axis. They must have the same type, and equal extents along the other
/// axes.
pub fn concatenate(recorder: &Recorder, parts: &[ArrayId], axis: usize, place: Location<'_>) -> Result<ArrayId> {
    let scope = Scope::new(recorder, place);
    let result = joined("concatenate", &scope, parts, axis)?;
    Ok(scope.keep(result))
}

/// A new array with the parts joined along a new axis. They must have the same type and shape.
pub fn stack(recorder: &Recorder, parts: &[ArrayId], axis: usize, place: Location<'_>) -> Result<ArrayId> {
    let scope = Scope::new(recorder, place);
    let first = recorder.info(first("stack", parts)?)?;
    check_axis("stack", axis, first.view.rank() + 1)?;
    let mut widened = Vec::with_capacity(parts.len());
    for &part in parts {
        let info = recorder.info(part)?;
        if info.view.shape() != first.view.shape() {
            let text = format!("stack: shape {:?} differs from {:?}", info.view.shape(), first.view.shape());
            return Err(Error::new(status::SHAPE, text));
        }
        widened.push(scope.view(part, |view| view.new_axis(axis))?);
    }
    let result = joined("stack", &scope, &widened, axis)?;
    Ok(scope.keep(result))
}

fn first(name: &str, parts: &[ArrayId]) -> Result<ArrayId> {
    let none = || Error::new(status::ARGUMENT, format!("{name}: there must be an array at least"));
    parts.first().copied().ok_or_else(none)
}

fn joined(name: &str, scope: &Scope<'_>, parts: &[ArrayId], axis: usize) -> Result<ArrayId> {
    let first = scope.recorder.info(first(name, parts)?)?;
    let shape = first.view.shape();
    check_axis(name, axis, shape.len())?;
    let mut extents = shape.to_vec();
    extents[axis] = 0;
    let mut counts = Vec::with_capacity(parts.len());
    for &part in parts {
        let info = scope.recorder.info(part)?;
        let other = info.view.shape();
        if info.dtype != first.dtype {
            let text = format!("{name}: arrays of {} and {} have to be of one type", first.dtype, info.dtype);
            return Err(Error::new(status::TYPE, text));
        }
        if other.len() != shape.len() || (0..shape.len()).any(|at| at != axis && other[at] != shape[at]) {
            let text = format!("{name}: shape {other:?} does not fit {shape:?} along axis {axis}");
            return Err(Error::new(status::SHAPE, text));
        }
        counts.push(other[axis]);
        extents[axis] += other[axis];
    }
    let result = scope.empty(first.dtype, &extents)?;
    let mut begin = 0;
    for (&part, count) in parts.iter().zip(counts) {
        let to = scope.view(result, |view| view.slice(axis, Some(begin), Some(begin + count), 1))?;
        scope.operate_into(Opcode::Copy, to, &[Input::Array(part)])?;
        begin += count;
    }
    Ok(result)
}

/// A new matrix with ones on a diagonal, counted upwards from the main one, and zeros elsewhere.
pub fn eye(
    recorder: &Recorder,
    dtype: DType,
    (rows, columns): (i64, i64),
    diagonal: i64,
    place: Location<'_>,
) -> Result<ArrayId> {
    let scope = Scope::new(recorder, place);
    let number = |value: u8| Constant::from_value(value).cast(dtype);
    let result = recorder.full(number(0), &[rows, columns], place)?;
    let line = scope.view(result, |view| view.diagonal(diagonal, 0, 1)).inspect_err(|_| recorder.free_later(result))?;
    scope
        .operate_into(Opcode::Copy, line, &[Input::Constant(number(1))])
        .inspect_err(|_| recorder.free_later(result))?;
    Ok(result)
}

//! Joins arrays, and creates matrices with ones on a diagonal.

use crate::assembly::{Assembly, shape_error};
use crate::scope::{Scope, check_axis};
use bh_bytecode::{Constant, DType, Opcode, View};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Location, Recorder};

/// A new array with the parts joined along an axis. They must have the same type, and equal extents along the other
/// axes.
pub fn concatenate(recorder: &Recorder, parts: &[ArrayId], axis: usize, place: Location<'_>) -> Result<ArrayId> {
    let (dtype, views) = described("concatenate", recorder, parts)?;
    Assembly::joined("concatenate", &views, axis)?.record(recorder, dtype, parts, place)
}

/// A new array with the parts joined along a new axis. They must have the same type and shape.
pub fn stack(recorder: &Recorder, parts: &[ArrayId], axis: usize, place: Location<'_>) -> Result<ArrayId> {
    let (dtype, mut views) = described("stack", recorder, parts)?;
    let shape = views.first().map_or(Vec::new(), |view| view.shape().to_vec());
    check_axis("stack", axis, shape.len() + 1)?;
    for view in &mut views {
        if view.shape() != shape {
            let text = format!("stack: shape {:?} differs from {shape:?}", view.shape());
            return Err(Error::new(status::SHAPE, text));
        }
        *view = view.new_axis(axis).map_err(shape_error)?;
    }
    Assembly::joined("stack", &views, axis)?.record(recorder, dtype, parts, place)
}

/// The one type of arrays that are joined, and their views. `name`: the function, for errors.
fn described(name: &str, recorder: &Recorder, parts: &[ArrayId]) -> Result<(DType, Vec<View>)> {
    let mut first = None;
    let mut views = Vec::with_capacity(parts.len());
    for &part in parts {
        let info = recorder.info(part)?;
        let dtype = *first.get_or_insert(info.dtype);
        if info.dtype != dtype {
            let text = format!("{name}: arrays of {dtype} and {} have to be of one type", info.dtype);
            return Err(Error::new(status::TYPE, text));
        }
        views.push(info.view);
    }
    let none = || Error::new(status::ARGUMENT, format!("{name}: there must be an array at least"));
    Ok((first.ok_or_else(none)?, views))
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

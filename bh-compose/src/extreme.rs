//! Positions of the largest and smallest elements.

use crate::scope::{Scope, check_axis};
use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Location, Recorder};

/// The extreme to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The smallest element.
    Least,
    /// The largest element.
    Greatest,
}

/// The index along an axis of the first extreme element, or of the first NaN, as i64. `keep`: the axis stays, with
/// extent 1. Fails for complex numbers, which have no order, and for an empty axis.
pub fn position_of_extreme(
    recorder: &Recorder,
    array: ArrayId,
    axis: usize,
    extreme: Extreme,
    keep: bool,
    place: Location<'_>,
) -> Result<ArrayId> {
    let (name, reduction) = match extreme {
        Extreme::Least => ("argmin", Opcode::MinimumReduce),
        Extreme::Greatest => ("argmax", Opcode::MaximumReduce),
    };
    let info = recorder.info(array)?;
    let shape = info.view.shape();
    check_axis(name, axis, shape.len())?;
    if info.dtype.is_complex() {
        return Err(Error::new(status::TYPE, format!("{name}: complex numbers have no order")));
    }
    let extent = shape[axis];
    if extent == 0 {
        return Err(Error::new(status::ARGUMENT, format!("attempt to get {name} of an empty sequence")));
    }
    let scope = Scope::new(recorder, place);
    let mask = 1 << axis;
    let best = scope.operate(reduction, mask, &[Input::Array(array)])?;
    let best = scope.view(best, |view| view.new_axis(axis))?;
    let mut found = scope.operate(Opcode::Equal, 0, &[Input::Array(array), Input::Array(best)])?;
    if info.dtype.is_float() {
        // A NaN is the extreme, and is not equal to any element.
        let nan = scope.operate(Opcode::Isnan, 0, &[Input::Array(array)])?;
        found = scope.operate(Opcode::LogicalOr, 0, &[Input::Array(found), Input::Array(nan)])?;
    }
    let mut line = vec![1; shape.len() - axis];
    line[0] = extent;
    let (index, beyond) = index_type(info.dtype.size(), extent);
    let numbers = scope.numbers(index, &line)?;
    let beyond = Input::Constant(beyond);
    let places = scope.operate(Opcode::Where, 0, &[Input::Array(found), Input::Array(numbers), beyond])?;
    let mut result = scope.operate(Opcode::MinimumReduce, mask, &[Input::Array(places)])?;
    if index != DType::I64 {
        result = scope.cast(DType::I64, result)?;
    }
    if keep {
        result = scope.view(result, |view| view.new_axis(axis))?;
    }
    Ok(scope.keep(result))
}

/// The type in which indices along an axis of this extent are compared, and the extent in it: as many of them as elements of
/// `size` bytes fit a register, if the extent allows it.
fn index_type(size: usize, extent: i64) -> (DType, Constant) {
    if let (1, Ok(extent)) = (size, i8::try_from(extent)) {
        return (DType::I8, Constant::from_value(extent));
    }
    if let (1..=2, Ok(extent)) = (size, i16::try_from(extent)) {
        return (DType::I16, Constant::from_value(extent));
    }
    if let (1..=4, Ok(extent)) = (size, i32::try_from(extent)) {
        return (DType::I32, Constant::from_value(extent));
    }
    (DType::I64, Constant::from_value(extent))
}

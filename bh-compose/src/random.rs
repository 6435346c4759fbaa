//! Random numbers with distributions other than uniform.

use crate::scope::Scope;
use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Location, Recorder};

/// A new array of normally distributed numbers with mean 0 and variance 1, of a real floating-point type, by the method
/// of Box and Muller: √(−2·ln(1 − u))·cos(2π·v), with u and v from disjoint halves of the key's stream.
pub fn normal(recorder: &Recorder, dtype: DType, shape: &[i64], key: u64, place: Location<'_>) -> Result<ArrayId> {
    if !dtype.is_float() {
        return Err(Error::new(status::TYPE, format!("random_normal: type {dtype} is no floating-point type")));
    }
    let number = |value: f64| Input::Constant(Constant::from_value(value).cast(dtype));
    let scope = Scope::new(recorder, place);
    let (radius, angle) = (scope.empty(dtype, shape)?, scope.empty(dtype, shape)?);
    let (r, a) = (Input::Array(radius), Input::Array(angle));
    recorder.random(radius, key, 0, place)?;
    scope.operate_into(Opcode::Subtract, radius, &[number(1.0), r])?;
    scope.operate_into(Opcode::Log, radius, &[r])?;
    scope.operate_into(Opcode::Multiply, radius, &[r, number(-2.0)])?;
    scope.operate_into(Opcode::Sqrt, radius, &[r])?;
    recorder.random(angle, key, i64::MAX / 2, place)?;
    scope.operate_into(Opcode::Multiply, angle, &[a, number(std::f64::consts::TAU)])?;
    scope.operate_into(Opcode::Cos, angle, &[a])?;
    scope.operate_into(Opcode::Multiply, radius, &[r, a])?;
    Ok(scope.keep(radius))
}

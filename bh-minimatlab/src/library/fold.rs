//! Reductions along rows and columns, and extremes.

use super::number;
use crate::device::{Device, Item};
use crate::operators::{conform, matrix, native, numeric};
use crate::source::{Fault, Outcome};
use crate::value::{Matrix, Value};
use bh_bytecode::Opcode;

/// The larger or smaller elements of two values; numbers take precedence over NaN.
pub fn extreme(device: &Device, name: &str, a: &Value, b: &Value) -> Outcome<Value> {
    let (a, b) = (numeric(device, a, name)?, numeric(device, b, name)?);
    conform(name, &a, &b)?;
    let both_logical = a.is_logical() && b.is_logical();
    if let (Some(x), Some(y)) = (native(&a), native(&b)) {
        let best = if name == "max" { x.max(y) } else { x.min(y) };
        return Ok(if both_logical { Value::Truth(best != 0.0) } else { Value::Number(best) });
    }
    let (x, y) = (device.double(&matrix(device, &a)?)?, device.double(&matrix(device, &b)?)?);
    let opcode = if name == "max" { Opcode::Maximum } else { Opcode::Minimum };
    let both = device.apply(opcode, &[Item::Matrix(&x), Item::Matrix(&y)])?;
    let nan = |of: &Matrix| device.apply(Opcode::Isnan, &[Item::Matrix(of)]);
    let known = device.apply(Opcode::Where, &[Item::Matrix(&nan(&y)?), Item::Matrix(&x), Item::Matrix(&both)])?;
    let known = device.apply(Opcode::Where, &[Item::Matrix(&nan(&x)?), Item::Matrix(&y), Item::Matrix(&known)])?;
    Ok(Value::Matrix(if both_logical { device.truth(&known)? } else { known }))
}

/// Does a reduction run along the columns?
pub fn dimension(device: &Device, name: &str, of: &Matrix, given: Option<&Value>) -> Outcome<bool> {
    match given.map(|value| number(device, name, value)).transpose()? {
        None => Ok(of.rows != 1),
        Some(1.0) => Ok(true),
        Some(2.0) => Ok(false),
        Some(_) => Err(Fault::new(format!("{name}: DIM must be 1 or 2"))),
    }
}

/// The reduced dimensions.
#[derive(Clone, Copy)]
enum Over {
    Rows,
    Columns,
    Both,
}

/// A reduction along the given dimension, or the first one with an extent other than 1.
pub fn reduced(device: &Device, name: &str, value: &Value, given: Option<&Value>) -> Outcome<Value> {
    let from = matrix(device, value)?;
    let over_rows = dimension(device, name, &from, given)?;
    if from.len() > 0 {
        // Functions that keep sizes return a 1×1 matrix for one.
        return Ok(Value::Matrix(fold(device, name, &from, if over_rows { Over::Rows } else { Over::Columns })?));
    }
    let extremes = matches!(name, "min" | "max");
    let (rows, cols) = match (from.rows, from.cols) {
        (0, 0) if given.is_none() && extremes => (0, 0),
        (0, 0) if given.is_none() => (1, 1),
        (rows, cols) if extremes && over_rows => (usize::from(rows > 0), cols),
        (rows, cols) if extremes => (rows, usize::from(cols > 0)),
        (_, cols) if over_rows => (1, cols),
        (rows, _) => (rows, 1),
    };
    Ok(Value::Matrix(match name {
        "any" | "all" => device.full_truth(name == "all", rows, cols)?,
        "cumsum" | "cumprod" => device.double(&from)?,
        "mean" => device.full(f64::NAN, rows, cols)?,
        _ => device.full(f64::from(u8::from(name == "prod")), rows, cols)?,
    }))
}

/// The reduction of all elements for `sum(sum(x))` and `sum(x(:))`. `None` for other functions, and for empty matrices.
pub fn whole(device: &Device, name: &str, value: &Value) -> Outcome<Option<Value>> {
    match value {
        Value::Matrix(from) if from.len() > 0 && is_fold(name) => {
            Ok(Some(Value::Matrix(fold(device, name, from, Over::Both)?)))
        }
        _ => Ok(None),
    }
}

/// Does the function reduce all elements if it is applied twice?
pub fn is_fold(name: &str) -> bool {
    matches!(name, "sum" | "prod" | "mean" | "any" | "all" | "min" | "max")
}

/// The elements that `any` counts as true; NaN does not.
fn certain(device: &Device, from: &Matrix) -> Outcome<Matrix> {
    if from.logical {
        return Ok(from.clone());
    }
    let size = device.apply(Opcode::Absolute, &[Item::Matrix(from)])?;
    device.apply(Opcode::Greater, &[Item::Matrix(&size), Item::Number(0.0)])
}

fn fold(device: &Device, name: &str, from: &Matrix, over: Over) -> Outcome<Matrix> {
    let (over_rows, over_cols) = (!matches!(over, Over::Columns), !matches!(over, Over::Rows));
    let along = |opcode, of: &Matrix| device.reduce(opcode, of, over_rows, over_cols);
    // The largest boolean is true if any is.
    if matches!(name, "any" | "all") || from.logical && matches!(name, "max" | "min") {
        let opcode = if matches!(name, "any" | "max") { Opcode::LogicalOrReduce } else { Opcode::LogicalAndReduce };
        let truths = if name == "any" { certain(device, from)? } else { device.truth(from)? };
        return along(opcode, &truths);
    }
    let numbers = device.double(from)?;
    match name {
        "sum" => along(Opcode::AddReduce, &numbers),
        "prod" => along(Opcode::MultiplyReduce, &numbers),
        "mean" => {
            let count = if over_rows { from.rows } else { 1 } * if over_cols { from.cols } else { 1 };
            let sum = along(Opcode::AddReduce, &numbers)?;
            device.apply(Opcode::Divide, &[Item::Matrix(&sum), Item::Number(count as f64)])
        }
        "cumsum" => device.accumulate(Opcode::AddAccumulate, &numbers, over_rows),
        "cumprod" => device.accumulate(Opcode::MultiplyAccumulate, &numbers, over_rows),
        _ => {
            let (opcode, worst) = match name {
                "max" => (Opcode::MaximumReduce, f64::NEG_INFINITY),
                _ => (Opcode::MinimumReduce, f64::INFINITY),
            };
            let nan = device.apply(Opcode::Isnan, &[Item::Matrix(&numbers)])?;
            let known =
                device.apply(Opcode::Where, &[Item::Matrix(&nan), Item::Number(worst), Item::Matrix(&numbers)])?;
            let best = along(opcode, &known)?;
            let none = along(Opcode::LogicalAndReduce, &nan)?;
            device.apply(Opcode::Where, &[Item::Matrix(&none), Item::Number(f64::NAN), Item::Matrix(&best)])
        }
    }
}

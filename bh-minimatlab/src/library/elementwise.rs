//! Elementwise functions that consist of several operations.

use super::number;
use crate::device::{Device, Item};
use crate::operators::{binary, conform, is_true, matrix, native, numeric, refuse_nan};
use crate::source::Outcome;
use crate::value::{Matrix, Value};
use bh_bytecode::Opcode;

/// Functions of two operands that broadcast as those of operators do.
pub fn paired(device: &Device, name: &str, a: &Value, b: &Value) -> Outcome<Value> {
    let (a, b) = (numeric(device, a, name)?, numeric(device, b, name)?);
    conform(name, &a, &b)?;
    if let (Some(x), Some(y)) = (native(&a), native(&b)) {
        return Ok(Value::Number(match name {
            "atan2" => x.atan2(y),
            _ => rest(x, y, name == "mod"),
        }));
    }
    let (x, y) = (matrix(device, &a)?, matrix(device, &b)?);
    Ok(Value::Matrix(match name {
        "atan2" => device.apply(Opcode::Arctan2, &[Item::Matrix(&x), Item::Matrix(&y)])?,
        _ => rests(device, &x, &y, native(&b), name == "mod")?,
    }))
}

/// The remainder of a division with a quotient rounded down (`modulo`) or towards zero. Quotients that are whole up to
/// rounding count as whole.
fn rest(x: f64, y: f64, modulo: bool) -> f64 {
    if y == 0.0 {
        return if modulo { x } else { f64::NAN };
    }
    let quotient = x / y;
    let nearest = nearest(quotient);
    let value = if y.fract() != 0.0 && ((quotient - nearest) / nearest).abs() < f64::EPSILON {
        0.0
    } else {
        x - y * if modulo { quotient.floor() } else { quotient.trunc() }
    };
    if x == y { value } else { value.copysign(if modulo { y } else { x }) }
}

fn nearest(value: f64) -> f64 {
    (value + 0.5).floor()
}

/// The same for matrices; `divisor`: the second operand, if it is a scalar.
fn rests(device: &Device, x: &Matrix, y: &Matrix, divisor: Option<f64>, modulo: bool) -> Outcome<Matrix> {
    use Item::Number;
    fn item(matrix: &Matrix) -> Item<'_> {
        Item::Matrix(matrix)
    }
    let apply = |opcode, items: &[Item<'_>]| device.apply(opcode, items);
    let over = || divisor.map_or(item(y), Number);
    let quotient = apply(Opcode::Divide, &[item(x), over()])?;
    let whole = apply(if modulo { Opcode::Floor } else { Opcode::Trunc }, &[item(&quotient)])?;
    let product = apply(Opcode::Multiply, &[item(&whole), over()])?;
    let mut value = apply(Opcode::Subtract, &[item(x), item(&product)])?;
    if divisor.is_none_or(|divisor| divisor.fract() != 0.0) {
        let half = apply(Opcode::Add, &[item(&quotient), Number(0.5)])?;
        let nearest = apply(Opcode::Floor, &[item(&half)])?;
        let off = apply(Opcode::Subtract, &[item(&quotient), item(&nearest)])?;
        let off = apply(Opcode::Divide, &[item(&off), item(&nearest)])?;
        let off = apply(Opcode::Absolute, &[item(&off)])?;
        let mut close = apply(Opcode::Less, &[item(&off), Number(f64::EPSILON)])?;
        if divisor.is_none() {
            let floor = apply(Opcode::Floor, &[item(y)])?;
            let broken = apply(Opcode::NotEqual, &[item(y), item(&floor)])?;
            close = apply(Opcode::LogicalAnd, &[item(&close), item(&broken)])?;
        }
        value = apply(Opcode::Where, &[item(&close), Number(0.0), item(&value)])?;
    }
    let size = apply(Opcode::Absolute, &[item(&value)])?;
    let opposite = apply(Opcode::Multiply, &[item(&size), Number(-1.0)])?;
    let signed = match divisor {
        Some(divisor) if modulo => {
            if divisor < 0.0 {
                opposite
            } else {
                size
            }
        }
        _ => {
            let negative = apply(Opcode::Less, &[item(if modulo { y } else { x }), Number(0.0)])?;
            apply(Opcode::Where, &[item(&negative), item(&opposite), item(&size)])?
        }
    };
    let same = apply(Opcode::Equal, &[item(x), over()])?;
    value = apply(Opcode::Where, &[item(&same), item(&value), item(&signed)])?;
    if divisor.is_some_and(|divisor| divisor != 0.0) {
        return Ok(value);
    }
    let zero = apply(Opcode::Equal, &[item(y), Number(0.0)])?;
    apply(Opcode::Where, &[item(&zero), if modulo { item(x) } else { Number(f64::NAN) }, item(&value)])
}

/// Functions of one operand.
pub fn single(device: &Device, name: &str, value: &Value) -> Outcome<Value> {
    let value = numeric(device, value, name)?;
    match (name, &value) {
        ("double", Value::Matrix(matrix)) => Ok(Value::Matrix(device.double(matrix)?)),
        ("double", other) => Ok(Value::Number(number(device, name, other)?)),
        ("logical", Value::Matrix(matrix)) => {
            refuse_nan(device, &value)?;
            Ok(Value::Matrix(device.truth(matrix)?))
        }
        ("logical", other) => {
            refuse_nan(device, other)?;
            Ok(Value::Truth(number(device, name, other)? != 0.0))
        }
        (_, Value::Matrix(matrix)) => Ok(Value::Matrix(round(device, &device.double(matrix)?)?)),
        (_, other) => Ok(Value::Number(number(device, name, other)?.round())),
    }
}

/// Rounds to the nearest whole numbers, halves away from zero.
fn round(device: &Device, x: &Matrix) -> Outcome<Matrix> {
    let whole = device.apply(Opcode::Trunc, &[Item::Matrix(x)])?;
    let rest = device.apply(Opcode::Subtract, &[Item::Matrix(x), Item::Matrix(&whole)])?;
    let far = device.apply(Opcode::Absolute, &[Item::Matrix(&rest)])?;
    let far = device.apply(Opcode::GreaterEqual, &[Item::Matrix(&far), Item::Number(0.5)])?;
    let sign = device.apply(Opcode::Sign, &[Item::Matrix(x)])?;
    let next = device.apply(Opcode::Add, &[Item::Matrix(&whole), Item::Matrix(&sign)])?;
    device.apply(Opcode::Where, &[Item::Matrix(&far), Item::Matrix(&next), Item::Matrix(&whole)])
}

/// Have two values the same size and equal elements?
pub fn equal(device: &Device, a: &Value, b: &Value) -> Outcome<Value> {
    if a.size() != b.size() {
        return Ok(Value::Truth(false));
    }
    let same = binary(device, "==", a, b)?;
    Ok(Value::Truth(same.len() == 0 || is_true(device, &same)?))
}

//! Operators and elementwise functions, on numbers and on matrices.

use crate::device::{Device, Item};
use crate::source::{Fault, Outcome};
use crate::value::{Matrix, Value};
use bh_bytecode::opcode::Signature;
use bh_bytecode::{Opcode, interp};

/// A value as a numeric operand; texts become character codes.
pub fn numeric(device: &Device, value: &Value, operator: &str) -> Outcome<Value> {
    match value {
        Value::Text(text) => {
            let codes: Vec<f64> = text.chars().map(|c| f64::from(c as u32)).collect();
            match codes.as_slice() {
                [one] => Ok(Value::Number(*one)),
                _ => Ok(Value::Matrix(device.upload(&codes, usize::from(!codes.is_empty()), codes.len())?)),
            }
        }
        Value::Function(_) => Err(Fault::new(format!("operator {operator} is not defined for a function handle"))),
        other => Ok(other.clone()),
    }
}

/// A value's single number, if it is a scalar.
pub fn scalar(device: &Device, value: &Value) -> Outcome<Option<f64>> {
    Ok(match value {
        Value::Number(value) => Some(*value),
        Value::Truth(value) => Some(f64::from(u8::from(*value))),
        Value::Text(text) if text.chars().count() == 1 => text.chars().next().map(|c| f64::from(c as u32)),
        Value::Matrix(matrix) if matrix.len() == 1 => device.download(matrix)?.first().copied(),
        _ => None,
    })
}

/// The number of a native value.
pub fn native(value: &Value) -> Option<f64> {
    match value {
        Value::Number(value) => Some(*value),
        Value::Truth(value) => Some(f64::from(u8::from(*value))),
        _ => None,
    }
}

fn item(value: &Value) -> Item<'_> {
    match value {
        Value::Matrix(matrix) => Item::Matrix(matrix),
        other => Item::Number(native(other).unwrap_or(f64::NAN)),
    }
}

fn truth_item(value: &Value) -> Item<'_> {
    match value {
        Value::Matrix(matrix) => Item::Matrix(matrix),
        other => Item::Truth(native(other).is_some_and(|value| value != 0.0)),
    }
}

/// A matrix of any numeric value.
pub fn matrix(device: &Device, value: &Value) -> Outcome<Matrix> {
    match numeric(device, value, "()")? {
        Value::Matrix(matrix) => Ok(matrix),
        Value::Truth(truth) => device.full_truth(truth, 1, 1),
        other => device.full(native(&other).unwrap_or(f64::NAN), 1, 1),
    }
}

fn nonconformant(operator: &str, a: &Value, b: &Value) -> Fault {
    let ((r1, c1), (r2, c2)) = (a.size(), b.size());
    Fault::new(format!("operator {operator}: nonconformant arguments (op1 is {r1}x{c1}, op2 is {r2}x{c2})"))
}

fn fits(a: &Value, b: &Value) -> bool {
    let ((r1, c1), (r2, c2)) = (a.size(), b.size());
    let one = |x: usize, y: usize| x == y || x == 1 || y == 1;
    one(r1, r2) && one(c1, c2)
}

/// Checks that the sizes of elementwise operands broadcast.
pub fn conform(operator: &str, a: &Value, b: &Value) -> Outcome<()> {
    if fits(a, b) { Ok(()) } else { Err(nonconformant(operator, a, b)) }
}

/// An operator between two values.
pub fn binary(device: &Device, operator: &str, a: &Value, b: &Value) -> Outcome<Value> {
    let (a, b) = (numeric(device, a, operator)?, numeric(device, b, operator)?);
    match operator {
        "*" if !(a.len() == 1 || b.len() == 1) => return product(device, &a, &b),
        "/" if b.len() != 1 => return divide_right(device, &a, &b),
        "\\" if a.len() != 1 => return divide_left(device, &a, &b),
        "^" if !(a.len() == 1 && b.len() == 1) => return matrix_power(device, &a, &b),
        _ => {}
    }
    conform(operator, &a, &b)?;
    if let (Some(x), Some(y)) = (native(&a), native(&b)) {
        return binary_native(operator, x, y);
    }
    let opcode = match operator {
        "+" => Opcode::Add,
        "-" => Opcode::Subtract,
        "*" | ".*" => Opcode::Multiply,
        "/" | "./" => Opcode::Divide,
        "\\" | ".\\" => return Ok(Value::Matrix(device.apply(Opcode::Divide, &[item(&b), item(&a)])?)),
        "^" | ".^" => return power(device, &a, &b),
        "<" => Opcode::Less,
        "<=" => Opcode::LessEqual,
        ">" => Opcode::Greater,
        ">=" => Opcode::GreaterEqual,
        "==" => Opcode::Equal,
        "~=" => Opcode::NotEqual,
        "&" | "|" => {
            refuse_nan(device, &a)?;
            refuse_nan(device, &b)?;
            let opcode = if operator == "&" { Opcode::LogicalAnd } else { Opcode::LogicalOr };
            return Ok(Value::Matrix(device.apply(opcode, &[truth_item(&a), truth_item(&b)])?));
        }
        other => return Err(Fault::new(format!("operator {other} is not supported"))),
    };
    Ok(Value::Matrix(device.apply(opcode, &[item(&a), item(&b)])?))
}

/// Refuses NaN, which is neither true nor false.
pub fn refuse_nan(device: &Device, value: &Value) -> Outcome<()> {
    match value {
        Value::Matrix(matrix) if !matrix.logical => {
            let nan = device.apply(Opcode::Isnan, &[Item::Matrix(matrix)])?;
            device.refuse_any(&nan, Fault::new("NaN has no truth value"))
        }
        other if native(other).is_some_and(f64::is_nan) => Err(Fault::new("NaN has no truth value")),
        _ => Ok(()),
    }
}

fn complex() -> Fault {
    Fault::new("the result is complex, and complex numbers are not supported")
}

fn binary_native(operator: &str, x: f64, y: f64) -> Outcome<Value> {
    Ok(match operator {
        "+" => Value::Number(x + y),
        "-" => Value::Number(x - y),
        "*" | ".*" => Value::Number(x * y),
        "/" | "./" => Value::Number(x / y),
        "\\" | ".\\" => Value::Number(y / x),
        "^" | ".^" if x < 0.0 && y.fract() != 0.0 && y.is_finite() => return Err(complex()),
        "^" | ".^" => Value::Number(x.powf(y)),
        "<" => Value::Truth(x < y),
        "<=" => Value::Truth(x <= y),
        ">" => Value::Truth(x > y),
        ">=" => Value::Truth(x >= y),
        "==" => Value::Truth(x == y),
        "~=" => Value::Truth(x != y),
        "&" | "|" if x.is_nan() || y.is_nan() => return Err(Fault::new("NaN has no truth value")),
        "&" => Value::Truth(x != 0.0 && y != 0.0),
        "|" => Value::Truth(x != 0.0 || y != 0.0),
        other => return Err(Fault::new(format!("operator {other} is not supported"))),
    })
}

fn power(device: &Device, a: &Value, b: &Value) -> Outcome<Value> {
    match (native(a), native(b)) {
        (_, Some(exponent)) if exponent.fract() == 0.0 || exponent.is_infinite() => {}
        (Some(base), _) if base >= 0.0 => {}
        _ => {
            let negative = device.apply(Opcode::Less, &[item(a), Item::Number(0.0)]);
            let wrong = match (native(a), native(b)) {
                (_, Some(_)) => negative?,
                (base, None) => {
                    let floor = fraction(device, b)?;
                    match base {
                        Some(_) => floor,
                        None => device.apply(Opcode::LogicalAnd, &[Item::Matrix(&negative?), Item::Matrix(&floor)])?,
                    }
                }
            };
            device.refuse_any(&wrong, complex())?;
        }
    }
    Ok(Value::Matrix(device.apply(Opcode::Power, &[item(a), item(b)])?))
}

/// Marks elements that are not whole numbers.
fn fraction(device: &Device, value: &Value) -> Outcome<Matrix> {
    let floor = device.apply(Opcode::Floor, &[item(value)])?;
    device.apply(Opcode::NotEqual, &[item(value), Item::Matrix(&floor)])
}

fn product(device: &Device, a: &Value, b: &Value) -> Outcome<Value> {
    let ((rows, inner), (inner_b, cols)) = (a.size(), b.size());
    if inner != inner_b {
        return Err(nonconformant("*", a, b));
    }
    let (a, b) = (device.double(&matrix(device, a)?)?, device.double(&matrix(device, b)?)?);
    if inner == 0 || rows == 0 || cols == 0 {
        return Ok(Value::Matrix(device.full(0.0, rows, cols)?));
    }
    // Arrays have the transposed shape: (A·B)' = B'·A'.
    Ok(Value::Matrix(device.method("matmul", &b, &a, rows, cols)?))
}

fn divide_left(device: &Device, a: &Value, b: &Value) -> Outcome<Value> {
    let ((rows, cols), (rows_b, cols_b)) = (a.size(), b.size());
    if rows != rows_b {
        return Err(nonconformant("\\", a, b));
    }
    if rows != cols || rows == 0 {
        return Err(Fault::new("operator \\ is only supported for square matrices"));
    }
    let (a, b) = (device.double(&matrix(device, a)?)?, device.double(&matrix(device, b)?)?);
    let (a, b) = (device.transpose(&a)?, device.transpose(&b)?);
    let solved = device.method("solve", &a, &b, cols_b, rows)?;
    Ok(Value::Matrix(device.transpose(&solved)?))
}

fn divide_right(device: &Device, a: &Value, b: &Value) -> Outcome<Value> {
    if a.size().1 != b.size().1 {
        return Err(nonconformant("/", a, b));
    }
    let solved = divide_left(device, &transpose(device, b)?, &transpose(device, a)?)?;
    transpose(device, &solved)
}

fn matrix_power(device: &Device, a: &Value, b: &Value) -> Outcome<Value> {
    let (rows, cols) = a.size();
    if rows != cols || b.len() != 1 {
        return Err(Fault::new(
            "for x^y, only square matrix arguments are permitted and one argument must be scalar.  Use .^ for elementwise power.",
        ));
    }
    let exponent = scalar(device, b)?.unwrap_or(f64::NAN);
    if exponent.fract() != 0.0 || !(0.0..=1e6).contains(&exponent) {
        return Err(Fault::new(
            "operator ^ is only supported for matrices with exponents that are whole and not negative",
        ));
    }
    let mut left = exponent as u64;
    let mut result = identity(device, rows, rows)?;
    let mut square = a.clone();
    while left > 0 {
        if left & 1 == 1 {
            result = product(device, &result, &square)?;
        }
        left >>= 1;
        if left > 0 {
            square = product(device, &square, &square)?;
        }
    }
    Ok(result)
}

/// A matrix with ones on the diagonal.
pub fn identity(device: &Device, rows: usize, cols: usize) -> Outcome<Value> {
    let into = device.full(0.0, rows, cols)?;
    let places: Vec<i64> = (0..rows.min(cols)).map(|i| (i * rows + i) as i64).collect();
    if !places.is_empty() {
        device.scatter(&into, &places, &device.full(1.0, 1, 1)?)?;
    }
    Ok(Value::Matrix(into))
}

/// Exchanges rows and columns.
pub fn transpose(device: &Device, value: &Value) -> Outcome<Value> {
    match value {
        Value::Matrix(matrix) => Ok(Value::Matrix(device.transpose(matrix)?)),
        Value::Text(text) if text.chars().count() > 1 => Err(Fault::new("texts of several rows are not supported")),
        Value::Function(_) => Err(Fault::new("operator ' is not defined for a function handle")),
        other => Ok(other.clone()),
    }
}

/// A sign, or a logical not.
pub fn prefix(device: &Device, operator: &str, value: &Value) -> Outcome<Value> {
    let value = numeric(device, value, operator)?;
    if operator == "~" {
        refuse_nan(device, &value)?;
    }
    match (operator, &value) {
        ("~", Value::Matrix(matrix)) => Ok(Value::Matrix(device.apply(Opcode::LogicalNot, &[Item::Matrix(matrix)])?)),
        ("~", other) => Ok(Value::Truth(native(other) == Some(0.0))),
        ("+", Value::Matrix(matrix)) => Ok(Value::Matrix(device.double(matrix)?)),
        ("+", other) => Ok(Value::Number(native(other).unwrap_or(f64::NAN))),
        (_, Value::Matrix(matrix)) => {
            // 0 − x would lose the sign of zero.
            Ok(Value::Matrix(device.apply(Opcode::Multiply, &[Item::Matrix(matrix), Item::Number(-1.0)])?))
        }
        (_, other) => Ok(Value::Number(-native(other).unwrap_or(f64::NAN))),
    }
}

/// An elementwise function by name; `None` if there is none.
pub fn function(device: &Device, name: &str, value: &Value) -> Outcome<Option<Value>> {
    let Some(opcode) = Opcode::from_minimatlab(name) else { return Ok(None) };
    let value = numeric(device, value, name)?;
    let lowest = match name {
        "sqrt" | "log" | "log2" | "log10" => Some((0.0, f64::INFINITY)),
        "log1p" => Some((-1.0, f64::INFINITY)),
        "asin" | "acos" | "atanh" => Some((-1.0, 1.0)),
        "acosh" => Some((1.0, f64::INFINITY)),
        _ => None,
    };
    if let Value::Matrix(matrix) = &value {
        if let Some((low, high)) = lowest {
            let mut wrong = device.apply(Opcode::Less, &[Item::Matrix(matrix), Item::Number(low)])?;
            if high < f64::INFINITY {
                let above = device.apply(Opcode::Greater, &[Item::Matrix(matrix), Item::Number(high)])?;
                wrong = device.apply(Opcode::LogicalOr, &[Item::Matrix(&wrong), Item::Matrix(&above)])?;
            }
            device.refuse_any(&wrong, complex())?;
        }
        return Ok(Some(Value::Matrix(device.apply(opcode, &[Item::Matrix(matrix)])?)));
    }
    let number = native(&value).unwrap_or(f64::NAN);
    if lowest.is_some_and(|(low, high)| number < low || number > high) {
        return Err(complex());
    }
    let result = interp::of_number(opcode, number).unwrap_or(f64::NAN);
    Ok(Some(match opcode.info().signature {
        Signature::Test => Value::Truth(result != 0.0),
        _ => Value::Number(result),
    }))
}

/// Is a condition true: not empty, with all elements true?
pub fn is_true(device: &Device, value: &Value) -> Outcome<bool> {
    match value {
        Value::Number(number) if number.is_nan() => Err(Fault::new("NaN has no truth value")),
        Value::Number(number) => Ok(*number != 0.0),
        Value::Truth(truth) => Ok(*truth),
        Value::Function(_) => Err(Fault::new("a function handle has no truth value")),
        Value::Text(text) => Ok(!text.is_empty()),
        Value::Matrix(matrix) if matrix.len() == 0 => Ok(false),
        Value::Matrix(matrix) if matrix.len() == 1 => match device.download(matrix)?.first() {
            Some(value) if value.is_nan() => Err(Fault::new("NaN has no truth value")),
            value => Ok(value.is_some_and(|value| *value != 0.0)),
        },
        Value::Matrix(matrix) => {
            let all = device.reduce(Opcode::LogicalAndReduce, &device.truth(matrix)?, true, true)?;
            Ok(device.download(&all)?.first().is_some_and(|value| *value != 0.0))
        }
    }
}

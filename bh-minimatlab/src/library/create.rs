//! New matrices, and sizes.

use super::{extent, needs, number, sizes};
use crate::arrange::join;
use crate::device::Device;
use crate::operators::{identity, matrix};
use crate::source::{Fault, Outcome};
use crate::value::Value;

pub fn filled(device: &Device, name: &str, arguments: &[Value]) -> Outcome<Value> {
    if let (Some(Value::Text(_)), "rand" | "randn") = (arguments.first(), name) {
        let key = arguments.get(1).map_or(Ok(42.0), |key| number(device, name, key))?;
        device.seed(key as u64);
        return Ok(Value::Number(key));
    }
    let (rows, cols) = sizes(device, name, arguments)?;
    let value = match name {
        "true" | "false" if rows * cols == 1 => return Ok(Value::Truth(name == "true")),
        "true" | "false" => return Ok(Value::Matrix(device.full_truth(name == "true", rows, cols)?)),
        "eye" if rows * cols != 1 => return identity(device, rows, cols),
        "rand" | "randn" => return Ok(Value::Matrix(device.random(rows, cols, name == "randn")?)),
        "zeros" => 0.0,
        "ones" | "eye" => 1.0,
        "Inf" | "inf" => f64::INFINITY,
        _ => f64::NAN,
    };
    Ok(if rows == 1 && cols == 1 { Value::Number(value) } else { Value::Matrix(device.full(value, rows, cols)?) })
}

pub fn size(device: &Device, arguments: &[Value], wanted: usize) -> Outcome<Vec<Value>> {
    needs("size", arguments, 1, 2)?;
    let (rows, cols) = arguments[0].size();
    let (rows, cols) = (rows as f64, cols as f64);
    if let Some(dimension) = arguments.get(1) {
        let dimension = number(device, "size", dimension)?;
        return match dimension {
            1.0 => Ok(vec![Value::Number(rows)]),
            2.0 => Ok(vec![Value::Number(cols)]),
            d if d > 2.0 && d.fract() == 0.0 => Ok(vec![Value::Number(1.0)]),
            _ => Err(Fault::new("size: requested dimension is out of range")),
        };
    }
    if wanted > 1 {
        return Ok([rows, cols].into_iter().chain(std::iter::repeat(1.0)).take(wanted).map(Value::Number).collect());
    }
    Ok(vec![Value::Matrix(device.upload(&[rows, cols], 1, 2)?)])
}

/// A property of a value.
pub fn property(name: &str, value: &Value) -> Outcome<Value> {
    let (rows, cols) = value.size();
    let truth = match name {
        "numel" => return Ok(Value::Number((rows * cols) as f64)),
        "length" if rows * cols == 0 => return Ok(Value::Number(0.0)),
        "length" => return Ok(Value::Number(rows.max(cols) as f64)),
        "rows" => return Ok(Value::Number(rows as f64)),
        "columns" => return Ok(Value::Number(cols as f64)),
        "ndims" => return Ok(Value::Number(2.0)),
        "isempty" => rows * cols == 0,
        "isscalar" => rows * cols == 1,
        "isvector" => (rows == 1 || cols == 1) && rows * cols >= 1,
        "ismatrix" => true,
        "issquare" => rows == cols,
        "isrow" => rows == 1,
        "iscolumn" => cols == 1,
        "islogical" => value.is_logical(),
        "ischar" => matches!(value, Value::Text(_)),
        "isnumeric" => matches!(value, Value::Number(_) | Value::Matrix(_)) && !value.is_logical(),
        _ => !matches!(value, Value::Function(_)),
    };
    Ok(Value::Truth(truth))
}

pub fn reshape(device: &Device, arguments: &[Value]) -> Outcome<Value> {
    let (rows, cols) = match arguments {
        [value, Value::Matrix(rows), Value::Number(cols)] | [value, Value::Number(cols), Value::Matrix(rows)]
            if rows.len() == 0 && *cols >= 1.0 =>
        {
            let other = value.len() / *cols as usize;
            if matches!(&arguments[1], Value::Matrix(_)) { (other, *cols as usize) } else { (*cols as usize, other) }
        }
        [_, _, ..] => sizes(device, "reshape", &arguments[1..])?,
        _ => return Err(Fault::new("Invalid call to reshape")),
    };
    let from = matrix(device, &arguments[0])?;
    if from.len() != rows * cols {
        return Err(Fault::new(format!(
            "reshape: can't reshape {}x{} array to {rows}x{cols} array",
            from.rows, from.cols
        )));
    }
    Ok(Value::Matrix(device.reshape(&from, rows, cols)?))
}

pub fn repmat(device: &Device, arguments: &[Value]) -> Outcome<Value> {
    needs("repmat", arguments, 2, 3)?;
    let (down, across) = sizes(device, "repmat", &arguments[1..])?;
    let row = vec![arguments[0].clone(); across];
    if down * across == 0 {
        let (rows, cols) = arguments[0].size();
        return Ok(Value::Matrix(device.full(0.0, rows * down, cols * across)?));
    }
    join(device, &vec![row; down])
}

/// Evenly spaced numbers, including both limits.
pub fn linspace(device: &Device, arguments: &[Value]) -> Outcome<Value> {
    needs("linspace", arguments, 2, 3)?;
    let (low, high) = (number(device, "linspace", &arguments[0])?, number(device, "linspace", &arguments[1])?);
    let count = arguments.get(2).map_or(Ok(100), |count| extent(device, "linspace", count))?.max(1);
    if count == 1 {
        return Ok(Value::Number(high));
    }
    Ok(Value::Matrix(device.linspace(low, high, count)?))
}

/// Rows or columns in reverse order, as a view.
pub fn flipped(device: &Device, value: &Value, rows: bool) -> Outcome<Value> {
    let of = matrix(device, value)?;
    let span = |extent: usize, turned: bool| match turned && extent > 0 {
        true => (extent as i64 - 1, -1, extent),
        false => (0, 1, extent),
    };
    Ok(Value::Matrix(device.window(&of, span(of.rows, rows), span(of.cols, !rows))?))
}

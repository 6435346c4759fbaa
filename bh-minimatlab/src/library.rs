//! The functions that programs find without defining them.

use crate::device::{Device, Item};
use crate::display::general;
use crate::evaluate::Interpreter;
use crate::operators::{binary, function, identity, matrix, numeric, scalar, transpose};
use crate::print;
use crate::source::{Fault, Outcome};
use crate::value::{Matrix, Value};
use bh_bytecode::Opcode;

/// Is a condition true: all elements are, and there are some?
pub fn is_true(device: &Device, value: &Value) -> Outcome<bool> {
    match value {
        Value::Number(number) if number.is_nan() => Err(Fault::new("NaN has no truth value")),
        Value::Number(number) => Ok(*number != 0.0),
        Value::Truth(truth) => Ok(*truth),
        Value::Function(_) => Err(Fault::new("a function handle has no truth value")),
        Value::Text(text) => Ok(!text.is_empty()),
        Value::Matrix(matrix) if matrix.len() == 0 => Ok(false),
        Value::Matrix(matrix) => {
            let all = device.reduce(Opcode::LogicalAndReduce, &device.truth(matrix)?, true, true)?;
            Ok(device.download(&all)?.first().is_some_and(|value| *value != 0.0))
        }
    }
}

fn number(device: &Device, name: &str, value: &Value) -> Outcome<f64> {
    scalar(device, value)?
        .ok_or_else(|| Fault::new(format!("{name}: a single number is needed, not a {}", value.kind())))
}

fn extent(device: &Device, name: &str, value: &Value) -> Outcome<usize> {
    let number = number(device, name, value)?;
    if number.is_nan() || number.fract() != 0.0 || number > 1e15 {
        return Err(Fault::new(format!("{name}: dimensions must be whole numbers")));
    }
    Ok(number.max(0.0) as usize)
}

/// Rows and columns from arguments.
fn sizes(device: &Device, name: &str, arguments: &[Value]) -> Outcome<(usize, usize)> {
    match arguments {
        [] => Ok((1, 1)),
        [one] if one.len() == 1 => extent(device, name, one).map(|side| (side, side)),
        [Value::Matrix(both)] if both.len() == 2 => {
            let both = device.download(both)?;
            Ok((extent(device, name, &Value::Number(both[0]))?, extent(device, name, &Value::Number(both[1]))?))
        }
        [rows, cols] => Ok((extent(device, name, rows)?, extent(device, name, cols)?)),
        _ => Err(Fault::new(format!("{name}: arrays with more than two dimensions are not supported"))),
    }
}

fn needs(name: &str, arguments: &[Value], from: usize, to: usize) -> Outcome<()> {
    if (from..=to).contains(&arguments.len()) { Ok(()) } else { Err(Fault::new(format!("Invalid call to {name}"))) }
}

fn text<'a>(name: &str, value: Option<&'a Value>) -> Outcome<&'a str> {
    match value {
        Some(Value::Text(text)) => Ok(text),
        _ => Err(Fault::new(format!("{name}: a text is needed"))),
    }
}

/// Calls a function of the library.
pub fn call(run: &mut Interpreter, name: &str, arguments: Vec<Value>, wanted: usize) -> Outcome<Vec<Value>> {
    let device = &run.device;
    let one = |value: Value| Ok(vec![value]);
    match name {
        "pi" if arguments.is_empty() => return one(Value::Number(std::f64::consts::PI)),
        "e" if arguments.is_empty() => return one(Value::Number(std::f64::consts::E)),
        "eps" if arguments.is_empty() => return one(Value::Number(f64::EPSILON)),
        "Inf" | "inf" | "NaN" | "nan" | "NA" | "zeros" | "ones" | "true" | "false" | "eye" | "rand" | "randn" => {
            return filled(device, name, &arguments).map(|value| vec![value]);
        }
        "nargin" => return one(Value::Number(run.argument_count() as f64)),
        "disp" | "display" => {
            needs(name, &arguments, 1, 1)?;
            run.display(&arguments[0])?;
            return Ok(Vec::new());
        }
        "printf" | "fprintf" | "sprintf" | "error" => {
            let skip =
                usize::from(name == "fprintf" && matches!(arguments.first(), Some(Value::Number(n)) if *n == 1.0));
            let template = text(name, arguments.get(skip))?;
            let printed = print::format(device, template, arguments.get(skip + 1..).unwrap_or(&[]))?;
            match name {
                "sprintf" => return one(Value::text(&printed)),
                "error" => return Err(Fault::new(printed)),
                _ => run.print(&printed)?,
            }
            return Ok(Vec::new());
        }
        "feval" => {
            let Some((first, rest)) = arguments.split_first() else {
                return needs(name, &[], 1, 1).map(|()| Vec::new());
            };
            return match first {
                Value::Function(function) => run.call_value(&function.clone(), rest.to_vec(), wanted),
                Value::Text(callee) => run.call(&callee.clone(), rest.to_vec(), wanted),
                _ => Err(Fault::new("feval: a function is needed")),
            };
        }
        "exist" => {
            let found = text(name, arguments.first())?;
            return one(Value::Number(f64::from(u8::from(run.variable(found).is_some() || run.has_function(found)))));
        }
        "tic" | "figure" | "hold" | "drawnow" => return Ok(Vec::new()),
        "plot" => {
            plot(device, &arguments)?;
            return Ok(Vec::new());
        }
        "size" => return size(device, &arguments, wanted),
        "sort" | "max" | "min" if wanted > 1 || name == "sort" => {
            return ordered(device, name, &arguments, wanted);
        }
        _ => {}
    }
    if let [value] = arguments.as_slice()
        && let Some(result) = function(device, name, value)?
    {
        return one(result);
    }
    simple(device, name, &arguments).map(|value| vec![value])
}

fn filled(device: &Device, name: &str, arguments: &[Value]) -> Outcome<Value> {
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

fn size(device: &Device, arguments: &[Value], wanted: usize) -> Outcome<Vec<Value>> {
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

fn simple(device: &Device, name: &str, arguments: &[Value]) -> Outcome<Value> {
    let first = || arguments.first().ok_or_else(|| Fault::new(format!("Invalid call to {name}")));
    match name {
        "sum" | "prod" | "mean" | "any" | "all" | "cumsum" | "cumprod" => {
            needs(name, arguments, 1, 2)?;
            reduced(device, name, first()?, arguments.get(1))
        }
        "min" | "max" => match arguments {
            [a, b] => extreme(device, name, a, b),
            [a, _, dimension] => reduced(device, name, a, Some(dimension)),
            [a] => reduced(device, name, a, None),
            _ => Err(Fault::new(format!("Invalid call to {name}"))),
        },
        "mod" | "rem" | "atan2" => {
            needs(name, arguments, 2, 2)?;
            let (a, b) = (numeric(device, &arguments[0], name)?, numeric(device, &arguments[1], name)?);
            // The sum's check of shapes.
            binary(device, "+", &a, &b)?;
            let (x, y) = (matrix(device, &a)?, matrix(device, &b)?);
            let opcode = match name {
                "mod" => Opcode::Remainder,
                "rem" => Opcode::Fmod,
                _ => {
                    return shrunk(
                        device,
                        device.apply(Opcode::Arctan2, &[Item::Matrix(&x), Item::Matrix(&y)])?,
                        &a,
                        &b,
                    );
                }
            };
            let rest = device.apply(opcode, &[Item::Matrix(&x), Item::Matrix(&y)])?;
            let zero = device.apply(Opcode::Equal, &[Item::Matrix(&y), Item::Number(0.0)])?;
            let instead = if name == "mod" { Item::Matrix(&x) } else { Item::Number(f64::NAN) };
            shrunk(device, device.apply(Opcode::Where, &[Item::Matrix(&zero), instead, Item::Matrix(&rest)])?, &a, &b)
        }
        "round" => {
            needs(name, arguments, 1, 1)?;
            if let Some(value) = match numeric(device, &arguments[0], name)? {
                Value::Number(value) => Some(value),
                _ => None,
            } {
                return Ok(Value::Number(value.round()));
            }
            let x = matrix(device, &arguments[0])?;
            let whole = device.apply(Opcode::Trunc, &[Item::Matrix(&x)])?;
            let rest = device.apply(Opcode::Subtract, &[Item::Matrix(&x), Item::Matrix(&whole)])?;
            let far = device.apply(Opcode::Absolute, &[Item::Matrix(&rest)])?;
            let far = device.apply(Opcode::GreaterEqual, &[Item::Matrix(&far), Item::Number(0.5)])?;
            let sign = device.apply(Opcode::Sign, &[Item::Matrix(&x)])?;
            let next = device.apply(Opcode::Add, &[Item::Matrix(&whole), Item::Matrix(&sign)])?;
            Ok(Value::Matrix(
                device.apply(Opcode::Where, &[Item::Matrix(&far), Item::Matrix(&next), Item::Matrix(&whole)])?,
            ))
        }
        "numel" | "length" | "rows" | "columns" | "ndims" | "isempty" | "isscalar" | "isvector" => {
            needs(name, arguments, 1, 1)?;
            let (rows, cols) = arguments[0].size();
            Ok(match name {
                "numel" => Value::Number((rows * cols) as f64),
                "length" if rows * cols == 0 => Value::Number(0.0),
                "length" => Value::Number(rows.max(cols) as f64),
                "rows" => Value::Number(rows as f64),
                "columns" => Value::Number(cols as f64),
                "ndims" => Value::Number(2.0),
                "isempty" => Value::Truth(rows * cols == 0),
                "isscalar" => Value::Truth(rows * cols == 1),
                _ => Value::Truth((rows == 1 || cols == 1) && rows * cols >= 1),
            })
        }
        "double" | "logical" => {
            needs(name, arguments, 1, 1)?;
            match (numeric(device, &arguments[0], name)?, name) {
                (Value::Matrix(matrix), "double") => Ok(Value::Matrix(device.double(&matrix)?)),
                (Value::Matrix(matrix), _) => Ok(Value::Matrix(device.truth(&matrix)?)),
                (value, "double") => Ok(Value::Number(number(device, name, &value)?)),
                (value, _) => Ok(Value::Truth(number(device, name, &value)? != 0.0)),
            }
        }
        "transpose" => transpose(device, first()?),
        "reshape" => {
            let (rows, cols) = match arguments {
                [value, Value::Matrix(rows), Value::Number(cols)]
                | [value, Value::Number(cols), Value::Matrix(rows)]
                    if rows.len() == 0 && *cols >= 1.0 =>
                {
                    let other = value.len() / *cols as usize;
                    if matches!(&arguments[1], Value::Matrix(_)) {
                        (other, *cols as usize)
                    } else {
                        (*cols as usize, other)
                    }
                }
                [_, _, ..] => sizes(device, name, &arguments[1..])?,
                _ => return Err(Fault::new("Invalid call to reshape")),
            };
            let from = matrix(device, first()?)?;
            if from.len() != rows * cols {
                return Err(Fault::new(format!(
                    "reshape: can't reshape {}x{} array to {rows}x{cols} array",
                    from.rows, from.cols
                )));
            }
            Ok(Value::Matrix(device.reshape(&from, rows, cols)?))
        }
        "repmat" => {
            needs(name, arguments, 2, 3)?;
            let (down, across) = sizes(device, name, &arguments[1..])?;
            let row = vec![arguments[0].clone(); across];
            if down * across == 0 {
                let (rows, cols) = arguments[0].size();
                return Ok(Value::Matrix(device.full(0.0, rows * down, cols * across)?));
            }
            crate::arrange::join(device, &vec![row; down])
        }
        "linspace" => {
            needs(name, arguments, 2, 3)?;
            let (low, high) = (number(device, name, &arguments[0])?, number(device, name, &arguments[1])?);
            let count = arguments.get(2).map_or(Ok(100), |count| extent(device, name, count))?.max(1);
            if count == 1 {
                return Ok(Value::Number(high));
            }
            let mut line = device.range(0.0, 1.0, count)?;
            line = device
                .apply(Opcode::Multiply, &[Item::Matrix(&line), Item::Number((high - low) / (count as f64 - 1.0))])?;
            line = device.apply(Opcode::Add, &[Item::Matrix(&line), Item::Number(low)])?;
            let last = device.window(&line, (0, 1, 1), (count as i64 - 1, 1, 1))?;
            device.overwrite(&last, &Value::Number(high))?;
            Ok(Value::Matrix(line))
        }
        "find" => {
            needs(name, arguments, 1, 1)?;
            let from = matrix(device, first()?)?;
            let values = device.download(&from)?;
            let found = values.iter().enumerate().filter(|(_, value)| **value != 0.0);
            let places: Vec<f64> = found.map(|(number, _)| number as f64 + 1.0).collect();
            let (rows, cols) = match (from.rows, from.cols) {
                (0, 0) => (0, 0),
                (1, cols) if cols != 1 => (1, places.len()),
                (1, 1) => (places.len(), places.len()),
                _ => (places.len(), 1),
            };
            Ok(Value::Matrix(device.upload(&places, rows, cols)?))
        }
        "num2str" => {
            needs(name, arguments, 1, 2)?;
            num2str(device, &arguments[0], arguments.get(1))
        }
        "strcmp" => match arguments {
            [Value::Text(a), Value::Text(b)] => Ok(Value::Truth(a == b)),
            [_, _] => Ok(Value::Truth(false)),
            _ => Err(Fault::new("Invalid call to strcmp")),
        },
        _ => Err(Fault::new(format!("'{name}' undefined"))),
    }
}

/// A matrix of one element as a number, where the operands were numbers.
fn shrunk(device: &Device, result: Matrix, a: &Value, b: &Value) -> Outcome<Value> {
    if matches!((a, b), (Value::Matrix(_), _) | (_, Value::Matrix(_))) {
        return Ok(Value::Matrix(result));
    }
    Ok(Value::Number(device.download(&result)?.first().copied().unwrap_or(f64::NAN)))
}

fn extreme(device: &Device, name: &str, a: &Value, b: &Value) -> Outcome<Value> {
    let (a, b) = (numeric(device, a, name)?, numeric(device, b, name)?);
    binary(device, "+", &a, &b)?;
    let (x, y) = (device.double(&matrix(device, &a)?)?, device.double(&matrix(device, &b)?)?);
    let opcode = if name == "max" { Opcode::Maximum } else { Opcode::Minimum };
    let both = device.apply(opcode, &[Item::Matrix(&x), Item::Matrix(&y)])?;
    let nan = |of: &Matrix| device.apply(Opcode::Isnan, &[Item::Matrix(of)]);
    let known = device.apply(Opcode::Where, &[Item::Matrix(&nan(&y)?), Item::Matrix(&x), Item::Matrix(&both)])?;
    let known = device.apply(Opcode::Where, &[Item::Matrix(&nan(&x)?), Item::Matrix(&y), Item::Matrix(&known)])?;
    shrunk(device, known, &a, &b)
}

fn dimension(device: &Device, name: &str, of: &Matrix, given: Option<&Value>) -> Outcome<bool> {
    match given.map(|value| number(device, name, value)).transpose()? {
        None => Ok(of.rows != 1),
        Some(1.0) => Ok(true),
        Some(2.0) => Ok(false),
        Some(_) => Err(Fault::new(format!("{name}: DIM must be 1 or 2"))),
    }
}

fn reduced(device: &Device, name: &str, value: &Value, given: Option<&Value>) -> Outcome<Value> {
    let from = matrix(device, value)?;
    let over_rows = dimension(device, name, &from, given)?;
    let (rows, cols) = if (from.rows, from.cols) == (0, 0) && given.is_none() {
        (1, 1)
    } else if over_rows {
        (1, from.cols)
    } else {
        (from.rows, 1)
    };
    if from.len() == 0 {
        return Ok(Value::Matrix(match name {
            "any" | "all" => device.full_truth(name == "all", rows, cols)?,
            "cumsum" | "cumprod" => from,
            "min" | "max" => device.full(0.0, 0, 0)?,
            "mean" => device.full(f64::NAN, rows, cols)?,
            _ => device.full(f64::from(u8::from(name == "prod")), rows, cols)?,
        }));
    }
    let numbers = device.double(&from)?;
    let along = |opcode| device.reduce(opcode, &numbers, over_rows, !over_rows);
    let result = match name {
        "sum" => along(Opcode::AddReduce)?,
        "prod" => along(Opcode::MultiplyReduce)?,
        "mean" => {
            let count = if over_rows { from.rows } else { from.cols };
            device.apply(Opcode::Divide, &[Item::Matrix(&along(Opcode::AddReduce)?), Item::Number(count as f64)])?
        }
        "cumsum" => device.accumulate(Opcode::AddAccumulate, &numbers, over_rows)?,
        "cumprod" => device.accumulate(Opcode::MultiplyAccumulate, &numbers, over_rows)?,
        "any" | "all" => {
            // A matrix of one row or column is reduced whole.
            let opcode = if name == "any" { Opcode::LogicalOrReduce } else { Opcode::LogicalAndReduce };
            device.reduce(opcode, &device.truth(&from)?, over_rows, !over_rows)?
        }
        _ => {
            let (opcode, worst) = match name {
                "max" => (Opcode::MaximumReduce, f64::NEG_INFINITY),
                _ => (Opcode::MinimumReduce, f64::INFINITY),
            };
            let nan = device.apply(Opcode::Isnan, &[Item::Matrix(&numbers)])?;
            let known =
                device.apply(Opcode::Where, &[Item::Matrix(&nan), Item::Number(worst), Item::Matrix(&numbers)])?;
            let best = device.reduce(opcode, &known, over_rows, !over_rows)?;
            let none = device.reduce(Opcode::LogicalAndReduce, &nan, over_rows, !over_rows)?;
            device.apply(Opcode::Where, &[Item::Matrix(&none), Item::Number(f64::NAN), Item::Matrix(&best)])?
        }
    };
    Ok(Value::Matrix(result))
}

/// `sort`, and `max` and `min` with places: on this side, as they order values with their places.
fn ordered(device: &Device, name: &str, arguments: &[Value], wanted: usize) -> Outcome<Vec<Value>> {
    let Some(first) = arguments.first() else { return Err(Fault::new(format!("Invalid call to {name}"))) };
    let mut down = false;
    let mut given = None;
    for argument in &arguments[1..] {
        match argument {
            Value::Text(mode) if name == "sort" && matches!(&**mode, "ascend" | "descend") => {
                down = &**mode == "descend"
            }
            Value::Matrix(empty) if empty.len() == 0 => {}
            other => given = Some(other),
        }
    }
    let from = matrix(device, first)?;
    if from.logical && name == "sort" {
        return Err(Fault::new("sort: truth values are not supported"));
    }
    let over_rows = dimension(device, name, &from, given)?;
    let values = device.download(&from)?;
    let (lines, length) = if over_rows { (from.cols, from.rows) } else { (from.rows, from.cols) };
    let at = |line: usize, number: usize| if over_rows { line * from.rows + number } else { number * from.rows + line };
    let kept = if name == "sort" { length } else { length.min(1) };
    let (rows, cols) = if over_rows { (kept, from.cols) } else { (from.rows, kept) };
    let (mut sorted, mut places) = (vec![0.0; rows * cols], vec![0.0; rows * cols]);
    for line in 0..lines {
        let mut order: Vec<usize> = (0..length).collect();
        let key = |number: &usize| values[at(line, *number)];
        order.sort_by(|a, b| {
            let (x, y) = (key(a), key(b));
            let descending = down || name == "max";
            match (x.is_nan(), y.is_nan()) {
                // NaN is the largest; places of extremes leave it out.
                (true, true) => std::cmp::Ordering::Equal,
                (true, false) if name == "sort" && down => std::cmp::Ordering::Less,
                (false, true) if name == "sort" && down => std::cmp::Ordering::Greater,
                (true, false) => std::cmp::Ordering::Greater,
                (false, true) => std::cmp::Ordering::Less,
                _ if descending => y.partial_cmp(&x).unwrap_or(std::cmp::Ordering::Equal),
                _ => x.partial_cmp(&y).unwrap_or(std::cmp::Ordering::Equal),
            }
        });
        for (number, from_place) in order.iter().take(kept).enumerate() {
            let to = if over_rows { line * rows + number } else { number * rows + line };
            sorted[to] = values[at(line, *from_place)];
            places[to] = *from_place as f64 + 1.0;
        }
    }
    let mut results = vec![Value::Matrix(device.upload(&sorted, rows, cols)?)];
    if wanted > 1 {
        results.push(Value::Matrix(device.upload(&places, rows, cols)?));
    }
    Ok(results)
}

fn num2str(device: &Device, value: &Value, precision: Option<&Value>) -> Outcome<Value> {
    if let Value::Text(_) = value {
        return Ok(value.clone());
    }
    let from = matrix(device, value)?;
    let values = device.download(&from)?;
    if from.rows != 1 {
        return Err(Fault::new("num2str: only one row is supported"));
    }
    if let Some(Value::Text(template)) = precision {
        return Ok(Value::text(&print::format(device, template, std::slice::from_ref(value))?));
    }
    let largest = values.iter().filter(|value| value.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
    let digits = if largest == 0.0 { 0 } else { largest.log10().floor() as i64 };
    let whole = values.iter().all(|value| value.fract() == 0.0 || !value.is_finite());
    let negative = values.iter().any(|value| *value < 0.0);
    let (shown, width) = match precision {
        Some(precision) => {
            let count = extent(device, "num2str", precision)?.min(100);
            (count, count + 7 + usize::from(negative))
        }
        None if whole => (17, (digits.max(0) + 3) as usize + usize::from(negative)),
        None => {
            let count = (digits + 5).clamp(5, 16) as usize;
            (count, count + 7 + usize::from(negative))
        }
    };
    let text: String = values.iter().map(|value| format!("{:>width$}", general(*value, shown))).collect();
    Ok(Value::text(text.trim()))
}

/// `plot(x, y, "file.svg")`, or into plot.svg.
fn plot(device: &Device, arguments: &[Value]) -> Outcome<()> {
    let file = arguments.iter().find_map(|argument| match argument {
        Value::Text(text) if text.ends_with(".svg") => Some(text.to_string()),
        _ => None,
    });
    let mut lines = Vec::new();
    for argument in arguments.iter().filter(|argument| !matches!(argument, Value::Text(_))) {
        lines.push(device.download(&device.double(&matrix(device, argument)?)?)?);
    }
    let (x, y) = match lines.as_slice() {
        [y] => ((1..=y.len()).map(|number| number as f64).collect(), y.clone()),
        [x, y] if x.len() == y.len() => (x.clone(), y.clone()),
        _ => return Err(Fault::new("plot: one vector or two of one length are needed")),
    };
    let bounds = |values: &[f64]| {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        if high > low { (low, high) } else { (low.min(0.0) - 0.5, low.min(0.0) + 0.5) }
    };
    let ((x0, x1), (y0, y1)) = (bounds(&x), bounds(&y));
    let points: Vec<String> = x
        .iter()
        .zip(&y)
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .map(|(x, y)| format!("{:.2},{:.2}", 50.0 + 540.0 * (x - x0) / (x1 - x0), 350.0 - 330.0 * (y - y0) / (y1 - y0)))
        .collect();
    let label = |x: f64, y: f64, value: f64| {
        format!("<text x=\"{x}\" y=\"{y}\" font-size=\"11\">{}</text>\n", general(value, 4))
    };
    let picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"400\">\n<rect width=\"640\" height=\"400\" fill=\"white\"/>\n\
         <rect x=\"50\" y=\"20\" width=\"540\" height=\"330\" fill=\"none\" stroke=\"black\"/>\n\
         <polyline fill=\"none\" stroke=\"#0072bd\" points=\"{}\"/>\n{}{}{}{}</svg>\n",
        points.join(" "),
        label(50.0, 366.0, x0),
        label(570.0, 366.0, x1),
        label(4.0, 350.0, y0),
        label(4.0, 28.0, y1),
    );
    let file = file.unwrap_or_else(|| "plot.svg".to_owned());
    std::fs::write(&file, picture).map_err(|error| Fault::new(format!("plot: '{file}' cannot be written: {error}")))
}

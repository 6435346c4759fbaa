//! Functions that return values with their positions. They run in the interpreter, because both are ordered together.

use super::fold::dimension;
use super::{extent, needs};
use crate::device::Device;
use crate::operators::matrix;
use crate::source::{Fault, Outcome};
use crate::value::Value;

/// `sort`, and `max` and `min` with positions, in the interpreter.
pub fn ordered(device: &Device, name: &str, arguments: &[Value], wanted: usize) -> Outcome<Vec<Value>> {
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
                // NaN is the largest; positions of extremes ignore it.
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
    let sorted = device.upload(&sorted, rows, cols)?;
    let mut results = vec![Value::Matrix(if from.logical { device.truth(&sorted)? } else { sorted })];
    if wanted > 1 {
        results.push(Value::Matrix(device.upload(&places, rows, cols)?));
    }
    Ok(results)
}

/// `find(x)`, `find(x, n)`, `[i, j] = find(x)`: the positions of nonzero elements.
pub fn find(device: &Device, arguments: &[Value], wanted: usize) -> Outcome<Vec<Value>> {
    needs("find", arguments, 1, 2)?;
    let from = matrix(device, &arguments[0])?;
    let most = match arguments.get(1) {
        None => usize::MAX,
        Some(most) => match extent(device, "find", most)? {
            0 => return Err(Fault::new("find: N must be an integer")),
            most => most,
        },
    };
    let values = device.download(&from)?;
    let found = values.iter().enumerate().filter(|(_, value)| **value != 0.0).take(most);
    let places: Vec<usize> = found.map(|(number, _)| number).collect();
    let count = places.len();
    let (rows, cols) = match (from.rows, from.cols) {
        (0, 0) => (0, 0),
        (1, cols) if cols != 1 => (1, count),
        (1, 1) => (count, count),
        _ => (count, 1),
    };
    let upload = |place: &dyn Fn(usize) -> usize| -> Outcome<Value> {
        let places: Vec<f64> = places.iter().map(|number| place(*number) as f64 + 1.0).collect();
        Ok(Value::Matrix(device.upload(&places, rows, cols)?))
    };
    match wanted {
        0 | 1 => Ok(vec![upload(&|number| number)?]),
        2 => Ok(vec![upload(&|number| number % from.rows)?, upload(&|number| number / from.rows)?]),
        _ => Err(Fault::new("find: at most two results are supported")),
    }
}

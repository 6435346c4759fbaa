//! Joining and repeating matrices.

use crate::device::Device;
use crate::operators::matrix;
use crate::source::{Fault, Outcome};
use crate::value::{Matrix, Value};

/// A matrix of rows of parts.
pub fn join(device: &Device, rows: &[Vec<Value>]) -> Outcome<Value> {
    let all = || rows.iter().flatten();
    if all().any(|value| matches!(value, Value::Function(_))) {
        return Err(Fault::new("concatenation of function handles is not supported"));
    }
    if all().any(|value| matches!(value, Value::Text(_))) {
        if rows.len() > 1 || !all().all(|value| matches!(value, Value::Text(_)) || value.len() == 0) {
            return Err(Fault::new("only texts can be joined with texts, in one row"));
        }
        let parts = all().map(|value| if let Value::Text(text) = value { text.to_string() } else { String::new() });
        return Ok(Value::text(&parts.collect::<String>()));
    }
    if let ([row], true) = (rows, rows.iter().map(Vec::len).sum::<usize>() == 1) {
        return Ok(row[0].clone());
    }
    let logical = rows.iter().flatten().next().is_some() && all().all(Value::is_logical);
    let plain: Option<Vec<Vec<f64>>> = rows
        .iter()
        .map(|row| row.iter().map(|value| if let Value::Number(n) = value { Some(*n) } else { None }).collect())
        .collect();
    if let Some(numbers) = plain {
        let width = numbers.first().map_or(0, Vec::len);
        if numbers.iter().any(|row| row.len() != width) {
            return Err(mismatch(
                "vertical",
                (1, width),
                (1, numbers.iter().map(Vec::len).find(|l| *l != width).unwrap_or(0)),
            ));
        }
        let flat: Vec<f64> = (0..width).flat_map(|col| numbers.iter().map(move |row| row[col])).collect();
        return Ok(Value::Matrix(device.upload(&flat, numbers.len() * usize::from(width > 0), width)?));
    }
    let mut bands: Vec<(usize, usize, Vec<Matrix>)> = Vec::new();
    for row in rows {
        let mut band: (usize, usize, Vec<Matrix>) = (0, 0, Vec::new());
        for value in row {
            let part = matrix(device, value)?;
            if part.rows == 0 && part.cols == 0 {
                continue;
            }
            if !band.2.is_empty() && band.0 != part.rows {
                return Err(mismatch("horizontal", (band.0, band.1), (part.rows, part.cols)));
            }
            band = (part.rows, band.1 + part.cols, {
                band.2.push(part);
                band.2
            });
        }
        if band.2.is_empty() {
            continue;
        }
        if let Some(first) = bands.first()
            && first.1 != band.1
        {
            return Err(mismatch("vertical", (first.0, first.1), (band.0, band.1)));
        }
        bands.push(band);
    }
    let height = bands.iter().map(|band| band.0).sum();
    let width = bands.first().map_or(0, |band| band.1);
    let into = if logical { device.full_truth(false, height, width)? } else { device.full(0.0, height, width)? };
    let mut top = 0;
    for (rows, _, parts) in bands {
        let mut left = 0;
        for part in parts {
            if part.len() > 0 {
                let window = device.window(&into, (top, 1, part.rows), (left, 1, part.cols))?;
                device.overwrite(&window, &Value::Matrix(part.clone()))?;
            }
            left += part.cols as i64;
        }
        top += rows as i64;
    }
    Ok(Value::Matrix(into))
}

fn mismatch(direction: &str, a: (usize, usize), b: (usize, usize)) -> Fault {
    Fault::new(format!("{direction} dimensions mismatch ({}x{} vs {}x{})", a.0, a.1, b.0, b.1))
}

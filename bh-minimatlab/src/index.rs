//! Reads and assigns parts of matrices.

use crate::device::{Device, Item};
use crate::operators::{matrix, refuse_nan, scalar};
use crate::source::{Fault, Outcome};
use crate::value::{Matrix, Value};
use bh_bytecode::Opcode;

/// A subscript before evaluation.
pub enum Subscript {
    /// `:`
    All,
    /// First, step and count, counted from 1 as in programs.
    Range(f64, f64, usize),
    /// Anything else.
    Value(Value),
}

/// Positions along one dimension, from 0.
struct Places {
    kind: Kind,
    /// The shape of the index.
    rows: usize,
    cols: usize,
    all: bool,
}

enum Kind {
    Span(i64, i64, usize),
    List(Vec<i64>),
}

impl Places {
    fn count(&self) -> usize {
        match &self.kind {
            Kind::Span(_, _, count) => *count,
            Kind::List(list) => list.len(),
        }
    }

    fn at(&self, number: usize) -> i64 {
        match &self.kind {
            Kind::Span(first, step, _) => first + step * number as i64,
            Kind::List(list) => list[number],
        }
    }

    /// The largest position plus one.
    fn end(&self) -> usize {
        let all = match &self.kind {
            Kind::Span(first, step, count) if *count > 0 => (*first).max(first + step * (*count as i64 - 1)) + 1,
            Kind::Span(..) => 0,
            Kind::List(list) => list.iter().max().map_or(0, |largest| largest + 1),
        };
        all as usize
    }
}

fn place(number: f64) -> Outcome<i64> {
    if number.fract() != 0.0 || !number.is_finite() {
        return Err(Fault::new(format!("subscripts must be whole numbers, not {number}")));
    }
    if number < 1.0 {
        return Err(Fault::new(format!("index ({number}): out of bound; subscripts start at 1")));
    }
    Ok(number as i64 - 1)
}

fn places(device: &Device, subscript: &Subscript, extent: usize) -> Outcome<Places> {
    let span = |first, step, count| Places { kind: Kind::Span(first, step, count), rows: 1, cols: count, all: false };
    let value = match subscript {
        Subscript::All => return Ok(Places { kind: Kind::Span(0, 1, extent), rows: extent, cols: 1, all: true }),
        Subscript::Range(_, _, 0) => return Ok(span(0, 1, 0)),
        Subscript::Range(first, step, count) => {
            let begin = place(*first)?;
            if step.fract() != 0.0 {
                return Err(Fault::new("subscripts must be whole numbers"));
            }
            place(first + step * (*count as f64 - 1.0))?;
            return Ok(span(begin, *step as i64, *count));
        }
        Subscript::Value(value) => value,
    };
    match value {
        Value::Number(number) => Ok(span(place(*number)?, 1, 1)),
        Value::Truth(truth) => Ok(span(0, 1, usize::from(*truth))),
        Value::Matrix(index) => {
            let values = device.download(index)?;
            let (mut rows, mut cols) = (index.rows, index.cols);
            let list: Vec<i64> = if index.logical {
                let found = values.iter().enumerate().filter(|(_, value)| **value != 0.0);
                let list: Vec<i64> = found.map(|(number, _)| number as i64).collect();
                (rows, cols) = if rows == 1 { (1, list.len()) } else { (list.len(), 1) };
                list
            } else {
                values.into_iter().map(place).collect::<Outcome<_>>()?
            };
            Ok(Places { kind: Kind::List(list), rows, cols, all: false })
        }
        other => Err(Fault::new(format!("a {} cannot be a subscript", other.kind()))),
    }
}

fn outside(end: usize, extent: &str) -> Fault {
    Fault::new(format!("index ({end}): out of bound {extent}"))
}

/// The elements at the subscripts.
pub fn read(device: &Device, value: &Value, subscripts: &[Subscript]) -> Outcome<Value> {
    if let Value::Text(text) = value {
        return read_text(device, text, subscripts);
    }
    if matches!(value, Value::Number(_) | Value::Truth(_))
        && subscripts
            .iter()
            .all(|s| matches!(s, Subscript::All) || matches!(s, Subscript::Value(Value::Number(n)) if *n == 1.0))
    {
        return Ok(value.clone());
    }
    let source = matrix(device, value)?;
    let part = match subscripts {
        [] => source,
        [one] => read_line(device, &source, one)?,
        [rows, cols] => {
            let (rows, cols) = (places(device, rows, source.rows)?, places(device, cols, source.cols)?);
            if rows.end() > source.rows || cols.end() > source.cols {
                let text = format!("(matrix is {}x{})", source.rows, source.cols);
                return Err(outside(if rows.end() > source.rows { rows.end() } else { cols.end() }, &text));
            }
            if let (Kind::Span(first_row, row_step, row_count), Kind::Span(first_col, col_step, col_count)) =
                (&rows.kind, &cols.kind)
            {
                device.window(&source, (*first_row, *row_step, *row_count), (*first_col, *col_step, *col_count))?
            } else {
                device.gather(&source, &flat(&rows, &cols, source.rows), rows.count(), cols.count())?
            }
        }
        _ => return Err(Fault::new("arrays with more than two dimensions are not supported")),
    };
    let single = !subscripts.is_empty() && subscripts.iter().all(|s| matches!(s, Subscript::Value(Value::Number(_))));
    if single {
        let number = device.download(&part)?.first().copied().unwrap_or(f64::NAN);
        return Ok(if part.logical { Value::Truth(number != 0.0) } else { Value::Number(number) });
    }
    Ok(Value::Matrix(part))
}

fn flat(rows: &Places, cols: &Places, height: usize) -> Vec<i64> {
    let pairs = (0..cols.count()).flat_map(|col| (0..rows.count()).map(move |row| (row, col)));
    pairs.map(|(row, col)| cols.at(col) * height as i64 + rows.at(row)).collect()
}

fn read_line(device: &Device, source: &Matrix, subscript: &Subscript) -> Outcome<Matrix> {
    let line = places(device, subscript, source.len())?;
    if line.end() > source.len() {
        return Err(outside(line.end(), &format!("{} (matrix is {}x{})", source.len(), source.rows, source.cols)));
    }
    let count = line.count();
    // A vector gives a vector of its own orientation, anything else the index's shape.
    let vector_index = line.rows == 1 || line.cols == 1;
    let (rows, cols) = if line.all {
        (count, 1)
    } else if source.is_vector() && source.len() != 1 && vector_index {
        if source.rows == 1 { (1, count) } else { (count, 1) }
    } else {
        (line.rows, line.cols)
    };
    match line.kind {
        Kind::Span(first, step, count) => {
            let column = device.reshape(source, source.len(), 1)?;
            let part = device.window(&column, (first, step, count), (0, 1, 1))?;
            if cols == 1 { Ok(part) } else { device.transpose(&part) }
        }
        Kind::List(list) => device.gather(source, &list, rows, cols),
    }
}

fn read_text(device: &Device, text: &str, subscripts: &[Subscript]) -> Outcome<Value> {
    let chars: Vec<char> = text.chars().collect();
    let line = match subscripts {
        [one] => places(device, one, chars.len())?,
        [row, one] if places(device, row, 1)?.end() == 1 => places(device, one, chars.len())?,
        _ => return Err(Fault::new("a text has one row")),
    };
    if line.end() > chars.len() {
        return Err(outside(line.end(), &format!("{}", chars.len())));
    }
    Ok(Value::text(&(0..line.count()).map(|number| chars[line.at(number) as usize]).collect::<String>()))
}

/// The matrix if it may be overwritten in place, otherwise a copy.
fn own(device: &Device, target: Matrix) -> Outcome<Matrix> {
    let plain = device.recorder().info(target.array.id())?.view.is_contiguous();
    if plain && std::rc::Rc::strong_count(&target.base) == 1 { Ok(target) } else { device.copy(&target) }
}

/// Assigns to the elements at the subscripts; the matrix grows if necessary.
pub fn assign(device: &Device, target: &mut Value, subscripts: &[Subscript], value: &Value) -> Outcome<()> {
    if matches!(value, Value::Text(_)) || matches!(target, Value::Text(_)) {
        return Err(Fault::new("assigning parts of texts is not supported"));
    }
    if matches!(value, Value::Function(_)) || matches!(target, Value::Function(_)) {
        return Err(Fault::new("a function handle has no elements to assign"));
    }
    // Booleans remain booleans.
    let kept;
    let value = if target.is_logical() && !value.is_logical() {
        refuse_nan(device, value)?;
        kept = match value {
            Value::Number(number) => Value::Truth(*number != 0.0),
            other => Value::Matrix(device.truth(&matrix(device, other)?)?),
        };
        &kept
    } else {
        value
    };
    let mut into = match &*target {
        Value::Matrix(matrix) => matrix.clone(),
        other => matrix(device, other)?,
    };
    into.range = false;
    // A mask is applied without reading its elements.
    if let ([Subscript::Value(Value::Matrix(mask))], 1) = (subscripts, value.len())
        && mask.logical
        && !into.logical
        && (mask.rows, mask.cols) == (into.rows, into.cols)
    {
        let held;
        let one = match value {
            Value::Matrix(one) => {
                held = device.double(one)?;
                Item::Matrix(&held)
            }
            other => Item::Number(scalar(device, other)?.unwrap_or(f64::NAN)),
        };
        *target = Value::Matrix(device.apply(Opcode::Where, &[Item::Matrix(mask), one, Item::Matrix(&into)])?);
        return Ok(());
    }
    let (rows, cols) = match subscripts {
        [one] => {
            let line = places(device, one, into.len())?;
            if value.len() != 1 && value.len() != line.count() {
                let (r, c) = value.size();
                return Err(Fault::new(format!(
                    "=: nonconformant arguments (op1 is 1x{}, op2 is {r}x{c})",
                    line.count()
                )));
            }
            if line.end() > into.len() {
                into = match (into.rows, into.cols) {
                    (0, _) | (_, 0) | (1, _) => grown(device, &into, 1, line.end())?,
                    (_, 1) => grown(device, &into, line.end(), 1)?,
                    (r, c) => {
                        return Err(Fault::new(format!(
                            "Octave:index out of bound; value {} out of bound {}: A(I) = X: X must have the same size as I (matrix is {r}x{c})",
                            line.end(),
                            into.len()
                        )));
                    }
                };
            }
            return assign_line(device, target, into, &line, value);
        }
        [rows, cols] => {
            // A colon on an empty dimension takes the value's extent.
            let (r, c) = value.size();
            let height = if into.rows == 0 { r } else { into.rows };
            let width = if into.cols == 0 { c } else { into.cols };
            (places(device, rows, height)?, places(device, cols, width)?)
        }
        [] => return Err(Fault::new("an assignment needs a subscript between the parentheses")),
        _ => return Err(Fault::new("arrays with more than two dimensions are not supported")),
    };
    let (r, c) = value.size();
    let (height, width) = (rows.count(), cols.count());
    let turned = (height == 1 || width == 1) && (r == 1 || c == 1) && r * c == height * width;
    if value.len() != 1 && (r, c) != (height, width) && !turned {
        return Err(Fault::new(format!("=: nonconformant arguments (op1 is {height}x{width}, op2 is {r}x{c})")));
    }
    if rows.end() > into.rows || cols.end() > into.cols {
        into = grown(device, &into, rows.end().max(into.rows), cols.end().max(into.cols))?;
    }
    // Only the variable's reference remains, so that the matrix is recognised as unshared.
    *target = Value::Number(0.0);
    let into = own(device, into)?;
    let done = if height * width == 0 {
        Ok(())
    } else if let (Kind::Span(a, b, _), Kind::Span(d, e, _)) = (&rows.kind, &cols.kind) {
        let window = device.window(&into, (*a, *b, height), (*d, *e, width))?;
        let fitting = match value {
            Value::Matrix(matrix) if matrix.len() != 1 && (r, c) != (height, width) => {
                Value::Matrix(device.reshape(matrix, height, width)?)
            }
            other => other.clone(),
        };
        device.overwrite(&window, &fitting)
    } else {
        let list = flat(&rows, &cols, into.rows);
        device.scatter(&into, &list, &typed(device, &into, value)?)
    };
    *target = Value::Matrix(into);
    done
}

fn typed(device: &Device, into: &Matrix, value: &Value) -> Outcome<Matrix> {
    let value = matrix(device, value)?;
    if into.logical { device.truth(&value) } else { device.double(&value) }
}

fn assign_line(device: &Device, target: &mut Value, into: Matrix, line: &Places, value: &Value) -> Outcome<()> {
    *target = Value::Number(0.0);
    let into = own(device, into)?;
    let count = line.count();
    let done = match &line.kind {
        _ if count == 0 => Ok(()),
        // A matrix with its own memory is contiguous, so reshaping gives a view.
        Kind::Span(first, step, _) => {
            let column = device.reshape(&into, into.len(), 1)?;
            let window = device.window(&column, (*first, *step, count), (0, 1, 1))?;
            let fitting = match value {
                Value::Matrix(matrix) if matrix.len() != 1 => Value::Matrix(device.reshape(matrix, count, 1)?),
                other => other.clone(),
            };
            device.overwrite(&window, &fitting)
        }
        Kind::List(list) => device.scatter(&into, list, &typed(device, &into, value)?),
    };
    *target = Value::Matrix(into);
    done
}

fn grown(device: &Device, from: &Matrix, rows: usize, cols: usize) -> Outcome<Matrix> {
    let into = if from.logical { device.full_truth(false, rows, cols)? } else { device.full(0.0, rows, cols)? };
    if from.len() > 0 {
        let window = device.window(&into, (0, 1, from.rows), (0, 1, from.cols))?;
        device.overwrite(&window, &Value::Matrix(from.clone()))?;
    }
    Ok(into)
}

/// Removes the elements at the subscripts.
pub fn delete(device: &Device, target: &mut Value, subscripts: &[Subscript]) -> Outcome<()> {
    let source = matrix(device, target)?;
    let kept = |places: &Places, extent: usize| -> Vec<i64> {
        let gone: std::collections::HashSet<i64> = (0..places.count()).map(|number| places.at(number)).collect();
        (0..extent as i64).filter(|place| !gone.contains(place)).collect()
    };
    let full = |places: &Places, extent: usize| places.all || kept(places, extent).is_empty();
    let result = match subscripts {
        [one] => {
            let line = places(device, one, source.len())?;
            if line.end() > source.len() {
                return Err(outside(line.end(), &format!("{}", source.len())));
            }
            if !source.is_vector() && !line.all {
                return Err(Fault::new("a null assignment can only have one non-colon index"));
            }
            let kept = kept(&line, source.len());
            let (rows, cols) = if source.cols == 1 && source.rows != 1 { (kept.len(), 1) } else { (1, kept.len()) };
            if line.all { device.full(0.0, 0, 0)? } else { device.gather(&source, &kept, rows, cols)? }
        }
        [rows, cols] => {
            let (rows, cols) = (places(device, rows, source.rows)?, places(device, cols, source.cols)?);
            if rows.end() > source.rows || cols.end() > source.cols {
                return Err(outside(
                    rows.end().max(cols.end()),
                    &format!("(matrix is {}x{})", source.rows, source.cols),
                ));
            }
            let span = |list: Vec<i64>| Places { rows: 1, cols: list.len(), kind: Kind::List(list), all: false };
            let all = |extent| Places { kind: Kind::Span(0, 1, extent), rows: 1, cols: extent, all: true };
            let (rows, cols) = if full(&rows, source.rows) && (rows.all || !cols.all) {
                (all(source.rows), span(kept(&cols, source.cols)))
            } else if full(&cols, source.cols) {
                (span(kept(&rows, source.rows)), all(source.cols))
            } else {
                return Err(Fault::new("a null assignment can only have one non-colon index"));
            };
            device.gather(&source, &flat(&rows, &cols, source.rows), rows.count(), cols.count())?
        }
        _ => return Err(Fault::new("arrays with more than two dimensions are not supported")),
    };
    *target = Value::Matrix(result);
    Ok(())
}

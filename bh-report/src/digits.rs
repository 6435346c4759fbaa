//! The decimal digits that the lines of a program keep: its source, for the page to colour.

use crate::events::Sources;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Lines shown before the first and behind the last measured one of a file, and lines of a file, at most.
const AROUND: u64 = 2;
const LONGEST: u64 = 400;

/// The files with measured lines: each line with its text, and where known the digits of its worst operation. `rows`: the table of
/// the Python package.
pub fn of(rows: &Value) -> Value {
    let mut files: BTreeMap<&str, BTreeMap<u64, &Value>> = BTreeMap::new();
    let digits = |row: &Value| row["element"].as_f64().unwrap_or(f64::MAX);
    for row in rows.as_array().into_iter().flatten() {
        let (Some(file), Some(line)) = (row["file"].as_str(), row["line"].as_u64()) else { continue };
        let worst = files.entry(file).or_default().entry(line).or_insert(row);
        if digits(row) < digits(worst) {
            *worst = row;
        }
    }
    let mut sources = Sources::default();
    let mut shown = |(file, lines): (&str, BTreeMap<u64, &Value>)| {
        let (first, last) = (*lines.keys().next()?, *lines.keys().next_back()?);
        let first = first.saturating_sub(AROUND).max(1);
        let line = |number: u64| {
            let text = sources.text(file, number as usize)?.to_owned();
            let row = lines.get(&number).copied().unwrap_or(&Value::Null);
            Some(json!({
                "line": number, "text": text, "operation": row["operation"], "digits": row["element"],
                "array": row["array"], "of": row["most"], "runs": row["runs"],
            }))
        };
        let all: Vec<Value> = (first..=last + AROUND).take(LONGEST as usize).filter_map(line).collect();
        Some(json!({ "file": file, "lines": all }))
    };
    files.into_iter().filter_map(&mut shown).collect()
}

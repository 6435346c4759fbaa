//! The fuser's explanations of the batches that it planned.

use serde_json::{Value, json};
use std::path::Path;

/// Explanations shown, at most: those with the most operations.
const MOST: usize = 40;
/// Bytes of the longest explanation shown.
const LONGEST: usize = 100 << 10;

/// The explanations in a directory, in the order of batches: `kernels`, `operations` and `text`; and the number of
/// others.
pub fn read(directory: &Path) -> Value {
    let mut files: Vec<_> = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|it| it.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let explained = |file: &std::path::PathBuf| Some(explanation(&std::fs::read_to_string(file).ok()?));
    let mut all: Vec<(usize, Value)> = files.iter().filter_map(explained).enumerate().collect();
    let left_out = all.len().saturating_sub(MOST);
    all.sort_by_key(|(_, batch)| std::cmp::Reverse(batch["operations"].as_u64()));
    all.truncate(MOST);
    all.sort_by_key(|(number, _)| *number);
    let batches: Vec<Value> = all.into_iter().map(|(_, batch)| batch).collect();
    json!({ "batches": batches, "left_out": left_out })
}

/// Reads an explanation; its first line has the numbers of kernels and operations.
fn explanation(text: &str) -> Value {
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let (kernels, operations) = (numbers.next(), numbers.next());
    let mut text = text.to_owned();
    text.truncate(text.floor_char_boundary(LONGEST));
    json!({ "kernels": kernels, "operations": operations, "text": text })
}

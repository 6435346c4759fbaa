//! The files of a cluster's ranks: one per rank, beside that of the first.

use crate::Counters;
use std::path::{Path, PathBuf};

/// The files of all ranks in order; the first is always included.
pub fn files(first: &Path) -> Vec<PathBuf> {
    let file = |rank: usize| PathBuf::from(format!("{}.rank{rank}", first.display()));
    let others = (1..).map(file).take_while(|file| file.is_file());
    std::iter::once(first.to_owned()).chain(others).collect()
}

/// The statistics of all ranks.
pub fn statistics(first: &Path) -> Result<Vec<Counters>, String> {
    let read = |file: PathBuf| {
        let missing =
            |error| format!("the program left no statistics ({error}); does it use bh, and does it end normally?");
        let text = std::fs::read_to_string(file).map_err(missing)?;
        serde_json::from_str(&text).map_err(|error| format!("the statistics are damaged: {error}"))
    };
    files(first).into_iter().map(read).collect()
}

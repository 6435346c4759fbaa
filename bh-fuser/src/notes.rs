//! The engines' notes on the blocks of a batch: where each of them runs, and how.

use bh_bytecode::BatchRef;
use bh_bytecode::dump::{self, Dump};
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::path::Path;

/// Lines of text by block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(Vec<(usize, String)>);

impl Notes {
    /// Asks the engines, by the message `explain FILE`; the file is a dump of the batch with its blocks, which is written for
    /// that and removed. An answer has a line for each thing to say: the block's number, a space, and text. Engines that do
    /// not know the message say nothing.
    pub fn ask(batch: &BatchRef<'_>, file: &Path, ask: impl FnOnce(&str) -> Result<String>) -> Result<Notes> {
        let bytes = dump::write(&Dump { batch: batch.to_owned(), contents: Vec::new() });
        std::fs::write(file, bytes)
            .map_err(|error| Error::new(status::FILE, format!("{}: {error}", file.display())))?;
        let answer = ask(&format!("explain {}", file.display()));
        // Best effort: it lies in a directory of the caller's.
        let _ = std::fs::remove_file(file);
        Ok(Notes::parse(&answer?))
    }

    fn parse(answer: &str) -> Notes {
        let line = |line: &str| {
            let (block, text) = line.split_once(' ')?;
            Some((block.parse().ok()?, text.to_owned()))
        };
        Notes(answer.lines().filter_map(line).collect())
    }

    /// The notes on a block.
    pub fn of(&self, block: usize) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| *known == block).map(|(_, text)| text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_lines_by_block() {
        let notes = Notes::parse("1 the device\nnothing\n0 elsewhere: too small\n1 two kernels\n");
        assert_eq!(notes.of(1).collect::<Vec<_>>(), ["the device", "two kernels"]);
        assert_eq!(notes.of(0).collect::<Vec<_>>(), ["elsewhere: too small"]);
        assert_eq!(notes.of(2).count(), 0);
    }
}

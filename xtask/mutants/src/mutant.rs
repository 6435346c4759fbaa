//! A change of a source, and the text that holds it beside the original.

use std::ops::Range;

/// A part of the text that replaces a region of the source.
#[derive(Clone, Debug)]
pub enum Piece {
    /// As it stands here; `$M` is whether the mutant is awake.
    Text(String),
    /// The region itself, with what else is changed in it.
    Original,
    /// Another region within the first.
    Part(Range<usize>),
}

/// One change.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The crate's folder.
    pub crate_name: String,
    /// The file, seen from the repository.
    pub file: String,
    /// The function, with its type.
    pub function: String,
    /// The replaced text and its replacement.
    pub change: String,
    /// Where it begins in the source.
    pub line: usize,
    /// The bytes of the source that are replaced.
    pub region: Range<usize>,
    /// By what.
    pub pieces: Vec<Piece>,
}

impl Mutant {
    /// The mutant's name, which does not depend on its number and line.
    pub fn key(&self) -> String {
        format!("{}: {}: {}", self.file, self.function, self.change)
    }
}

//! Source texts, places in them, and errors with their place.

use std::fmt;
use std::rc::Rc;

/// A source text with its name for errors.
#[derive(Debug)]
pub struct Source {
    /// The file's name, or a substitute.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A place in a text.
#[derive(Clone, Debug)]
pub struct TextPosition {
    /// The text.
    pub source: Rc<Source>,
    /// Byte offset.
    pub offset: usize,
}

impl TextPosition {
    /// Line and column, both from 1; columns count characters.
    pub fn line_column(&self) -> (usize, usize) {
        let before = &self.source.text[..self.floor()];
        let begin = before.rfind('\n').map_or(0, |position| position + 1);
        (before.matches('\n').count() + 1, before[begin..].chars().count() + 1)
    }

    fn floor(&self) -> usize {
        let mut offset = self.offset.min(self.source.text.len());
        while !self.source.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

/// An error's message and place.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The message.
    pub text: String,
    /// The place, if known.
    pub place: Option<TextPosition>,
}

/// Outcome of everything that can fail.
pub type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// An error without a place; the evaluator adds it.
    pub fn new(text: impl Into<String>) -> Fault {
        Fault { text: text.into(), place: None }
    }

    /// An error at a place.
    pub fn at(text: impl Into<String>, source: &Rc<Source>, offset: usize) -> Fault {
        Fault { text: text.into(), place: Some(TextPosition { source: source.clone(), offset }) }
    }

    /// Sets the place unless it is known; the innermost place counts.
    pub fn or_at(mut self, source: &Rc<Source>, offset: usize) -> Fault {
        self.place.get_or_insert_with(|| TextPosition { source: source.clone(), offset });
        self
    }
}

impl From<bh_core::Error> for Fault {
    fn from(error: bh_core::Error) -> Fault {
        Fault::new(error.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else { return write!(f, "error: {}", self.text) };
        let (line, column) = place.line_column();
        let text = place.source.text.lines().nth(line - 1).unwrap_or("");
        let margin: String = text.chars().take(column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "{}:{line}:{column}: error: {}\n    {text}\n    {margin}^", place.source.name, self.text)
    }
}

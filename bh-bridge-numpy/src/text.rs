//! Python's texts that are made once.
//!
//! PyO3's lets go of the interpreter's lock while a thread makes one, so that a fork by another thread leaves the child a text
//! that nobody completes. Here a text is complete before it is kept.

use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::OnceLock;

/// A text, and Python's object for it once that was asked for.
pub struct Text {
    text: &'static str,
    made: OnceLock<Py<PyString>>,
}

impl Text {
    pub const fn new(text: &'static str) -> Text {
        Text { text, made: OnceLock::new() }
    }

    #[inline]
    pub fn get<'py>(&'static self, py: Python<'py>) -> &'py Bound<'py, PyString> {
        match self.made.get() {
            Some(made) => made.bind(py),
            None => self.make(py),
        }
    }

    #[cold]
    fn make<'py>(&'static self, py: Python<'py>) -> &'py Bound<'py, PyString> {
        let made = PyString::intern(py, self.text).unbind();
        self.made.get_or_init(|| made).bind(py)
    }
}

/// Python's object for a text in the source.
macro_rules! intern {
    ($py:expr, $text:expr) => {{
        static TEXT: $crate::text::Text = $crate::text::Text::new($text);
        TEXT.get($py)
    }};
}
pub(crate) use intern;

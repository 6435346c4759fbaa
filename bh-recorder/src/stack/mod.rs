//! The stack below the recorder, and what looks at batches before it runs them.

mod added;
pub(crate) mod backend;
pub(crate) mod checked;
pub(crate) mod digits;
pub(crate) mod dump;
pub(crate) mod narrowed;

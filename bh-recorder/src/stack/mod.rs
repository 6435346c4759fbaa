//! The stack below the recorder, and what looks at batches before it runs them.

pub(crate) mod backend;
pub(crate) mod checked;
pub(crate) mod dump;

//! A trace under way.

use crate::ArrayId;
use crate::sync::ThreadId;

/// A trace under way.
pub(crate) struct Trace {
    pub(crate) thread: ThreadId,
    /// Bases with smaller identities were there before.
    pub(crate) first: u64,
    /// Handles of data that the program gave meanwhile.
    pub(crate) kept: Vec<ArrayId>,
    /// Arrays from before that are to be freed afterwards.
    pub(crate) postponed: Vec<ArrayId>,
    /// Why there will be no recording.
    pub(crate) broken: Option<&'static str>,
}

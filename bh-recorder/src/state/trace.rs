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
    /// Why there can be no recording.
    pub(crate) broken: Option<&'static str>,
    /// Another thread has recorded into the batch, or has ended it: this call's operations are carried out, and not kept.
    pub(crate) disturbed: bool,
}

//! A batch that waits for what the next turn of the program's loop drops.

use crate::executor::Job;

/// A batch under construction no more.
pub(crate) struct Closed {
    pub(crate) job: Job,
    /// Its structure is written down already.
    pub(crate) signed: bool,
}

/// A batch that waits.
pub(crate) struct Waiting {
    pub(crate) closed: Closed,
    /// Instructions of a turn of the loop.
    pub(crate) turn: u64,
}

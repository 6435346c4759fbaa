//! One program for many members: a function that is recorded for one of them, and then runs for all with one more axis.
//!
//! A [`tape::MemberTape`] takes the operations whose results differ among the members out of the batches that it sees; the others
//! run as usual. A [`replay::Replay`] records what was taken out with the members as a first axis of every view.

mod operations;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod tape;

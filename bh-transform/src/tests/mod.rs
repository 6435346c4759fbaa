//! Reverse mode over random bytecode, with all views, in-place forms and several batches, against tangents without rules; the
//! page that lists the rules; programs for many members.

mod batch;
mod chains;
mod copies;
mod members;
mod oracle;
mod page;
mod programs;

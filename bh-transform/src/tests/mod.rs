//! Reverse mode over random bytecode, with all views, in-place forms and several batches, against tangents without rules.

mod batch;
mod chains;
mod oracle;
mod programs;

//! Derivatives of recorded programs, and programs that run for many members at once.
//!
//! A [`Taping`] keeps the batches of a stretch of a program as they run, with everything in them: in-place updates, views of
//! views, loops and branches as they went. It follows which arrays depend on the arguments, and keeps the values that the rules
//! of the operations read. The [`Pullback`] that it ends with records the adjoint program through the same recorder, so that it
//! is fused and runs like any other, and can be taped itself.
//!
//! [`Members`] keeps what a function records for one member, and records it for all of them with one more axis.
//!
//! Rules are a column of the opcode table: `rules/` has them by kinds of operations.

mod adjoints;
mod binomial;
mod bounded;
mod disk;
mod emit;
mod history;
mod identities;
mod levels;
mod members;
mod record;
mod reverse;
mod rewind;
mod rules;
mod shared;
mod tape;
#[cfg(test)]
mod tests;
mod units;

pub use bounded::Plan;
pub use disk::Disk;
pub use members::record::{Members, Results};
pub use record::{Pullback, Taping, Way, Window, shaped};

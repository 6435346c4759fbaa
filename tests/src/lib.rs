//! What the suites of `tests/` share: programs of other oracles, of loops and of ordinary users, and settings to run them with.

pub mod expressions;
pub mod hostile;
pub mod looped;
pub mod numpy;
pub mod ordinary;
pub mod settings;
pub mod writer;

pub use bh_conformance::{cases, conformance, data, manners, program, random, run, stacks};

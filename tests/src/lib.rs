//! Shared by the suites in `tests/`: programs for other oracles, of loops and of ordinary users, and configurations to
//! run them with.

pub mod expressions;
pub mod hostile;
pub mod looped;
pub mod numpy;
pub mod ordinary;
pub mod quick;
pub mod settings;
pub mod writer;

pub use bh_conformance::{cases, conformance, data, manners, program, random, run, stacks};

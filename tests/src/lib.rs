//! The suites that every stack and engine must pass: conformance, random programs, and NumPy as a second oracle.
//!
//! The library half is what `bh check-engine` runs on anyone's engine; `tests/` holds the suites themselves.

pub mod cases;
pub mod conformance;
pub mod data;
pub mod expressions;
pub mod hostile;
pub mod looped;
pub mod manners;
pub mod numpy;
pub mod ordinary;
pub mod program;
pub mod random;
pub mod run;
pub mod settings;
pub mod stacks;
pub mod writer;

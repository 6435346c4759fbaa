//! Requirements for every stack and engine: the conformance suite, random programs, and the rules of conduct that `bh
//! check-engine` tests on any engine.

pub mod cases;
pub mod conformance;
pub mod data;
pub mod manners;
pub mod program;
pub mod random;
pub mod run;
pub mod stacks;

//! The cost of planning: families of programs of any length, and the stages that plan them, to be timed (`main.rs`) or
//! counted (`tests/work.rs`).

mod algebra;
pub mod families;
mod grids;
pub mod stages;
mod writer;

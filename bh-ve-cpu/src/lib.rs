//! The CPU vector engine.

pub mod math;
mod portable;
pub mod simd;

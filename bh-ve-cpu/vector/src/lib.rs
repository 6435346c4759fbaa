//! Vector mathematics and block primitives for every instruction-set level, chosen at run time.
//!
//! A crate of its own so that work on the engine does not compile them again.

pub mod math;
pub mod prims;
pub mod simd;
pub mod text;

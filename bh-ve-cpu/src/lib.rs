//! The CPU vector engine: runs fused kernels block by block on all cores.
//!
//! A batch's blocks and sliding windows become programs (`plan`), which are block operations on a loop nest (`block`) whose
//! lines and fold trees `shape` decides; `native` has hot ones compiled, and `exec` runs them. `programs` runs
//! scalar programs.

mod affinity;
mod block;
mod domains;
mod engine;
mod exec;
mod native;
mod plan;
mod primitives;
mod processors;
mod programs;
mod settings;

pub use bh_vector::{math, prims, simd};
pub use engine::Engine;
pub use plan::plan_blocks;

bh_core::export_component!(Engine);

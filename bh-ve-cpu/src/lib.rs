//! The CPU vector engine: runs fused kernels block by block on all cores.

mod affinity;
mod cache;
mod engine;
mod plan;
mod primitives;
mod program;
mod run;
mod settings;
mod special;
mod sweep;
mod tier1;

pub use bh_vector::{math, prims, simd};
pub use engine::Engine;
pub use plan::plan_blocks;

bh_core::export_component!(Engine);

//! The CPU vector engine: runs fused kernels block by block on all cores.

mod cache;
mod engine;
pub mod math;
mod neutral;
mod plan;
mod primitives;
pub mod prims;
mod program;
mod run;
mod settings;
pub mod simd;
mod special;

pub use engine::Engine;

bh_core::export_component!(Engine);

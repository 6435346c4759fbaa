//! The OpenCL engine: kernels of a batch become OpenCL C, and arrays live on the device until somebody needs them
//! elsewhere.

mod arrays;
mod attachment;
mod code;
mod device;
mod engine;
mod launch;
mod memory;
mod methods;
mod moves;
mod plan;
mod programs;
mod settings;
mod staging;
mod start;

pub use code::text_of;
pub use engine::Engine;

bh_core::export_component!(Engine);

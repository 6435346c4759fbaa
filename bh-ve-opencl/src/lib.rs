//! The OpenCL engine: kernels of a batch become OpenCL C, and arrays live on the device until somebody needs them
//! elsewhere.

mod arrays;
mod attachment;
mod borrowed;
mod chains;
mod code;
mod company;
mod compiler;
mod counters;
mod device;
mod engine;
mod explain;
mod foretell;
mod gpu;
mod held;
mod launch;
mod memory;
mod methods;
mod moves;
mod moving;
mod parted;
mod pieces;
mod plan;
mod programs;
mod regions;
mod running;
mod settings;
mod shared;
mod staging;
mod start;
mod steps;
mod stream;
mod timing;
mod tune;
mod whereabouts;
mod work;

pub use code::text_of;
pub use engine::Engine;

bh_core::export_component!(Engine);

//! The engine of devices: kernels of a batch become texts of one dialect, and arrays live on the device until somebody needs
//! them elsewhere. A library of a driver makes it a component: it implements [`driver::Platform`] and exports [`Engine`] of that.

mod arrays;
mod attachment;
mod chains;
mod code;
mod company;
mod compiler;
mod counters;
pub mod device;
pub mod driver;
mod engine;
mod explain;
mod filled;
mod foretell;
mod forms;
mod functions;
mod gpu;
mod graphs;
mod held;
pub mod language;
mod launch;
mod memory;
mod methods;
mod moves;
mod offers;
mod parted;
mod pieces;
mod plan;
mod prepared;
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

pub use engine::Engine;

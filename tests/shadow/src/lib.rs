//! The shadow engine behaves like a graphics processor without being one. Its arrays are on a private heap of limited
//! size, which only transfers reach. It works behind tickets on its own thread, fails according to a script, and
//! refuses blocks at random.

mod bytes;
mod engine;
mod heap;
mod job;
mod outside;
mod residency;
mod script;
mod slot;

pub use engine::Shadow;
pub use outside::MEMORY;

bh_core::export_component!(Shadow);

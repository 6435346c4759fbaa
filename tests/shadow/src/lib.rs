//! The shadow engine: the manners of a graphics processor without one. It keeps arrays on a private heap of limited size
//! that only transfers reach, works behind tickets on a thread of its own, fails where a script says so, and refuses blocks
//! at random.

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

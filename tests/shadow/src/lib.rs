//! The shadow engine: the manners of a graphics processor without one. It keeps arrays on a private heap that only
//! transfers reach, works behind the caller's back on a thread of its own, fails where a script says so, and refuses
//! blocks at random.

mod engine;
mod queue;
mod script;
mod slot;

pub use engine::Shadow;

bh_core::export_component!(Shadow);

//! Batches: the one under construction, when it ends, and those that are kept to run again.

pub(crate) mod builder;
mod enter;
pub(crate) mod intern;
mod limit;
pub(crate) mod period;
pub(crate) mod recipes;
pub(crate) mod recording;
pub(crate) mod slots;
pub(crate) mod submit;
pub(crate) mod tape;
pub(crate) mod trace;
pub(crate) mod waiting;

//! Array handles, and the views that they are.

pub(crate) mod handle;
pub(crate) mod later;
mod lifetimes;
pub(crate) mod part;
pub(crate) mod shape;
pub(crate) mod slab;
pub(crate) mod small_view;

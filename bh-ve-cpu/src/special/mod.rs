//! Operations with algorithms of their own: running folds and scatters.

mod accumulate;
mod scatter;

pub(crate) use accumulate::accumulate;
pub(crate) use bh_methods::{Strided, Walk};
pub(crate) use scatter::scatter;

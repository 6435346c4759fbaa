//! The split manager: two ranks in one process, each a child stack with its own address space. Arrays are cut by rows.
//! Elementwise work on arrays with equal cuts is split, and all other operations run on one rank. It tests splitting,
//! residency and errors without a cluster.

mod cut;
mod local;
mod pieces;
mod split;
mod wire;

pub use split::Split;

bh_core::export_component!(Split);

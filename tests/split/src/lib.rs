//! The split manager: two ranks in one process, each a child stack with its own address space. Arrays are cut by rows;
//! elementwise work on arrays that are cut alike is split, and everything else is brought to one rank. It exercises
//! splitting, residency and errors without a cluster.

mod cut;
mod local;
mod pieces;
mod split;
mod wire;

pub use split::Split;

bh_core::export_component!(Split);

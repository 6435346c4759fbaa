//! Partitions bytecode into kernels.
//!
//! The component ([`Fuser`]) sits between the filter and the data manager. Its library half is also of use alone:
//! [`Partitioner`], [`draw`] and [`explain`] for tools.

mod assign;
mod blocks;
pub mod cache;
mod component;
mod components;
pub mod cost;
mod deps;
pub mod draw;
mod emit;
mod entry;
pub mod explain;
mod facts;
mod fuse;
mod greedy;
mod legality;
mod lists;
mod notes;
mod optimal;
pub mod options;
mod order;
mod persist;
mod places;
mod price;
mod relation;
mod relations_key;
mod rename;
#[cfg(test)]
mod simulate;
mod sink;
#[cfg(test)]
mod tests;
mod unintrusive;

pub use component::Fuser;
pub use emit::Partition;
pub use fuse::Partitioner;
pub use legality::Reason;
pub use notes::Notes;
pub use options::{Algorithm, Legality, Options};
pub use price::{Price, price};

bh_core::export_component!(Fuser);

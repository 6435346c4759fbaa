//! The cluster manager: splits arrays and work over ranks.
//!
//! Every rank has the same planner and feeds it the same programs, so each knows what all of them own, need and do
//! ([`planner`]). The plan is a list of stages ([`stage`]): first elements move, one message from rank to rank, then every
//! rank runs a batch on its own stack. [`machine`] runs stages over a [`transport`].

mod align;
mod array;
mod boxes;
mod cluster;
mod command;
mod exchange;
mod fetch;
mod figures;
mod file;
mod fold;
mod grid;
mod inprocess;
mod launch;
mod layout;
mod lead;
mod local;
mod machine;
mod memory;
mod operate;
#[cfg(debug_assertions)]
mod order;
mod overlap;
mod panels;
mod planner;
mod plans;
mod product;
mod remote;
mod run;
mod serve;
mod stage;
mod staging;
mod transport;
#[cfg(debug_assertions)]
mod versions;
mod wire;
mod wishes;

pub use cluster::Cluster;

bh_core::export_component!(Cluster);

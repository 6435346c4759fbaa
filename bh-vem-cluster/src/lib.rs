//! The cluster manager: splits arrays and work over ranks.
//!
//! Every rank has the same planner and feeds it the same programs, so each knows what all ranks own, need and compute
//! ([`plan`]). A plan is a list of stages ([`plan::stage`]): first elements move, one message from rank to rank, then
//! every rank runs a batch on its own stack. [`run`] executes plans over a [`transport`]. Rank 0 runs the program, and
//! is the [`coordinator`] of the other processes, to which it sends [`command`]s.

mod cluster;
mod command;
mod coordinator;
mod plan;
mod run;
mod transport;

pub use cluster::front::Front;

/// The component's name in configurations.
const NAME: &str = "vem-cluster";

bh_core::export_component!(Front);

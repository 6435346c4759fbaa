//! The cluster manager: splits arrays and work over ranks.
//!
//! Every rank has the same planner and feeds it the same programs, so each knows what all of them own, need and do
//! ([`plan`]). The plan is a list of stages ([`plan::stage`]): first elements move, one message from rank to rank, then every
//! rank runs a batch on its own stack. [`run`] does that over a [`transport`]. Rank 0 has the program: it [`lead`]s the other
//! processes by [`command`]s.

mod cluster;
mod command;
mod lead;
mod plan;
mod run;
mod transport;

pub use cluster::front::Front;

/// The component's name in configurations.
const NAME: &str = "vem-cluster";

bh_core::export_component!(Front);

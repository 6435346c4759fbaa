//! Runs plans on this process's ranks.

mod adopted;
pub mod call;
pub mod called;
mod columns;
pub mod counters;
mod direct;
mod exchange;
pub mod execute;
pub mod file;
pub mod file_region;
mod keys;
pub mod local;
pub mod machine;
pub mod map_copy;
mod peer_copy;
pub mod programs;
mod rebalance;
mod regrid;
mod scan;
mod search;
pub mod shares;
mod sort_select;
mod sort_within;
pub mod tune;
pub mod views;

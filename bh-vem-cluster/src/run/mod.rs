//! Runs what is planned for the ranks of this process.

pub mod call;
pub mod called;
mod carry;
mod columns;
mod dealing;
mod direct;
pub mod execute;
pub mod figures;
pub mod file;
mod heed;
mod homes;
mod keys;
pub mod local;
pub mod machine;
pub mod programs;
pub mod region;
mod regrid;
mod rooms;
mod scan;
mod search;
pub mod shares;
pub mod staging;
pub mod tune;
pub mod views;
mod wishes;

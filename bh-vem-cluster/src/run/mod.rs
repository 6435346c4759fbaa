//! Runs what is planned for the ranks of this process.

pub mod call;
pub mod execute;
pub mod figures;
pub mod file;
pub mod local;
pub mod machine;
pub mod programs;
pub mod region;
pub mod staging;
pub mod views;
mod wishes;

//! Tests of the cluster manager. `cargo xtask test` runs this program once per test.

mod columns;
mod grids;
mod indices;
mod launched;
mod launcher;
mod methods;
mod programs;
mod shares;
mod single_rank;
mod suites;
mod support;
mod traffic;

//! The manager of ranks. One program, which `cargo xtask test` runs test by test.

mod alone;
mod columns;
mod grids;
mod indices;
mod launched;
mod launcher;
mod methods;
mod programs;
mod shares;
mod suites;
mod support;
mod traffic;

//! Tests of the program `bh`. `cargo xtask test` runs this program once per test.

mod check;
mod check_engine;
mod report;

//! The program `bh`. One program, which `cargo xtask test` runs test by test.

mod check;
mod check_engine;
mod report;

//! The filter as a component. One program, which `cargo xtask test` runs test by test.

mod losses;
mod pieces;
mod random_programs;

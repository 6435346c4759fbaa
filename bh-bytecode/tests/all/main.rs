//! The crate's behaviour, seen from outside. One program, which `cargo xtask test` runs test by test.

mod c_expressions;
mod views;

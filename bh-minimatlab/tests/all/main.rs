//! Tests of the program `minimatlab`. `cargo xtask test` runs this program once per test.

mod octave;
mod program;
mod programs;
mod support;

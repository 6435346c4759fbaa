//! The program `minimatlab`. One program, which `cargo xtask test` runs test by test.

mod octave;
mod program;
mod programs;
mod support;

//! The processor's engine, seen from outside. One program, which `cargo xtask test` runs test by test.

mod allocations;
mod direct;
mod engine;
mod factorisations;
mod plans;
mod products;
mod random_programs;
mod renames;
mod same_bits;
mod support;
mod threads;
mod windows;

//! The engine of OpenCL devices. One program, which `cargo xtask test` runs test by test.

mod counting;
mod engine;
mod factors;
mod folds;
mod library;
mod methods;
mod products;
mod suites;
mod support;

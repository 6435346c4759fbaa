//! Primitives, beside what they are compared with. One program, which `cargo xtask test` runs test by test.

mod accuracy;
mod bits;
mod complex_accuracy;
mod primitives;
mod reference;

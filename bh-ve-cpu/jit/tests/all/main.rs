//! Compiled kernels, beside what they are compared with. One program, which `cargo xtask test` runs test by test.

mod complex_numbers;
mod neon;
mod pair;
mod quotients;
mod same_bits;
mod strides;
#[path = "../../../tests/all/support/mod.rs"]
mod support;
mod whole_numbers;

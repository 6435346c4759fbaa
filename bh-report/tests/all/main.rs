//! The page of a report. One program, which `cargo xtask test` runs test by test.

mod live;
mod page;

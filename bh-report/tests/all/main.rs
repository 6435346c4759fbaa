//! Tests of the report's page. `cargo xtask test` runs this program once per test.

mod live;
mod page;

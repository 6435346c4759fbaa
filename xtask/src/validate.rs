//! `cargo xtask validate`: what a change must pass, cheapest first.

use crate::command::{Outcome, cargo, run as execute};
use crate::{header, test};

/// Runs the checks and stops at the first that fails.
pub fn run(_: &[String]) -> Outcome {
    execute(cargo().args(["fmt", "--all", "--check"]))?;
    execute(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    header::run(&["--check".into()])?;
    test::run(&[])
}

//! `cargo xtask validate`: what a change must pass, cheapest first.

use crate::command::{Outcome, cargo, run as execute};
use crate::{header, packages, test};

/// Runs the checks and stops at the first that fails.
pub fn run(_: &[String]) -> Outcome {
    execute(cargo().args(["fmt", "--all", "--check"]))?;
    packages::ensure_llvm();
    let mut clippy = cargo();
    clippy.arg("clippy").args(packages::workspace()).args(["--all-targets", "--", "-D", "warnings"]);
    execute(&mut clippy)?;
    header::run(&["--check".into()])?;
    test::run(&[])
}

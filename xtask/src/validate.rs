//! `cargo xtask validate`: what a change must pass, cheapest first.

use crate::command::{Outcome, cargo, run as execute};
use crate::{packages, phrases, test};

/// Runs the checks and stops at the first that fails. The tests look at generated files, too.
pub fn run(_: &[String]) -> Outcome {
    execute(cargo().args(["fmt", "--all", "--check"]))?;
    phrases::check()?;
    packages::ensure_llvm();
    // The profile of the tests, so that programs of the build are made once.
    let mut clippy = cargo();
    clippy.args(["clippy", "--profile", test::PROFILE]).args(packages::workspace());
    clippy.args(["--all-targets", "--", "-D", "warnings"]);
    execute(&mut clippy)?;
    test::run(&[])
}

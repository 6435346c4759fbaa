//! `cargo xtask header [--check]`: what is generated from the tables of operations, slots and keys: C and C++ headers, what the
//! .NET library has of them, reference pages, the default configuration.

use crate::command::{Outcome, cargo, root, run as execute, target};
use std::process::Command;

/// Writes the files, or verifies that the checked-in ones are current.
pub fn run(arguments: &[String]) -> Outcome {
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", "checked", "-p", "bh-header", "--"]);
    if is_check(arguments) {
        command.arg("--check");
    }
    execute(&mut command)?;
    dotnet(is_check(arguments))
}

/// Verifies the checked-in files with the program that a build of the whole workspace has made.
pub fn check_built(profile: &str) -> Outcome {
    execute(Command::new(target().join(profile).join("bh-header")).arg("--check").current_dir(root()))?;
    dotnet(true)
}

fn is_check(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == "--check")
}

fn dotnet(check: bool) -> Outcome {
    let mut command = Command::new("python3");
    command.arg("bh-bridge-cil/generate.py").current_dir(root());
    if check {
        command.arg("--check");
    }
    execute(&mut command)
}

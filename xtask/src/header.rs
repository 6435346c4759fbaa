//! `cargo xtask header [--check]`: the C headers, generated from the bridge, the component interface and the opcode table, and
//! what the .NET library has of them.

use crate::command::{Outcome, cargo, root};
use std::process::Command;

/// Writes the headers, or verifies that the checked-in ones are current.
pub fn run(arguments: &[String]) -> Outcome {
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", "checked", "-p", "bh-header", "--"]);
    let mut dotnet = Command::new("python3");
    dotnet.arg("bh-bridge-cil/generate.py").current_dir(root());
    if arguments.iter().any(|argument| argument == "--check") {
        command.arg("--check");
        dotnet.arg("--check");
    }
    crate::command::run(&mut command)?;
    crate::command::run(&mut dotnet)
}

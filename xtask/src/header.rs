//! `cargo xtask header [--check]`: the C headers, generated from the bridge, the component interface and the opcode table.

use crate::command::{Outcome, cargo};

/// Writes the headers, or verifies that the checked-in ones are current.
pub fn run(arguments: &[String]) -> Outcome {
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", "checked", "-p", "bh-header", "--"]);
    if arguments.iter().any(|argument| argument == "--check") {
        command.arg("--check");
    }
    crate::command::run(&mut command)
}

//! `cargo xtask header [--check]`: the C header, generated from the bridge and the opcode table.

use crate::command::{Failure, Outcome, cargo, root};
use std::fs;

/// Writes the header, or verifies that the checked-in one is current.
pub fn run(arguments: &[String]) -> Outcome {
    let check = arguments.iter().any(|argument| argument == "--check");
    let mut command = cargo();
    command.args(["run", "--quiet", "-p", "bh-bridge-c", "--bin", "bh-header"]);
    let text = crate::command::output(&mut command)?;
    let path = root().join("bh-bridge-c/include/bh.h");
    if !check {
        fs::write(&path, text)?;
        return Ok(());
    }
    if fs::read_to_string(&path).is_ok_and(|current| current == text) {
        return Ok(());
    }
    Err(Failure(format!("{} is not current; run `cargo xtask header`", path.display())))
}

//! `cargo xtask miri`: tests under Miri, which finds undefined behaviour in what `unsafe` code they reach. Miri loads no
//! libraries, knows no inline assembly (which the recorder's threads read floating-point flags by), and takes a hundred times the
//! time; so it runs a choice of the unit tests of crates that work on raw memory.

use crate::command::{Outcome, root, run as execute, target};
use std::process::Command;

/// Crates, and the tests of each by parts of their names; all without one.
const TESTS: &[(&str, &[&str])] =
    &[("bh-vem-node", &[]), ("bh-vector", &["repeat::", "moves::generators"]), ("bh-recorder", &["handoff::"])];

/// Installs Miri for the nightly toolchain and runs the tests.
pub fn run(_: &[String]) -> Outcome {
    let mut install = Command::new("rustup");
    execute(install.args(["component", "add", "miri", "rust-src", "--toolchain", "nightly"]))?;
    TESTS.iter().try_for_each(|(package, names)| {
        let mut miri = Command::new("cargo");
        miri.current_dir(root()).args(["+nightly", "miri", "test", "-p", package, "--lib", "--"]).args(*names);
        // Pointers of the C interface come from numbers; clocks and files are the host's.
        miri.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance");
        execute(miri.env("CARGO_TARGET_DIR", target().join("miri")))
    })
}

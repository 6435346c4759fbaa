//! `cargo xtask miri`: tests under Miri, which finds undefined behaviour in what `unsafe` code they reach. Miri loads no
//! libraries, knows no inline assembly (which the recorder's threads read floating-point flags by), and takes a hundred times the
//! time; so it runs a choice of the tests of crates that work on raw memory.

use crate::command::{Outcome, root, run as execute, target};
use std::process::Command;

/// Crates, which of their programs have the tests, and these by parts of their names; all without one.
const TESTS: &[(&str, &[&str], &[&str])] = &[
    ("bh-vem-node", &["--lib"], &[]),
    ("bh-vector", &["--lib", "--test", "all"], &["repeat::", "moves::generators"]),
    ("bh-recorder", &["--lib"], &["handoff::"]),
];

/// Installs Miri for the nightly toolchain and runs the tests.
pub fn run(_: &[String]) -> Outcome {
    let mut install = Command::new("rustup");
    execute(install.args(["component", "add", "miri", "rust-src", "--toolchain", "nightly"]))?;
    TESTS.iter().try_for_each(|(package, programs, names)| {
        let mut miri = Command::new("cargo");
        miri.current_dir(root())
            .args(["+nightly", "miri", "test", "-p", package])
            .args(*programs)
            .arg("--")
            .args(*names);
        // Pointers of the C interface come from numbers; clocks and files are the host's.
        miri.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance");
        execute(miri.env("CARGO_TARGET_DIR", target().join("miri")))
    })
}

//! `cargo xtask cross-check` and `cargo xtask cross-test [CRATE...]`: bh for AArch64 Linux, checked, built and tested on x86-64.

mod prefix;

use crate::command::{Outcome, run, target};
use crate::packages::{self, COMPILER, FEATURES};
use crate::test::PROFILE;
use prefix::Prefix;

/// The machine that is built for.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Crates whose tests run without a choice, and which of their tests; all without a filter. An emulator takes ten times the time.
const SUITES: &[(&str, Option<&str>)] = &[
    ("bh-bytecode", None),
    ("bh-kernel", None),
    ("bh-scalar", None),
    ("bh-fuser", None),
    ("bh-filter", None),
    ("bh-recorder", None),
    ("bh-vem-node", None),
    ("bh-methods", None),
    ("bh-vector", None),
    ("bh-ve-cpu", None),
    ("bh-tests", Some("test(/^(conformance::cpu|levels::)/)")),
];

/// Runs the command line `cross-check`: all crates, their tests and examples.
pub fn check(_: &[String]) -> Outcome {
    let prefix = Prefix::ready()?;
    println!("{}", prefix.compiler()?);
    let mut command = prefix.cargo();
    command.args(["check", "--profile", PROFILE, "--target", TARGET, "--all-targets"]);
    run(command.args(packages::workspace()))
}

/// Runs the command line `cross-test [CRATE...]`.
pub fn test(crates: &[String]) -> Outcome {
    let prefix = Prefix::ready()?;
    packages::ensure_nextest()?;
    if crates.is_empty() {
        return SUITES.iter().try_for_each(|(package, filter)| suite(&prefix, package, *filter));
    }
    crates.iter().try_for_each(|package| suite(&prefix, package, None))
}

/// Builds the tests of a crate with the components that they load, and runs them.
fn suite(prefix: &Prefix, package: &str, filter: Option<&str>) -> Outcome {
    if package == "bh-tests" {
        let mut build = prefix.cargo();
        build.args(["build", "--profile", PROFILE, "--target", TARGET, "--lib", "-p", FEATURES]);
        let tests = ["bh-ve-interp"];
        let libraries = crate::artifacts::libraries().into_iter().filter(|name| *name != COMPILER).chain(tests);
        run(build.args(libraries.flat_map(|name| ["-p", name])))?;
    }
    let mut command = prefix.cargo();
    command.args(["nextest", "run", "--cargo-profile", PROFILE, "--target", TARGET, "-p", package, "-p", FEATURES]);
    command.args(["--no-tests", "pass"]);
    if let Some(filter) = filter {
        command.args(["-E", filter]);
    }
    run(command.env("BH_TEST_LIBRARIES", target().join("cross").join(TARGET).join(PROFILE)))
}

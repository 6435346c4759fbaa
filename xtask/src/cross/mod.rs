//! `cargo xtask cross-check` and `cargo xtask cross-test [CRATE...]`: bh for AArch64 Linux, checked, built and tested on x86-64.

mod prefix;
mod python;

use crate::artifacts;
use crate::command::{Failure, Outcome, run, target};
use crate::older::Linker;
use crate::packages::{self, FEATURES};
use crate::table::{Counts, Table, run_tests};
use crate::test::PROFILE;
use prefix::Prefix;
pub use python::wheel;
use std::path::PathBuf;
use std::time::Instant;

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
    ("bh-ve-cpu-jit", None),
    ("bh-tests", Some("test(/^(conformance::cpu|levels::)/)")),
    (PYTHON, None),
];

/// How many random programs suites run that can run fewer.
const PROGRAMS: &str = "20";

/// Stands for Python's tests of the core among the crates.
const PYTHON: &str = "python";

/// Runs the command line `cross-check`: the lints of all crates, their tests and examples.
pub fn check(_: &[String]) -> Outcome {
    let prefix = Prefix::ready()?;
    println!("{}", prefix.compiler()?);
    let mut command = prefix.cargo();
    command.args(["check", "--profile", PROFILE, "--target", TARGET, "--all-targets"]).args(packages::workspace());
    // The variables that `cargo clippy` sets for its driver.
    command.env("RUSTC_WORKSPACE_WRAPPER", prefix.lints()).env("CLIPPY_ARGS", "-Dwarnings");
    run(&mut command)
}

/// The table of results.
const TABLE: Table = Table { page: "docs/tests.md", header: "| suite | passed | failed | skipped |", keys: 1 };

/// Runs the command line `cross-test [CRATE...] [--write]`: all suites run even if some fail.
pub fn test(arguments: &[String]) -> Outcome {
    let prefix = Prefix::ready()?;
    packages::ensure_nextest()?;
    let known = |name: &String| SUITES.iter().find(|(package, _)| package == name).copied();
    let crates: Vec<&String> = arguments.iter().filter(|argument| *argument != "--write").collect();
    let chosen = crates.iter().map(|name| known(name).unwrap_or((name, None)));
    let suites: Vec<(&str, Option<&str>)> = if crates.is_empty() { SUITES.to_vec() } else { chosen.collect() };
    let (mut failed, mut rows) = (Vec::new(), Vec::new());
    for (package, filter) in suites {
        let begin = Instant::now();
        let outcome = if package == PYTHON { python::test(&prefix) } else { suite(&prefix, package, filter) };
        let (passed, counts) = outcome.unwrap_or_else(|failure| {
            eprintln!("xtask: {failure}");
            (false, None)
        });
        let word = if passed { "passed" } else { "failed" };
        println!("{package}: {word} after {} s, {counts:?}", begin.elapsed().as_secs());
        if !passed {
            failed.push(package);
        }
        let cells = counts.into_iter().flatten().map(|count| count.to_string());
        rows.extend(counts.is_some().then(|| std::iter::once(format!("`{package}`")).chain(cells).collect()));
    }
    if arguments.iter().any(|argument| argument == "--write") {
        TABLE.write(&rows)?;
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure(format!("failed: {}", failed.join(", ")))) }
}

/// Where a build for the other machine leaves its results.
fn built(profile: &str) -> PathBuf {
    target().join("cross").join(TARGET).join(profile)
}

/// Builds the libraries of an installation, and the libraries and programs of the crates `others`.
fn build_libraries(prefix: &Prefix, profile: &str, others: &[&str], linker: Option<&Linker>) -> Outcome {
    let mut build = prefix.cargo();
    if let Some(linker) = linker {
        linker.set(&mut build);
    }
    build.args(["build", "--profile", profile, "--target", TARGET, "--lib", "--bins", "-p", FEATURES]);
    let libraries = artifacts::libraries().into_iter().chain(others.iter().copied());
    run(build.args(libraries.flat_map(|name| ["-p", name])))
}

/// Builds the tests of a crate with the components that they load, and runs them.
fn suite(prefix: &Prefix, package: &str, filter: Option<&str>) -> Outcome<(bool, Option<Counts>)> {
    if package == "bh-tests" {
        build_libraries(prefix, PROFILE, &["bh-ve-interp"], None)?;
    }
    let mut command = prefix.cargo();
    command.args(["nextest", "run", "--cargo-profile", PROFILE, "--target", TARGET, "-p", package, "-p", FEATURES]);
    command.args(["--no-tests", "pass", "--no-fail-fast"]);
    if let Some(filter) = filter {
        command.args(["-E", filter]);
    }
    if std::env::var_os("BH_TEST_PROGRAMS").is_none() {
        command.env("BH_TEST_PROGRAMS", PROGRAMS);
    }
    run_tests(command.env("BH_TEST_LIBRARIES", built(PROFILE)))
}

//! Tests in Rust, run by nextest: each in a process of its own, several at the same time.

use super::choice::{Choice, Run};
use super::{PROFILE, Places};
use crate::command::{Outcome, cargo, run as execute, target};
use crate::{artifacts, packages};
use std::path::PathBuf;
use std::process::Command;

/// Builds all that is tested, in one build.
pub fn build_all(profile: &str) -> Outcome {
    let mut build = cargo();
    build.args(["build", "--profile", profile, "--lib", "--bins", "--tests", "--examples"]);
    execute(build.args(packages::workspace()))
}

/// Builds the libraries and programs that the chosen tests load.
pub fn build(profile: &str, choice: &Choice) -> Outcome {
    if !choice.needs_libraries() {
        return Ok(());
    }
    let mut crates = artifacts::libraries();
    crates.extend(["bh-bridge-c", "bh-cli", "bh-minimatlab", "bh-ve-interp", packages::FEATURES]);
    if !choice.python.is_empty() {
        crates.push("bh-bridge-numpy");
    }
    artifacts::build_crates(profile, &crates)?;
    Ok(())
}

/// Runs all tests; also where their report is.
pub fn run_all(places: &Places) -> (Outcome, PathBuf) {
    let mut command = nextest(places);
    command.args(packages::workspace());
    (execute(&mut command), report())
}

/// Runs the tests of one crate that match.
pub fn run(run: &Run, places: &Places) -> (Outcome, PathBuf) {
    let mut command = nextest(places);
    command.args(["-p", &run.package, "-p", packages::FEATURES, "--no-tests", "pass"]).args(&run.targets);
    if let Some(filter) = &run.filter {
        command.args(["-E", filter]);
    }
    (execute(&mut command), report())
}

/// Examples in the documentation, which nextest leaves out; bh-core has all there are.
pub fn documentation() -> Outcome {
    execute(cargo().args(["test", "-q", "--profile", PROFILE, "--doc", "-p", "bh-core", "-p", packages::FEATURES]))
}

fn nextest(places: &Places) -> Command {
    let mut command = cargo();
    command.args(["nextest", "run", "--cargo-profile", PROFILE]);
    command.env("BH_TEST_PREFIX", &places.prefix).env("BH_TEST_PYTHON", &places.python);
    command.env("BH_TEST_LIBRARIES", target().join(PROFILE));
    if places.all {
        command.env("BH_TEST_OPENCL", "all").env("BH_TEST_ALL", "1");
    }
    command
}

fn report() -> PathBuf {
    target().join("nextest/default/junit.xml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::output;
    use std::collections::BTreeSet;

    /// Dependencies with their features, as cargo would build them for these crates.
    fn dependencies(choice: &[&str]) -> BTreeSet<String> {
        let mut tree = cargo();
        tree.args(["tree", "--offline", "-e", "normal,build,dev", "--prefix", "none", "--no-dedupe", "-f", "{p} {f}"]);
        let lines = output(tree.args(choice)).unwrap();
        lines.lines().filter(|line| !line.contains("(/")).map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn a_choice_of_crates_has_the_features_of_the_whole_workspace() {
        let whole = dependencies(&["--workspace"]);
        for package in [
            "bh-bytecode",
            "bh-core",
            "bh-device",
            "bh-recorder",
            "bh-ve-cpu",
            "bh-ve-opencl",
            "bh-vem-cluster",
            "bh-tests",
        ] {
            let own = dependencies(&["-p", package, "-p", packages::FEATURES]);
            let others: Vec<&String> = own.difference(&whole).collect();
            assert!(
                others.is_empty(),
                "{package}: the manifest of {} misses features of {others:?}",
                packages::FEATURES
            );
        }
    }
}

//! `cargo xtask stage`: what a machine without cargo needs to test and measure the engines of devices, in the ignored folder
//! `.stage` of the repository: an installation, test programs and the benchmark programs of `benches/device.py`.

use crate::command::{Failure, Outcome, cargo, option, output, root, run as execute};
use crate::{artifacts, install};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The packages with the suites that run on a device; each has one program.
const PACKAGES: &[&str] = &["bh-ve-opencl", "bh-tests"];

/// The libraries that the stacks of a device and the suites load; none needs more than a plain system has.
const LIBRARIES: &[&str] = &[
    "bh-filter",
    "bh-fuser",
    "bh-vem-node",
    "bh-vem-cluster",
    "bh-ve-cpu",
    "bh-ve-cuda",
    "bh-ve-opencl",
    "bh-ve-interp",
];

/// The limit of the staged files' compressed size.
const MOST_BYTES: usize = 64 << 20;

/// Stages everything; `--profile NAME` builds with another cargo profile than `release`.
pub fn run(arguments: &[String]) -> Outcome {
    let profile = option(arguments, "--profile")?.unwrap_or("release");
    let stage = root().join(".stage");
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    install::place(&artifacts::build(profile, LIBRARIES)?, &stage, LIBRARIES)?;
    for folder in ["share/doc", "share/bh/rust", "share/bh/engine-kit"] {
        let _ = fs::remove_dir_all(stage.join(folder));
    }
    let tests = stage.join("tests");
    fs::create_dir_all(&tests)?;
    for (name, program) in suites(profile)? {
        artifacts::copy(&program, &tests.join(name))?;
    }
    programs(&stage)?;
    fs::write(stage.join("commit"), output(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()))?)?;
    artifacts::strip(&stage)?;
    let bytes = compressed(&stage)?;
    println!("staged into {}: {:.1} MiB compressed", stage.display(), bytes as f64 / (1 << 20) as f64);
    if bytes > MOST_BYTES {
        return Err(Failure(format!("more than {} MiB cannot travel", MOST_BYTES >> 20)));
    }
    Ok(())
}

/// Builds the test programs; their names and files.
fn suites(profile: &str) -> Outcome<Vec<(String, PathBuf)>> {
    let mut build = cargo();
    build.args(["test", "--profile", profile, "--no-run", "--message-format=json-render-diagnostics"]);
    build.args(PACKAGES.iter().flat_map(|name| ["-p", name])).args(["--test", artifacts::TESTS]);
    let lines = output(&mut build)?;
    let messages = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let programs = messages.filter_map(|message| artifacts::test_program(&message));
    let found: Vec<_> = programs
        .filter(|(_, target, _)| target == artifacts::TESTS)
        .map(|(package, _, program)| (package, program))
        .collect();
    if found.len() < PACKAGES.len() {
        return Err(Failure(format!("of the suites of {PACKAGES:?} only {found:?} were built")));
    }
    Ok(found)
}

/// Compiles the benchmark programs that `benches/device.py` names.
fn programs(stage: &Path) -> Outcome {
    let names = output(Command::new("python3").arg(root().join("benches/device.py")).arg("--programs"))?;
    fs::create_dir_all(stage.join("benches"))?;
    for name in names.split_whitespace() {
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-O2", "-o"]).arg(stage.join("benches").join(name));
        compiler.arg(root().join("benches").join(name).join("bh.cpp"));
        compiler.arg(format!("-I{}", stage.join("include").display()));
        compiler.arg(format!("-L{}", stage.join("lib").display())).arg("-lbh_bridge_c");
        execute(&mut compiler)?;
    }
    Ok(())
}

/// Bytes of the folder as a compressed archive.
fn compressed(folder: &Path) -> Outcome<usize> {
    let mut archive = Command::new("tar");
    archive.args(["-czf", "-", "-C"]).arg(folder).arg(".").stderr(Stdio::inherit());
    let output = archive.output()?;
    if output.status.success() {
        Ok(output.stdout.len())
    } else {
        Err(Failure(format!("tar failed: {}", output.status)))
    }
}

//! `cargo xtask bench`: what the machinery and planning cost, what fusion gains, single statements and loops against NumPy, and
//! programs against their twins; ranks of a cluster against one.

use crate::command::{Failure, Outcome, cargo, option, output, root, run as execute, target};
use crate::{cil, cluster, demo, install, packages};
use std::path::Path;
use std::process::Command;

/// Runs `bench overhead`, `bench planning`, `bench fusion`, `bench statements [--small]`, `bench loops`, `bench cluster`, `bench python`,
/// `bench fronts`, or benchmark programs.
pub fn run(arguments: &[String]) -> Outcome {
    if arguments.first().is_some_and(|name| name == "planning") {
        return planning(&arguments[1..]);
    }
    if arguments.first().is_some_and(|name| name == "python") {
        return python("benches/python.py", &arguments[1..]);
    }
    if let [name, mode, rest @ ..] = arguments
        && name == "statements"
        && mode == "--small"
    {
        return python("benches/statements/small.py", rest);
    }
    if arguments.first().is_some_and(|name| name == "fronts") {
        return fronts(&arguments[1..]);
    }
    packages::ensure(&[("cc", "gcc"), ("g++", "g++"), ("pkg-config", "pkg-config")])?;
    let prefix = target().join("prefix");
    install::install(&prefix, "release")?;
    if arguments.first().is_some_and(|name| name == "overhead") {
        return overhead(&prefix, arguments);
    }
    if arguments.first().is_some_and(|name| name == "cluster") {
        return cluster::bench(&prefix, &arguments[1..]);
    }
    let python = packages::python_with_numpy()?;
    let mut command = Command::new(python);
    if arguments.first().is_some_and(|name| name == "fusion") {
        let example = ["build", "--release", "-p", "bh-fuser", "--example", "partition_costs"];
        execute(cargo().args(example))?;
        command.arg(root().join("benches/fusion.py")).args(&arguments[1..]);
        command.env("BH_PARTITION_COSTS", target().join("release/examples/partition_costs"));
        let times = target().join("partition-times.json");
        std::fs::write(&times, output(cargo().args(["bench", "-p", "bh-fuser", "--bench", "partition"]))?)?;
        command.env("BH_PARTITION_TIMES", times);
    } else if let Some(group) = arguments.first().filter(|name| ["statements", "loops"].contains(&name.as_str())) {
        command.arg(root().join(format!("benches/{group}.py"))).args(&arguments[1..]);
    } else {
        command.arg(root().join("benches/run.py")).args(arguments);
    }
    command.env("BH_PREFIX", &prefix).env("BH_BENCH_BUILD", target().join("benches"));
    execute(&mut command)
}

/// A program about the Python package: what recording and small work costs, or programs from their NumPy sources.
fn python(program: &str, arguments: &[String]) -> Outcome {
    execute(cargo().args(["build", "--release"]).args(packages::workspace()))?;
    let package = crate::python::stage("release")?;
    let mut command = Command::new(packages::python_with_numpy()?);
    command.arg(root().join(program)).args(arguments);
    execute(command.env("PYTHONPATH", package))
}

/// The papers' programs in .NET and MiniMatlab against their C++ versions.
fn fronts(arguments: &[String]) -> Outcome {
    cil::ensure_packages()?;
    execute(cargo().args(["build", "--release", "--lib", "--bins", "--examples"]).args(packages::workspace()))?;
    let mut command = Command::new("python3");
    command.arg(root().join("benches/fronts.py")).arg(target().join("release")).arg(target().join("cil/release"));
    execute(command.args(arguments))
}

/// Measures the cost of planning, stage by stage; nothing is installed.
fn planning(arguments: &[String]) -> Outcome {
    execute(cargo().args(["build", "--release", "-p", "bh-planning"]))?;
    let mut command = Command::new("python3");
    command.arg(root().join("benches/planning.py")).args(arguments);
    command.env("BH_PLANNING", target().join("release/bh-planning"));
    execute(&mut command)
}

/// The cost of recording, of a tiny round trip, of a repeated batch, and of start-up.
fn overhead(prefix: &Path, arguments: &[String]) -> Outcome {
    let program = target().join("overhead");
    demo::compile(prefix, &root().join("benches/overhead/bh.c"), &program)?;
    let text = output(&mut Command::new(program))?;
    print!("{text}");
    let figures: Result<serde_json::Value, _> = serde_json::from_str(&text);
    let figures = figures.map_err(|error| Failure(format!("the benchmark printed no JSON: {error}")))?;
    match option(arguments, "--json")? {
        Some(file) => Ok(std::fs::write(file, format!("{figures:#}\n"))?),
        None => Ok(()),
    }
}

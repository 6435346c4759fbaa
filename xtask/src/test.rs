//! `cargo xtask test [NAME...]` and `cargo xtask quick`: install what the tests need, build it, and run all tests or a choice.

mod choice;
mod outcome;
mod rust;
mod times;

use crate::command::{Failure, Outcome, target};
use crate::{artifacts, cil, cluster, header, install, packages, python};
use choice::Choice;
use outcome::Outcomes;
use std::path::PathBuf;

/// The cargo profile of everything under test: optimised, with debug assertions and overflow checks.
pub const PROFILE: &str = "checked";

/// Programs the tests call, with the Debian packages that have them.
const NEEDED: &[(&str, &str)] = &[
    ("cc", "gcc"),
    ("g++", "g++"),
    ("clang++", "clang"),
    ("cmake", "cmake"),
    ("make", "make"),
    ("pkg-config", "pkg-config"),
    ("valgrind", "valgrind"),
    ("python3", "python3"),
    ("/usr/include/doctest/doctest.h", "doctest-dev"),
    ("/usr/lib/x86_64-linux-gnu/libOpenCL.so.1", "ocl-icd-libopencl1"),
    ("/etc/OpenCL/vendors/pocl.icd", "pocl-opencl-icd"),
];

/// Python's tests of the core: what nearly every program calls.
pub const CORE: &[&str] = &[
    "test_registry",
    "test_at_hand",
    "test_functions",
    "test_indexing",
    "test_assignment",
    "test_ufuncs",
    "test_programs",
];

/// Where tests find what they run.
struct Places {
    /// An installation, as users have it.
    prefix: PathBuf,
    python: PathBuf,
    /// Also what takes hours: faults at every place, the whole suites of the OpenCL engine.
    all: bool,
}

/// Runs the tests that the arguments name, or all; with `--all`, faults are injected at every place, and the suites of the
/// OpenCL engine run as a whole, which takes hours where kernels are built slowly.
pub fn run(arguments: &[String]) -> Outcome {
    let all = arguments.iter().any(|argument| argument == "--all");
    let names: Vec<&str> = arguments.iter().map(String::as_str).filter(|argument| *argument != "--all").collect();
    if let Some(option) = names.iter().find(|name| name.starts_with('-')) {
        return Err(Failure(format!("test takes --all and names, not {option}")));
    }
    if names.is_empty() { whole(all) } else { chosen(&Choice::named(&names)?, all) }
}

/// Runs the unit tests, the conformance suite on the plain stack, and Python's core.
pub fn quick(_: &[String]) -> Outcome {
    chosen(&Choice::quick(CORE)?, false)
}

/// Everything in one build, then suite by suite; a suite that fails keeps no other one from running.
fn whole(all: bool) -> Outcome {
    packages::ensure(NEEDED)?;
    packages::ensure_llvm();
    packages::ensure_nextest()?;
    cluster::ensure_packages();
    let python = packages::python_with_numpy()?;
    // Beside the build, which leaves a core free at times: packages come from the network, and few crates need each other in turn.
    std::thread::scope(|scope| {
        scope.spawn(|| python::add_packages(&python, all));
        let libraries = scope.spawn(|| cluster::build_into(&target().join(PROFILE), None));
        rust::build_all(PROFILE)?;
        libraries.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let places = place(python, all)?;
    cluster::build_into(&places.prefix.join("lib/bh"), None)?;
    let mut outcomes = Outcomes::default();
    outcomes.add("generated files", header::check_built(PROFILE), &[]);
    let (result, report) = rust::run_all(&places);
    outcomes.add("Rust", result, &[report]);
    outcomes.add("documentation of Rust", rust::documentation(), &[]);
    let (result, reports) = python::test(&places.python, PROFILE);
    outcomes.add("Python", result, &reports);
    outcomes.add(".NET and MiniMatlab", cil::test(PROFILE, &places.prefix), &[]);
    times::write(outcomes.reports())?;
    outcomes.end()
}

/// Builds and runs what was chosen, and nothing else.
fn chosen(choice: &Choice, all: bool) -> Outcome {
    packages::ensure(NEEDED)?;
    packages::ensure_llvm();
    packages::ensure_nextest()?;
    let python = packages::python_with_numpy()?;
    rust::build(PROFILE, choice)?;
    let places = if choice.needs_libraries() { place(python, all)? } else { Places { prefix: prefix(), python, all } };
    let mut outcomes = Outcomes::default();
    for run in &choice.rust {
        let (result, report) = rust::run(run, &places);
        outcomes.add(&run.title(), result, &[report]);
    }
    if !choice.python.is_empty() {
        let (result, reports) = python::test_files(&places.python, PROFILE, &choice.python);
        outcomes.add("Python", result, &reports);
    }
    if choice.dotnet {
        outcomes.add(".NET and MiniMatlab", cil::test(PROFILE, &places.prefix), &[]);
    }
    outcomes.end()
}

fn prefix() -> PathBuf {
    target().join("test-prefix")
}

/// Installs what was built, as users have it.
fn place(python: PathBuf, all: bool) -> Outcome<Places> {
    install::place(&target().join(PROFILE), &prefix(), &artifacts::libraries())?;
    Ok(Places { prefix: prefix(), python, all })
}

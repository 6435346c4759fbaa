//! `cargo xtask test`: installs what the tests need and runs all of them.

use crate::command::{Outcome, cargo, run as execute, target};
use crate::{artifacts, cil, cluster, header, install, packages, python};

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

/// Runs the tests; with `--all`, faults are injected at every place, and the suites of the OpenCL engine run as a whole, which
/// takes hours where kernels are built slowly. Further arguments go to `cargo test`.
pub fn run(arguments: &[String]) -> Outcome {
    packages::ensure(NEEDED)?;
    packages::ensure_llvm();
    cluster::ensure_packages();
    let python = packages::python_with_numpy()?;
    // Everything in one build: a choice of crates has features of its own, and would be built a second time.
    let mut build = cargo();
    build.args(["build", "--profile", PROFILE, "--lib", "--bins", "--tests", "--examples"]).args(packages::workspace());
    execute(&mut build)?;
    header::check_built(PROFILE)?;
    let prefix = target().join("test-prefix");
    install::place(&target().join(PROFILE), &prefix, &artifacts::libraries())?;
    for directory in [prefix.join("lib/bh"), target().join(PROFILE)] {
        cluster::build_into(&directory)?;
    }
    let mut test = cargo();
    let all = arguments.iter().any(|argument| argument == "--all");
    let further = arguments.iter().filter(|argument| *argument != "--all");
    test.args(["test", "--profile", PROFILE, "--no-fail-fast"]).args(packages::workspace()).args(further);
    if all {
        test.env("BH_TEST_OPENCL", "all").env("BH_TEST_ALL", "1");
    }
    test.env("BH_TEST_PREFIX", &prefix).env("BH_TEST_PYTHON", &python);
    test.env("BH_TEST_LIBRARIES", target().join(PROFILE));
    execute(&mut test)?;
    python::test(&python, PROFILE, all)?;
    cil::test(PROFILE, &prefix)
}

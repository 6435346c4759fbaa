//! The Python package: put together from what was built, and its tests.

use crate::command::{Failure, Outcome, cargo, option, root, run, target};
use crate::install::{self, copy, copy_tree};
use crate::{cluster, packages};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate of the native module.
const MODULE: &str = "bh-bridge-numpy";

/// Puts the package together from what was built under a cargo profile: Python's files, the native module, and beside it
/// the components and the libraries for MPI that are there. Returns the directory to import it from.
pub fn stage(profile: &str) -> Outcome<PathBuf> {
    let directory = target().join("python-package").join(profile);
    let package = directory.join("bh");
    let _ = std::fs::remove_dir_all(&package);
    copy_tree(&root().join("bh-bridge-numpy/python/bh"), &package)?;
    gather(&target().join(profile), &package)?;
    Ok(directory)
}

/// Copies the libraries of the package from the directory where they were built.
fn gather(built: &Path, package: &Path) -> Outcome {
    copy(&built.join("libbh_bridge_numpy.so"), &package.join("_native.abi3.so"))?;
    for component in install::libraries() {
        let name = format!("lib{}.so", component.replace('-', "_"));
        copy(&built.join(&name), &package.join(&name))?;
    }
    for library in cluster::IMPLEMENTATIONS.iter().map(cluster::Mpi::library) {
        if built.join(&library).is_file() {
            copy(&built.join(&library), &package.join(&library))?;
        }
    }
    Ok(())
}

/// Builds the native module and the components, all of them in one run of cargo.
pub fn build(profile: &str) -> Outcome<PathBuf> {
    let crates: Vec<&str> = install::libraries().into_iter().chain([MODULE]).collect();
    install::build(profile, &crates)
}

/// Runs the command line `libraries --out DIR [--built DIR]`, which the wheel's build calls: all libraries of the package,
/// stripped, from a directory where they are built already, or from a build of their own.
pub fn libraries(arguments: &[String]) -> Outcome {
    let out = option(arguments, "--out")?.ok_or_else(|| Failure("libraries needs --out DIR".into()))?;
    let built = match option(arguments, "--built")? {
        Some(built) => PathBuf::from(built),
        None => {
            let built = build("release")?;
            cluster::build_into(&built)?;
            built
        }
    };
    std::fs::create_dir_all(out)?;
    gather(&built, Path::new(out))?;
    install::strip(Path::new(out))
}

/// Runs the command line `wheel [--out DIR]`.
pub fn wheel(arguments: &[String]) -> Outcome {
    let python = packages::python_with_numpy()?;
    let out = option(arguments, "--out")?.map_or_else(|| target().join("wheels"), PathBuf::from);
    let mut build = Command::new(&python);
    packages::ensure_llvm();
    cluster::ensure_packages();
    build.args(["-m", "pip", "wheel", "--no-deps", "--wheel-dir"]).arg(&out).arg(".");
    run(build.current_dir(root()))?;
    for entry in std::fs::read_dir(&out)? {
        let wheel = entry?.path();
        println!("{}", wheel.display());
        // The tag tells how old a system may be that the wheel still works on.
        let audits =
            Command::new(&python).args(["-c", "import auditwheel"]).status().is_ok_and(|status| status.success());
        if audits {
            run(Command::new(&python).args(["-m", "auditwheel", "show"]).arg(&wheel))?;
        }
    }
    Ok(())
}

/// Runs the command line `array-api --suite DIR [ARGUMENTS]`: the public tests of the array API, in a checkout with its
/// submodule, against the package as it was built under the profile `debug`. Further arguments go to pytest.
pub fn array_api(arguments: &[String]) -> Outcome {
    let suite = option(arguments, "--suite")?.map(PathBuf::from);
    let suite = suite.ok_or_else(|| Failure("name the checkout of array-api-tests with --suite DIR".into()))?;
    let python = packages::python_with_numpy()?;
    run(Command::new(&python).args(["-m", "pip", "install", "-q", "-r"]).arg(suite.join("requirements.txt")))?;
    run(cargo().args(["build"]).args(packages::workspace()))?;
    let package = stage("debug")?;
    let place = arguments.iter().position(|argument| argument == "--suite").unwrap_or_default();
    let further = arguments.iter().enumerate().filter(|(number, _)| *number != place && *number != place + 1);
    let mut tests = Command::new(&python);
    tests.args(["-m", "pytest", "-q", "array_api_tests", "--max-examples", "100"]);
    tests.args(further.map(|(_, argument)| argument)).current_dir(&suite);
    run(tests.env("PYTHONPATH", package).env("ARRAY_API_TESTS_MODULE", "bh").env("BH_FALLBACK", "silent"))
}

/// Runs the command line `numpy-suite [OPTIONS]`: NumPy's own tests with bh in NumPy's place, against the package as it was
/// built under the profile `checked`. The options are those of `bh-bridge-numpy/suites/numpy_suite.py`.
pub fn numpy_suite(arguments: &[String]) -> Outcome {
    let python = packages::python_with_numpy()?;
    run(cargo().args(["build", "--profile", "checked", "--lib"]).args(packages::workspace()))?;
    let package = stage("checked")?;
    let mut suite = Command::new(&python);
    suite.arg(root().join("bh-bridge-numpy/suites/numpy_suite.py")).args(arguments);
    suite.arg("--directory").arg(target().join("suites"));
    run(suite.env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Libraries that newcomers use bh's arrays with, and what checks the type stubs.
const OTHERS: &[&str] = &["matplotlib", "scipy", "pandas", "ipython", "mypy", "numexpr"];

/// Runs the package's tests against NumPy; with `all`, those together with other libraries too, where they can be had.
pub fn test(python: &Path, profile: &str, all: bool) -> Outcome {
    let package = stage(profile)?;
    if all && run(Command::new(python).args(["-m", "pip", "install", "-q"]).args(OTHERS)).is_err() {
        eprintln!("the tests with other libraries are left out, as these cannot be installed: {}", OTHERS.join(", "));
    }
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "bh-bridge-numpy/tests"]);
    // The test of the wheel packs what was built.
    tests.env("BH_WHEEL_LIBRARIES", target().join(profile));
    // Libraries for MPI are no part of the package.
    tests.env("BH_TEST_LIBRARIES", target().join(profile));
    run(tests.current_dir(root()).env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1"))
}

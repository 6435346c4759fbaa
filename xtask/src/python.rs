//! The Python package: put together from what was built, and its tests.

use crate::artifacts::{self, copy, copy_tree};
use crate::command::{Failure, Outcome, cargo, option, output, root, run, target};
use crate::older::Linker;
use crate::{cluster, cross, install, packages};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate of the native module.
pub const MODULE: &str = "bh-bridge-numpy";

/// Puts the package together from what was built under a cargo profile: Python's files, the native module, and beside it
/// the components and the libraries for MPI that are there. Returns the directory to import it from.
pub fn stage(profile: &str) -> Outcome<PathBuf> {
    let directory = target().join("python-package").join(profile);
    put_together(&target().join(profile), &directory)?;
    Ok(directory)
}

/// As [`stage`], with the modules compiled to bytecode: tests write none, and each of their processes would compile the modules again.
fn stage_for(python: &Path, profile: &str) -> Outcome<PathBuf> {
    let directory = stage(profile)?;
    run(Command::new(python).args(["-m", "compileall", "-q"]).arg(directory.join("bh")))?;
    Ok(directory)
}

/// Puts the package into a directory to import it from, with the libraries of the directory where they were built.
pub fn put_together(built: &Path, directory: &Path) -> Outcome {
    let package = directory.join("bh");
    let _ = std::fs::remove_dir_all(&package);
    copy_tree(&root().join("bh-bridge-numpy/python/bh"), &package)?;
    gather(built, &package)
}

/// Copies the libraries of the package from the directory where they were built.
fn gather(built: &Path, package: &Path) -> Outcome {
    copy(&built.join("libbh_bridge_numpy.so"), &package.join("_native.abi3.so"))?;
    for component in artifacts::libraries() {
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
    let crates: Vec<&str> = artifacts::libraries().into_iter().chain([MODULE]).collect();
    artifacts::build_crates(profile, &crates)
}

/// Builds all that a wheel holds, under the profile `release`.
fn build_for_wheel(linker: Option<&Linker>) -> Outcome<PathBuf> {
    let mut crates = artifacts::libraries();
    crates.extend(WHEEL);
    let built = match linker {
        None => artifacts::build_crates("release", &crates)?,
        Some(linker) => {
            let mut command = artifacts::building("release", &crates);
            linker.set(&mut command);
            run(&mut command)?;
            linker.target().join("release")
        }
    };
    cluster::build_into(&built, linker)?;
    Ok(built)
}

/// The crates of a wheel beside the components: the native module, the program `bh`, and the library for C and C++.
pub const WHEEL: [&str; 3] = [MODULE, "bh-cli", "bh-bridge-c"];

/// Runs the command line `libraries --out DIR [--built DIR]`, which the wheel's build calls: all libraries of the package and what C
/// and C++ need, stripped, from a directory where they are built already, or from a build of their own.
pub fn libraries(arguments: &[String]) -> Outcome {
    let out = option(arguments, "--out")?.ok_or_else(|| Failure("libraries needs --out DIR".into()))?;
    let built = match option(arguments, "--built")? {
        Some(built) => PathBuf::from(built),
        None => build_for_wheel(None)?,
    };
    let package = Path::new(out);
    std::fs::create_dir_all(package)?;
    gather(&built, package)?;
    install::place_in_package(&built, package)?;
    artifacts::strip(package)
}

/// Libraries that the system brings, with the programs that use them.
const SYSTEMS: &[&str] = &["libmpi.so.*", "libmpich.so.*", "libOpenCL.so.*"];

/// Runs the command line `wheel [--out DIR] [--target aarch64]`: builds the wheel for systems as old as [`Linker`] says, and has auditwheel
/// confirm it.
pub fn wheel(arguments: &[String]) -> Outcome {
    match option(arguments, "--target")? {
        None => {}
        Some("aarch64") => return cross::wheel(arguments),
        Some(other) => return Err(Failure(format!("wheel --target takes aarch64, not {other}"))),
    }
    packages::ensure_llvm();
    cluster::ensure_packages();
    // Here, where cargo shows how far it is, and not by pip.
    let built = build_for_wheel(Some(&Linker::of_this_machine()?))?;
    for wheel in pack(arguments, &built, &[])? {
        println!("{} ({:.1} MB)", wheel.display(), wheel.metadata()?.len() as f64 * 1e-6);
    }
    Ok(())
}

/// Packs built libraries into a wheel, audits it, and puts it into the folder of the option `--out`. Returns the wheels of that folder.
pub fn pack(arguments: &[String], built: &Path, environment: &[(&str, &OsStr)]) -> Outcome<Vec<PathBuf>> {
    let python = packages::python_with_numpy()?;
    packages::ensure_audit(&python)?;
    let out = option(arguments, "--out")?.map_or_else(|| target().join("wheels"), PathBuf::from);
    let fresh = target().join("python-build/wheel");
    let _ = std::fs::remove_dir_all(&fresh);
    let mut pack = Command::new(&python);
    pack.args(["-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir"]).arg(&fresh).arg(".");
    pack.current_dir(root()).env("BH_WHEEL_LIBRARIES", built).envs(environment.iter().copied());
    run(&mut pack)?;
    for entry in std::fs::read_dir(&fresh)? {
        audit(&python, &entry?.path(), &out)?;
    }
    let wheels = std::fs::read_dir(&out)?.map(|entry| entry.map(|entry| entry.path()));
    wheels.collect::<Result<_, _>>().map_err(Failure::from)
}

/// Copies a wheel into a directory if all that its libraries need is in it, or in every system of its tag's age.
fn audit(python: &Path, wheel: &Path, out: &Path) -> Outcome {
    let mut audit = Command::new(python);
    audit.args(["-m", "auditwheel", "repair", "--wheel-dir"]).arg(out).arg(wheel);
    for library in SYSTEMS {
        audit.args(["--exclude", library]);
    }
    // It looks for the program that would change the libraries, although these need no change.
    let own = python.parent().map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)));
    run(audit.env("PATH", path.map_err(|error| Failure(error.to_string()))?))
}

/// Runs the command line `packaging`: the recipes of package managers, checked by their tools.
pub fn packaging(_: &[String]) -> Outcome {
    let python = packages::environment("packaging", packages::RECIPES)?;
    run(Command::new(python).arg("packaging/check.py").current_dir(root()))
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

/// Libraries that newcomers use bh's arrays with, and what checks the type stubs, beside the packages of `packages/statements.toml`.
const OTHERS: &[&str] = &[
    "astropy==8.0.2",
    "ipython==9.18.1",
    "matplotlib==3.11.2",
    "mypy==2.4.1",
    "netCDF4==1.7.5.1.post1",
    "numba==0.68.1",
    "numexpr==2.14.2",
    "opencv-python-headless==5.0.0.93",
    "pandas==2.3.3",
    "polars==2.1.0",
    "pyright==1.1.414",
    "scikit-image==0.26.0",
    "sympy==1.14.0",
    "zarr==3.1.6",
];

/// Installs the packages with which bh is tested at every change, in the versions of `packages/statements.toml`, or all of them and
/// the [`OTHERS`]. Tests of packages that are not there are left out.
pub fn add_packages(python: &Path, all: bool) {
    let mut needed = Command::new(python);
    needed.arg(root().join(TESTS).join("packages/needed.py")).args(all.then_some("--all"));
    let others = if all { OTHERS } else { &[] };
    let installed = output(&mut needed).and_then(|names| {
        run(Command::new(python).args(["-m", "pip", "install", "-q"]).args(names.split_whitespace()).args(others))
    });
    if let Err(reason) = installed {
        eprintln!("xtask: tests with other packages are left out: {reason}");
    }
}

/// Tests that start several processes, which wait for each other: these run one after the other.
const PROCESSES: &[&str] = &["test_ranks.py", "test_siblings.py"];

/// Runs the package's tests against NumPy and together with those other packages that are there. Also where the reports of the runs
/// are.
pub fn test(python: &Path, profile: &str) -> (Outcome, Vec<PathBuf>) {
    let package = match stage_for(python, profile) {
        Ok(package) => package,
        Err(failure) => return (Err(failure), Vec::new()),
    };
    let processes = PROCESSES.iter().map(|file| format!("{TESTS}/{file}"));
    let others = processes.clone().map(|file| format!("--ignore={file}"));
    let many = pytest(python, profile, &package, "python").args(["-n", WORKERS, TESTS]).args(others).run();
    let few = pytest(python, profile, &package, "processes").args(processes).run();
    (many.0.and(few.0), vec![many.1, few.1])
}

/// Runs the tests that pytest's arguments name.
pub fn test_files(python: &Path, profile: &str, named: &[String]) -> (Outcome, Vec<PathBuf>) {
    if named.iter().any(|name| name.contains("test_packages")) {
        add_packages(python, false);
    }
    let package = match stage_for(python, profile) {
        Ok(package) => package,
        Err(failure) => return (Err(failure), Vec::new()),
    };
    let (result, report) = pytest(python, profile, &package, "chosen").args(named).run();
    (result, vec![report])
}

/// Where the package's tests are.
pub const TESTS: &str = "bh-bridge-numpy/tests";

/// How many processes run the tests at the same time.
const WORKERS: &str = "auto";

/// A run of pytest, and its report.
struct Pytest {
    command: Command,
    report: PathBuf,
}

fn pytest(python: &Path, profile: &str, package: &Path, name: &str) -> Pytest {
    let report = target().join(format!("pytest-{name}.xml"));
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml"]).arg(&report).current_dir(root());
    // The test of the wheel packs what was built; libraries for MPI are no part of the package.
    command.env("BH_WHEEL_LIBRARIES", target().join(profile)).env("BH_TEST_LIBRARIES", target().join(profile));
    command.env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1");
    Pytest { command, report }
}

impl Pytest {
    fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> Pytest {
        self.command.args(arguments);
        self
    }

    fn run(mut self) -> (Outcome, PathBuf) {
        (run(&mut self.command), self.report)
    }
}

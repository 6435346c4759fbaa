//! The Python package: put together from what was built, and its tests.

use crate::command::{Outcome, option, root, run, target};
use crate::install::{self, copy, copy_tree};
use crate::packages;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts the package together from what was built under a cargo profile: Python's files, the native module, and beside it
/// the components. Returns the directory to import it from.
pub fn stage(profile: &str) -> Outcome<PathBuf> {
    let directory = target().join("python-package").join(profile);
    let package = directory.join("bh");
    let _ = std::fs::remove_dir_all(&package);
    copy_tree(&root().join("bh-bridge-numpy/python/bh"), &package)?;
    let built = target().join(profile);
    copy(&built.join("libbh_bridge_numpy.so"), &package.join("_native.abi3.so"))?;
    for component in install::libraries() {
        let name = format!("lib{}.so", component.replace('-', "_"));
        copy(&built.join(&name), &package.join(&name))?;
    }
    Ok(directory)
}

/// Runs the command line `wheel [--out DIR]`.
pub fn wheel(arguments: &[String]) -> Outcome {
    let python = packages::python_with_numpy()?;
    let out = option(arguments, "--out")?.map_or_else(|| target().join("wheels"), PathBuf::from);
    let mut build = Command::new(&python);
    build.args(["-m", "pip", "wheel", "--no-deps", "--wheel-dir"]).arg(&out).arg("./bh-bridge-numpy");
    run(build.current_dir(root()))?;
    for entry in std::fs::read_dir(&out)? {
        println!("{}", entry?.path().display());
    }
    Ok(())
}

/// Runs the package's tests against NumPy.
pub fn test(python: &Path, profile: &str) -> Outcome {
    let package = stage(profile)?;
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "bh-bridge-numpy/tests"]);
    run(tests.current_dir(root()).env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1"))
}

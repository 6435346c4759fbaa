//! `cargo xtask pythons [--package DIR]`: Python's tests of the core on each Python that is installed, with each NumPy that has a wheel for it.

use crate::command::{Failure, Outcome, option, root, run, target};
use crate::python;
use crate::test::{CORE, PROFILE};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The versions of Python that the wheel is for.
const PYTHONS: &[&str] = &["3.11", "3.12", "3.13", "3.14"];

/// The versions of NumPy that bh is tested with.
const NUMPYS: &[&str] = &["2.2", "2.3", "2.4", "2.5"];

/// What the tests import besides NumPy.
const TOOLS: &[&str] = &["pytest==8.4.2", "hypothesis==6.142.1"];

/// Runs the command line: builds the package, unless `--package` names the directory to import it from, and prints a table.
pub fn run_pairs(arguments: &[String]) -> Outcome {
    let package = match option(arguments, "--package")? {
        Some(directory) => PathBuf::from(directory),
        None => {
            python::build(PROFILE)?;
            python::stage(PROFILE)?
        }
    };
    let mut rows = Vec::new();
    for version in PYTHONS {
        let Some(program) = find(version) else {
            println!("Python {version} is not installed: it is left out");
            continue;
        };
        for numpy in NUMPYS {
            let found = match environment(&program, version, numpy) {
                Ok(python) => tests(&python, &package)?,
                Err(_) => "no wheel".to_owned(),
            };
            println!("Python {version}, NumPy {numpy}: {found}");
            rows.push((version, numpy, found));
        }
    }
    println!("\n| Python | NumPy | tests |\n|---|---|---|");
    rows.iter().for_each(|(python, numpy, found)| println!("| {python} | {numpy} | {found} |"));
    let failed = rows.iter().filter(|(.., found)| found.contains("failed") || found.contains("error")).count();
    if failed == 0 { Ok(()) } else { Err(Failure(format!("{failed} pairs failed"))) }
}

/// The program of a version of Python: on the path, or among those of pyenv.
fn find(version: &str) -> Option<PathBuf> {
    let name = format!("python{version}");
    let of_pyenv = || {
        let versions = Path::new(&std::env::var_os("HOME")?).join(".pyenv/versions");
        let folders = std::fs::read_dir(versions).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        folders.map(|folder| folder.join("bin").join(&name)).find(|program| program.is_file())
    };
    let starts =
        |program: &PathBuf| Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    Some(PathBuf::from(&name)).filter(starts).or_else(of_pyenv)
}

/// Python in a virtual environment with this version of NumPy, which fails if NumPy has no wheel for it.
fn environment(program: &Path, version: &str, numpy: &str) -> Outcome<PathBuf> {
    let folder = target().join("pythons").join(format!("{version}-{numpy}"));
    let python = folder.join("bin/python");
    if !python.is_file() {
        run(Command::new(program).args(["-m", "venv"]).arg(&folder))?;
    }
    let install = ["-m", "pip", "install", "-q", "--only-binary=:all:"];
    run(Command::new(&python).args(install).arg(format!("numpy=={numpy}.*")).args(TOOLS))?;
    Ok(python)
}

/// The last line of the tests' output, without the time.
fn tests(python: &Path, package: &Path) -> Outcome<String> {
    let files = CORE.iter().map(|name| format!("{}/{name}.py", python::TESTS));
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(files).current_dir(root());
    let done = command.env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1").output()?;
    let text = String::from_utf8_lossy(&done.stdout);
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("error: no output");
    if !done.status.success() {
        eprintln!("{text}");
    }
    Ok(last.split(" in ").next().unwrap_or(last).to_owned())
}

//! `cargo xtask pythons [--package DIR] [--write]`: Python's tests of the core on each Python that is installed, with each NumPy that has a wheel for it.

use crate::command::{Failure, Outcome, option, root, run, target};
use crate::python;
use crate::table::{Counts, Table, run_tests};
use crate::test::{CORE, PROFILE};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The versions of Python that the wheel is for.
const PYTHONS: &[&str] = &["3.11", "3.12", "3.13", "3.14"];

/// The versions of NumPy that bh is tested with.
const NUMPYS: &[&str] = &["2.2", "2.3", "2.4", "2.5"];

/// The table of results.
const TABLE: Table = Table { page: "docs/tests.md", header: "| Python | NumPy | passed | failed | skipped |", keys: 2 };

/// The packages that the tests import besides NumPy.
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
    let (mut rows, mut failed) = (Vec::new(), 0);
    for version in PYTHONS {
        let Some(program) = find(version) else {
            println!("Python {version} is not installed: it is left out");
            continue;
        };
        for numpy in NUMPYS {
            let mut row = vec![(*version).to_owned(), (*numpy).to_owned()];
            if let Ok(python) = environment(&program, version, numpy) {
                let (passed, counts) = tests(&python, &package)?;
                failed += usize::from(!passed);
                row.extend(counts.unwrap_or_default().map(|count| count.to_string()));
            } else {
                row.extend(["no wheel", "", ""].map(str::to_owned));
            }
            println!("| {} |", row.join(" | "));
            rows.push(row);
        }
    }
    println!("\n{}\n|---|---|---|---|---|", TABLE.header);
    rows.iter().for_each(|row| println!("| {} |", row.join(" | ")));
    if arguments.iter().any(|argument| argument == "--write") {
        TABLE.write(&rows)?;
    }
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

/// Whether the tests pass, and their counts.
fn tests(python: &Path, package: &Path) -> Outcome<(bool, Option<Counts>)> {
    let files = CORE.iter().map(|name| format!("{}/{name}.py", python::TESTS));
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(files).current_dir(root());
    run_tests(command.env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1"))
}

//! The Python package for the other machine: its tests of the core, and its wheel.

use super::prefix::Prefix;
use super::{TARGET, build_libraries, built};
use crate::command::{Failure, Outcome, option, root, run, target};
use crate::older::Linker;
use crate::table::{Counts, run_tests};
use crate::test::{CORE, PROFILE};
use crate::{packages, python};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The systems whose wheels the prefix's C library runs.
const PLATFORMS: [&str; 3] = ["manylinux_2_36_aarch64", "manylinux_2_28_aarch64", "manylinux_2_17_aarch64"];

/// Tests beside those of the core: results have the bits of other processors.
const BITS: [&str; 2] = [
    "test_reproducible.py::test_processors_give_the_bits_of_the_table",
    "test_reproducible.py::test_functions_give_the_bits_of_the_table[in blocks]",
];

/// Runs the tests with the package of these sources.
pub fn test(prefix: &Prefix) -> Outcome<(bool, Option<Counts>)> {
    build_libraries(prefix, PROFILE, &[python::MODULE], None)?;
    let package = target().join("cross/python-package");
    python::put_together(&built(PROFILE), &package)?;
    let core = CORE.iter().map(|name| format!("{name}.py"));
    let files = core.chain(BITS.map(str::to_owned)).map(|name| format!("{}/{name}", python::TESTS));
    let mut tests = interpreter(prefix, &package)?;
    run_tests(tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(files).current_dir(root()))
}

/// The other machine's Python with the package of a folder, NumPy, and what tests import.
fn interpreter(prefix: &Prefix, package: &Path) -> Outcome<Command> {
    let folder = target().join("cross/python-wheels");
    let names: Vec<OsString> = packages::PYTHON.iter().map(OsString::from).collect();
    let (mark, wanted) = (folder.join("wheels"), packages::PYTHON.join("\n"));
    if fs::read_to_string(&mark).ok().as_ref() != Some(&wanted) {
        install(&folder, &names)?;
        fs::write(mark, wanted)?;
    }
    let path = std::env::join_paths([package, &folder]).map_err(|error| Failure(error.to_string()))?;
    let mut command = Command::new(prefix.python());
    command.env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// Has this machine's pip unpack wheels for the other one into an empty folder.
fn install(folder: &Path, wheels: &[OsString]) -> Outcome {
    let _ = fs::remove_dir_all(folder);
    let mut pip = Command::new(packages::python_with_numpy()?);
    pip.args(["-m", "pip", "install", "-q", "--only-binary=:all:", "--python-version", "3.11", "--target"]).arg(folder);
    run(pip.args(PLATFORMS.iter().flat_map(|platform| ["--platform", platform])).args(wheels))
}

/// Runs the command line `wheel --target aarch64 [--out DIR] [--built DIR]`: builds the libraries, unless `--built` names a folder of
/// them, packs them into a wheel, and runs the first program of the README with it.
pub fn wheel(arguments: &[String]) -> Outcome {
    let prefix = Prefix::ready()?;
    let libraries = match option(arguments, "--built")? {
        Some(folder) => PathBuf::from(folder),
        None => {
            let linker = Linker::ready("aarch64", &prefix.unwinder())?;
            build_libraries(&prefix, "release", &python::WHEEL, Some(&linker))?;
            linker.target().join(TARGET).join("release")
        }
    };
    let strip = prefix.strip();
    // The first variable has Python's tools name the other machine.
    let environment = [("_PYTHON_HOST_PLATFORM", "linux-aarch64".as_ref()), ("STRIP", strip.as_os_str())];
    let wheels = python::pack(arguments, &libraries, &environment)?;
    let wheel = wheels.iter().find(|wheel| wheel.to_string_lossy().ends_with("_aarch64.whl"));
    let wheel = wheel.ok_or_else(|| Failure("no wheel for aarch64 has passed".into()))?;
    let package = target().join("cross/python-installed");
    install(&package, &["--no-deps".into(), wheel.into()])?;
    run(interpreter(&prefix, &package)?.arg("-c").arg(first_program()?).current_dir(&package))?;
    println!("{} ({:.1} MB)", wheel.display(), wheel.metadata()?.len() as f64 * 1e-6);
    Ok(())
}

/// The first program in Python of the README.
fn first_program() -> Outcome<String> {
    let text = fs::read_to_string(root().join("README.md"))?;
    let program = text.split("```python").nth(1).and_then(|rest| rest.split("```").next());
    let program = program.and_then(|block| block.split_once('\n'));
    program.map(|(_, lines)| lines.to_owned()).ok_or_else(|| Failure("README.md has no program in Python".into()))
}

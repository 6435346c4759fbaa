//! Builds the files of an installation, and copies them to their places.

use crate::command::{Failure, Outcome, cargo, output, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The component libraries, by crate; each becomes `lib/bh/lib<crate with underscores>.so`.
const COMPONENTS: &[&str] =
    &["bh-filter", "bh-vem-cluster", "bh-fuser", "bh-vem-node", "bh-ve-cpu", "bh-ve-cuda", "bh-ve-opencl"];

/// The libraries of `lib/bh`, by crate: the components, and what they load if it is there.
pub fn libraries() -> Vec<&'static str> {
    let compiler = crate::packages::has_llvm().then_some(crate::packages::COMPILER);
    COMPONENTS.iter().copied().chain(compiler).collect()
}

/// Builds all that is installed, with these libraries, under a cargo profile and returns the directory of the results.
pub fn build(profile: &str, libraries: &[&str]) -> Outcome<PathBuf> {
    build_crates(profile, &[&["bh-bridge-c", "bh-cli", "bh-minimatlab"], libraries].concat())
}

/// Builds these crates and no others under a cargo profile and returns the directory of the results.
pub fn build_crates(profile: &str, crates: &[&str]) -> Outcome<PathBuf> {
    crate::command::run(&mut building(profile, crates))?;
    Ok(target().join(profile))
}

/// The command that builds these crates and no others under a cargo profile.
pub fn building(profile: &str, crates: &[&str]) -> Command {
    let mut command = cargo();
    command.args(["build", "--profile", profile]).args(crates.iter().flat_map(|name| ["-p", name]));
    command
}

/// The program of a crate's suites, as cargo calls it; a module of it is a suite.
pub const TESTS: &str = "all";

/// Package, target and file of a test program that was built, from a message of cargo's.
pub fn test_program(message: &serde_json::Value) -> Option<(String, String, PathBuf)> {
    let program = PathBuf::from(message["executable"].as_str()?);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.file_name()?.to_str()?;
    let package = if folder == "tests" { "bh-tests" } else { folder };
    Some((package.to_owned(), message["target"]["name"].as_str()?.to_owned(), program))
}

/// Replaces `to`, so that a running program keeps the old file.
pub fn copy(from: &Path, to: &Path) -> Outcome {
    let _ = fs::remove_file(to);
    fs::copy(from, to).map_err(|error| Failure(format!("copying {} to {}: {error}", from.display(), to.display())))?;
    Ok(())
}

/// Copies a directory with all it holds.
pub fn copy_tree(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let destination = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &destination)?;
        } else {
            copy(&entry.path(), &destination)?;
        }
    }
    Ok(())
}

/// Takes what debuggers need out of all programs and libraries; it stays in the target directory. Names of functions are kept,
/// which traces and checkers of memory read. The variable `STRIP` names the program for another machine's files.
pub fn strip(folder: &Path) -> Outcome {
    let program = std::env::var_os("STRIP").unwrap_or_else(|| "strip".into());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            strip(&path)?;
        } else if entry.file_type()?.is_file() && fs::read(&path)?.starts_with(b"\x7fELF") {
            output(Command::new(&program).arg("--strip-debug").arg(&path))?;
        }
    }
    Ok(())
}

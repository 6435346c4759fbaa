//! Running programs, with readable failures.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a developer command failed.
#[derive(Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(error.to_string())
    }
}

/// The outcome of a developer command.
pub type Outcome<T = ()> = Result<T, Failure>;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command, showing its line and its output.
pub fn run(command: &mut Command) -> Outcome {
    eprintln!("+ {}", line(command));
    let status = command.status().map_err(|error| Failure(format!("{}: {error}", line(command))))?;
    if status.success() { Ok(()) } else { Err(Failure(format!("{} failed: {status}", line(command)))) }
}

/// Runs a command and returns what it printed on standard output.
pub fn output(command: &mut Command) -> Outcome<String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| Failure(format!("{}: {error}", line(command))))?;
    if !output.status.success() {
        return Err(Failure(format!("{} failed: {}", line(command), output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The files of the repository with such an ending, those not committed yet included.
pub fn files(pattern: &str) -> Outcome<Vec<String>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", pattern]).current_dir(root());
    Ok(output(&mut list)?.lines().map(str::to_owned).collect())
}

/// A command as one would type it.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The value after `--name`, if the option is given.
pub fn option<'a>(arguments: &'a [String], name: &str) -> Outcome<Option<&'a str>> {
    match arguments.iter().position(|argument| argument == name) {
        None => Ok(None),
        Some(at) => match arguments.get(at + 1) {
            Some(value) => Ok(Some(value)),
            None => Err(Failure(format!("option {name} needs a value"))),
        },
    }
}

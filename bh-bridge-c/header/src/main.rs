//! Writes `include/bh.h` and `include/bh_component.h` of the C bridge, or verifies with `--check` that they are current.

mod bridge;
mod component;
mod constants;
mod operations;
mod slots;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The root of the workspace, as this program was built in it.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = match arguments.as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => {
            eprintln!("usage: bh-header [--check]");
            return ExitCode::from(2);
        }
    };
    match run(check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(check: bool) -> Result<(), String> {
    let root = root();
    for (name, text) in [
        ("bh_component.h", documented(&component::header(&root)?)),
        ("bh.h", documented(&bridge::header(&root)?)),
        ("bh/operations.hpp", operations::header()),
    ] {
        let path = root.join("bh-bridge-c/include").join(name);
        if check {
            if std::fs::read_to_string(&path).is_ok_and(|current| current == text) {
                continue;
            }
            return Err(format!("{} is not current; run `cargo xtask header`", path.display()));
        }
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Comments of declarations as Doxygen and editors read them.
fn documented(text: &str) -> String {
    let line = |line: &str| {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        match words.strip_prefix("//") {
            Some(comment) if comment.is_empty() || comment.starts_with(' ') => format!("{indent}///{comment}\n"),
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

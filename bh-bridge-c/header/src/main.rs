//! Writes what is made from tables: the C and C++ headers, the members of .NET's arrays, the reference pages, and the documented
//! part of the default configuration; or verifies with `--check` that they are current.

mod bridge;
mod component;
mod constants;
mod cpp_reference;
mod csharp;
mod keys;
mod operations;
mod records;
mod reference;
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

/// The generated texts, by file.
fn files(root: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let configuration = root.join("config/default.toml");
    let written =
        std::fs::read_to_string(&configuration).map_err(|error| format!("{}: {error}", configuration.display()))?;
    let header = documented(&bridge::header(root)?);
    let operations = operations::header();
    let (reference, cpp_reference) = (reference::page(&header), cpp_reference::page(root, &operations)?);
    Ok(vec![
        ("bh-bridge-c/include/bh_component.h", documented(&component::header(root)?)),
        ("bh-bridge-c/include/bh.h", header),
        ("bh-bridge-c/include/bh/operations.hpp", operations),
        ("bh-bridge-cil/src/Functions.cs", csharp::functions()),
        ("config/default.toml", keys::default_file(&written)?),
        ("docs/api.md", reference),
        ("docs/cpp-reference.md", cpp_reference),
        ("docs/keys.md", keys::page()),
        ("docs/opcodes.md", bh_bytecode::docs::opcode_table()),
    ])
}

fn run(check: bool) -> Result<(), String> {
    let root = root();
    for (name, text) in files(&root)? {
        let path = root.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|current| current == text) {
            continue;
        }
        if check {
            return Err(format!("{name} is not current; run `cargo xtask header`"));
        }
        std::fs::write(&path, text).map_err(|error| format!("{name}: {error}"))?;
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

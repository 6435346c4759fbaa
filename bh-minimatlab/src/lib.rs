//! MiniMatlab: an interpreter for a subset of Matlab. Matrices are arrays of the recorder, so whole-array programs are
//! recorded lazily, fused and run by the configured stack. Scalars are native.

mod arrange;
mod ast;
mod compute;
mod device;
mod display;
mod evaluate;
mod expression;
mod index;
mod lexer;
mod library;
mod operators;
mod parser;
mod picture;
mod print;
mod raster;
mod show;
mod source;
mod value;

pub use evaluate::{Interpreter, Variable};
pub use source::{Fault, TextPosition};

use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::Recorder;
use std::path::Path;

fn interpreter(stack: Option<&str>) -> Result<Interpreter> {
    let recorder = Recorder::new();
    recorder.open(stack)?;
    Ok(Interpreter::new(recorder, Box::new(std::io::stdout())))
}

/// Runs a program; prints an error with its place and returns false if it failed.
pub fn run_file(file: &Path, stack: Option<&str>) -> Result<bool> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Error::new(status::FILE, format!("'{}' cannot be read: {error}", file.display())))?;
    let outcome = interpreter(stack)?.run(&file.display().to_string(), &text);
    if let Err(fault) = &outcome {
        eprintln!("{fault}");
    }
    Ok(outcome.is_ok())
}

/// Reads, runs and prints lines until the input ends. The history is a file in the user's home.
pub fn prompt(stack: Option<&str>) -> Result<bool> {
    let mut interpreter = interpreter(stack)?;
    let failed = |error: rustyline::error::ReadlineError| Error::new(status::FILE, format!("prompt: {error}"));
    let mut editor = rustyline::DefaultEditor::new().map_err(failed)?;
    let history = bh_core::environment::variable_os("HOME").map(|home| Path::new(&home).join(".bh_matlab_history"));
    if let Some(history) = &history {
        // The file does not exist the first time.
        let _ = editor.load_history(history);
    }
    let mut pending = String::new();
    let mut good = true;
    loop {
        match editor.readline(if pending.is_empty() { ">> " } else { ".. " }) {
            Ok(line) => {
                if matches!(line.trim(), "exit" | "quit") {
                    break;
                }
                // Best effort: the prompt works without history.
                let _ = editor.add_history_entry(&line);
                pending.push_str(&line);
                pending.push('\n');
            }
            Err(rustyline::error::ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(rustyline::error::ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        }
        match interpreter.run("prompt", &pending) {
            // An unclosed block or bracket continues on the next line.
            Err(fault) if fault.text.contains("has no 'end'") || fault.text.contains("is never closed") => continue,
            Err(fault) => {
                eprintln!("{fault}");
                good = false;
            }
            Ok(()) => good = true,
        }
        pending.clear();
    }
    if let Some(history) = &history {
        let _ = editor.save_history(history);
    }
    Ok(good)
}

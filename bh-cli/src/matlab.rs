//! `bh matlab`: MiniMatlab programs.

use crate::run;
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the program, or a prompt. Under the profiler, this command starts itself.
pub fn run(file: Option<PathBuf>, profile: bool, stack: Option<String>) -> Result<ExitCode> {
    if profile {
        let this = std::env::current_exe().map_err(|error| Error::new(status::FILE, error.to_string()))?;
        let mut line = vec![this.into_os_string(), "matlab".into()];
        line.extend(file.map(PathBuf::into_os_string));
        return run::run(run::Wanted { profile: true, trace: None, report: None, live: false, stack }, &line);
    }
    let good = match file {
        Some(file) => bh_minimatlab::run_file(&file, stack.as_deref())?,
        None => bh_minimatlab::prompt(stack.as_deref())?,
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

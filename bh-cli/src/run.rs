//! `bh run`: a program under the profiler.

use bh_core::abi::status;
use bh_core::{Error, Result, private};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Runs the program with statistics and trace switched on through the environment; its exit status is ours.
pub fn run(profile: bool, trace: Option<PathBuf>, stack: Option<String>, line: &[OsString]) -> Result<ExitCode> {
    let Some((program, arguments)) = line.split_first() else {
        return Err(Error::new(status::ARGUMENT, "run needs a program after --"));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(stack) = stack {
        command.env("BH_STACK", stack);
    }
    if let Some(trace) = &trace {
        command.env("BH_TRACE", trace);
    }
    let directory = match profile {
        true => Some(private::temporary_directory("bh-profile").map_err(|text| Error::new(status::FILE, text))?),
        false => None,
    };
    let statistics = directory.as_ref().map(|directory| directory.join("statistics.json"));
    if let Some(statistics) = &statistics {
        command.env("BH_STATS", statistics);
    }
    let begin = Instant::now();
    let ended = command.status().map_err(|error| {
        Error::new(status::FILE, format!("'{}' cannot be started: {error}", program.to_string_lossy()))
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let text = statistics.map(|file| std::fs::read_to_string(file));
    if let Some(directory) = directory {
        // Best effort: it lies among the temporary files.
        let _ = std::fs::remove_dir_all(directory);
    }
    if let Some(text) = text {
        print(text, seconds)?;
    }
    if let Some(trace) = trace {
        eprintln!("trace: {}", trace.display());
    }
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn print(text: std::io::Result<String>, seconds: f64) -> Result<()> {
    let text = text.map_err(|error| {
        Error::new(
            status::FILE,
            format!("the program left no statistics ({error}); does it use bh, and does it end normally?"),
        )
    })?;
    let counters: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text)
        .map_err(|error| Error::new(status::FILE, format!("the statistics are damaged: {error}")))?;
    eprintln!("{:<40} {seconds:>16.3} s", "wall clock");
    for (name, value) in &counters {
        let value = value.as_u64().unwrap_or(0);
        if let Some(name) = name.strip_suffix("_ns") {
            eprintln!("{name:<40} {:>16.6} s", value as f64 * 1e-9);
        } else if name.ends_with("bytes") {
            eprintln!("{name:<40} {:>16.3} MB", value as f64 * 1e-6);
        } else {
            eprintln!("{name:<40} {value:>16}");
        }
    }
    Ok(())
}

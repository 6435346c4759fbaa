//! `bh run`: a program under the profiler.

use crate::ranks;
use bh_core::abi::status;
use bh_core::launcher::Launcher;
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
    // Where a launcher starts this program on every rank, the first one reports, for itself.
    let launcher = Launcher::find();
    let launched = launcher.is_some();
    let ranks = match launcher.is_none_or(|launcher| launcher.rank == 0) {
        true => statistics.map(|file| ranks::statistics(&file)),
        false => None,
    };
    if let Some(directory) = directory {
        // Best effort: it lies among the temporary files.
        let _ = std::fs::remove_dir_all(directory);
    }
    if let Some(ranks) = ranks {
        print(&ranks?, seconds);
    }
    if let Some(trace) = trace {
        let ranks = if launched { 1 } else { ranks::merge_traces(&trace)? };
        let of = if ranks > 1 { format!(" of {ranks} ranks") } else { String::new() };
        eprintln!("trace{of}: {}", trace.display());
    }
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Prints the counters of the first rank, and a row for each if there are several.
fn print(ranks: &[ranks::Counters], seconds: f64) {
    let Some(counters) = ranks.first() else { return };
    eprintln!("{:<40} {seconds:>16.3} s", "wall clock");
    for (name, value) in counters {
        let value = value.as_u64().unwrap_or(0);
        if let Some(name) = name.strip_suffix("_ns") {
            eprintln!("{name:<40} {:>16.6} s", value as f64 * 1e-9);
        } else if name.ends_with("bytes") {
            eprintln!("{name:<40} {:>16.3} MB", value as f64 * 1e-6);
        } else {
            eprintln!("{name:<40} {value:>16}");
        }
    }
    if ranks.len() > 1 {
        eprint!("{}", ranks::table(ranks));
    }
}

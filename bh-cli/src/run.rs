//! `bh run`: runs a program with the profiler.

use crate::ranks;
use bh_core::abi::status;
use bh_core::launcher::Launcher;
use bh_core::{Error, Result, private};
use bh_report::live::{Live, WATCH};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// The requested output, and the stack.
pub struct Wanted {
    /// Print a table of counters.
    pub profile: bool,
    /// A file for the trace.
    pub trace: Option<PathBuf>,
    /// A file for the page.
    pub report: Option<PathBuf>,
    /// Serve the page while the program runs.
    pub live: bool,
    /// The stack; by default the configured one.
    pub stack: Option<String>,
}

/// Runs the program, with statistics and trace enabled by environment variables; returns its exit status.
pub fn run(wanted: Wanted, line: &[OsString]) -> Result<ExitCode> {
    let Some((program, arguments)) = line.split_first() else {
        return Err(Error::new(status::ARGUMENT, "run needs a program after --"));
    };
    let failed = |text: String| Error::new(status::FILE, text);
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(stack) = &wanted.stack {
        command.env("BH_STACK", stack);
    }
    if let Some(trace) = &wanted.trace {
        command.env("BH_TRACE", trace);
    }
    let page = wanted.report.is_some() || wanted.live;
    let directory = match wanted.profile || page {
        true => Some(private::temporary_directory("bh-profile").map_err(failed)?),
        false => None,
    };
    if let Some(directory) = &directory {
        // The table needs only the statistics, the first of these.
        let variables = bh_report::environment(directory);
        command.envs(if page { &variables[..] } else { &variables[..1] }.iter().cloned());
    }
    // Under a launcher, this program runs on every rank; only the first one reports.
    let launcher = Launcher::find();
    let launched = launcher.is_some();
    let reports = launcher.is_none_or(|launcher| launcher.rank == 0);
    let text = line.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let live = match &directory {
        Some(directory) if wanted.live && reports => {
            command.env(WATCH.0, WATCH.1);
            Some(serve(directory, &text).map_err(failed)?)
        }
        _ => None,
    };
    let begin = Instant::now();
    let ended = command
        .status()
        .map_err(|error| failed(format!("'{}' cannot be started: {error}", program.to_string_lossy())))?;
    let seconds = begin.elapsed().as_secs_f64();
    let shown = match &directory {
        Some(directory) if reports => {
            let failure = (!ended.success()).then(|| format!("the program failed: {ended}"));
            let run = bh_report::Run { program: text, seconds, failure, running: false };
            if let Some(live) = live {
                live.end(&run);
            }
            show(&wanted, directory, &run)
        }
        _ => Ok(()),
    };
    if let Some(directory) = directory {
        // Best effort: the files are in the temporary directory.
        let _ = std::fs::remove_dir_all(directory);
    }
    shown.map_err(failed)?;
    if let Some(trace) = wanted.trace {
        let ranks = if launched { 1 } else { ranks::merge_traces(&trace)? };
        let of = if ranks > 1 { format!(" of {ranks} ranks") } else { String::new() };
        eprintln!("trace{of}: {}", trace.display());
    }
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Serves the page of a program's directory, and prints its address.
fn serve(directory: &Path, program: &str) -> std::result::Result<Live, String> {
    let live = Live::begin(directory.to_owned(), program.to_owned());
    let live = live.map_err(|error| format!("the page cannot be served: {error}"))?;
    eprintln!("watch: {}", live.address());
    Ok(live)
}

/// Shows the files of a program's directory.
fn show(wanted: &Wanted, directory: &Path, run: &bh_report::Run) -> std::result::Result<(), String> {
    if wanted.profile {
        print(&bh_report::ranks::statistics(&directory.join(bh_report::STATISTICS))?, run.seconds);
    }
    if let Some(page) = &wanted.report {
        bh_report::write(directory, page, run)?;
        eprintln!("report: {}", page.display());
    }
    Ok(())
}

/// Prints the first rank's counters that are not 0, and a row for each rank if there are several.
fn print(ranks: &[bh_report::Counters], seconds: f64) {
    let Some(counters) = ranks.first() else { return };
    eprintln!("{:<40} {seconds:>16.3} s", "wall clock");
    for (name, value) in counters {
        let value = value.as_u64().unwrap_or(0);
        if value == 0 {
            continue;
        }
        if let Some(name) = name.strip_suffix("_ns") {
            eprintln!("{name:<40} {:>16.6} s", value as f64 * 1e-9);
        } else if name.contains("bytes") {
            eprintln!("{name:<40} {:>16.3} MB", value as f64 * 1e-6);
        } else {
            eprintln!("{name:<40} {value:>16}");
        }
    }
    if ranks.len() > 1 {
        eprint!("{}", ranks::table(ranks));
    }
}

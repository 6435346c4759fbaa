//! `bh check-engine`: runs the conformance suite and the rules of conduct on any engine. Each case runs in its own
//! process with a time limit, so an engine that crashes, hangs, throws or exits fails a single case, by name.

use crate::progress::Progress;
use bh_conformance::manners::{CASES, Case, Findings, Library};
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Runs the cases of these names, or all of them.
pub fn check(library: &Path, names: &[String], limit: u64) -> Result<ExitCode> {
    let library = library
        .canonicalize()
        .map_err(|error| Error::new(status::LIBRARY, format!("'{}' cannot be read: {error}", library.display())))?;
    let cases: Vec<&Case> = match names {
        [] => CASES.iter().collect(),
        names => names.iter().map(|name| find(name)).collect::<Result<_>>()?,
    };
    let scratch = Scratch::new()?;
    let mut passed = true;
    let progress = Progress::of(cases.len() as u64);
    for (number, case) in cases.into_iter().enumerate() {
        progress.show(number as u64, case.title);
        let findings = in_a_process(case, &library, &scratch.0, Duration::from_secs(limit))?;
        progress.clear();
        findings.notes.iter().for_each(|note| println!("{note}"));
        let verdict = if findings.faults.is_empty() { "ok" } else { "FAILED" };
        println!("{}: {verdict} ({})", case.name, case.title);
        findings.faults.iter().for_each(|fault| eprintln!("{}: {fault}", case.name));
        passed &= findings.faults.is_empty();
        // An engine that does not start would fail in all cases.
        if case.name == CASES[0].name && findings.cut_short {
            eprintln!("the other cases are left out");
            break;
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find(name: &str) -> Result<&'static Case> {
    CASES.iter().find(|case| case.name == name).ok_or_else(|| {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        Error::new(status::ARGUMENT, format!("there is no case '{name}'; there are {}", names.join(", ")))
    })
}

/// The child process: runs one case and writes its findings to a file.
pub fn run_case(library: &Path, name: &str, report: &Path) -> Result<ExitCode> {
    let findings = bh_conformance::manners::run(find(name)?, &Library::new(library));
    let lines = |kind: char, texts: &[String]| -> String {
        texts.iter().map(|text| format!("{kind}{}\n", text.replace('\n', "\u{1}"))).collect()
    };
    let cut_short = if findings.cut_short { "c\n" } else { "" };
    let text = format!("{}{}{cut_short}.", lines('n', &findings.notes), lines('f', &findings.faults));
    std::fs::write(report, text)
        .map_err(|error| Error::new(status::FILE, format!("'{}' cannot be written: {error}", report.display())))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a case in a process; combines its report with the process's end.
fn in_a_process(case: &Case, library: &Path, scratch: &Path, limit: Duration) -> Result<Findings> {
    let start = |error: std::io::Error| Error::new(status::FILE, format!("a case cannot be started: {error}"));
    let (report, printed) = (scratch.join(case.name), scratch.join(format!("{}.out", case.name)));
    let output = File::create(&printed).map_err(start)?;
    let program = std::env::current_exe().map_err(start)?;
    let mut command = Command::new(program);
    command.arg("check-engine").arg(library).args(["--case", case.name, "--report"]).arg(&report);
    command.stdin(Stdio::null()).stdout(output.try_clone().map_err(start)?).stderr(output);
    let ended = wait(command.spawn().map_err(start)?, limit).map_err(start)?;
    let mut findings = read(&report);
    let printed = std::fs::read(&printed).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed[..printed.len().min(2000)]).trim_end().to_owned();
    let told = if printed.is_empty() { String::new() } else { format!(": {printed}") };
    match (ended, &findings) {
        (None, _) => findings = Some(fault(format!("does not end within {} seconds{told}", limit.as_secs()))),
        (Some(status), _) if status.signal().is_some() => {
            findings = Some(fault(format!("crashes with signal {}{told}", status.signal().unwrap_or(0))));
        }
        (Some(status), None) => {
            let code = status.code().unwrap_or(0);
            findings = Some(fault(format!("the process ends before the case does, with exit code {code}{told}")));
        }
        (Some(_), Some(_)) => {}
    }
    let mut findings = findings.unwrap_or_default();
    if findings.faults.is_empty() && !printed.is_empty() {
        findings.fault(format!("prints to the terminal{told}"));
    }
    Ok(findings)
}

fn fault(text: String) -> Findings {
    Findings { faults: vec![text], cut_short: true, ..Findings::default() }
}

/// Waits for a process, and kills it after the limit.
fn wait(mut child: Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A complete report; `None` if the case did not finish.
fn read(report: &Path) -> Option<Findings> {
    let text = std::fs::read_to_string(report).ok()?;
    let lines = text.strip_suffix('.')?.lines();
    let mut findings = Findings::default();
    for line in lines.map(|line| line.replace('\u{1}', "\n")) {
        match line.split_at_checked(1) {
            Some(("n", note)) => findings.notes.push(note.to_owned()),
            Some(("f", fault)) => findings.faults.push(fault.to_owned()),
            Some(("c", _)) => findings.cut_short = true,
            _ => {}
        }
    }
    Some(findings)
}

/// A directory for reports, removed after the check.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("bh-check-engine-{}", std::process::id()));
        std::fs::create_dir(&path)
            .map_err(|error| Error::new(status::FILE, format!("'{}' cannot be made: {error}", path.display())))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            let _ = writeln!(std::io::stderr(), "bh: '{}' stays: {error}", self.0.display());
        }
    }
}

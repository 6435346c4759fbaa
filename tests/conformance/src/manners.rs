//! An engine's behaviour beyond results: resources that it leaks, data that it keeps, data management, capabilities,
//! and effects on the process. `bh check-engine` runs each case in its own process.

mod calls;
mod cases;
mod immediate;
mod process;
mod slots;
mod witness;

use crate::{conformance, random};
use bh_core::config::Config;
use bh_core::environment;
use bh_core::error::Result;
use bh_core::stack::Stack;
use std::path::Path;

/// A case, by name.
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// The rule that it tests.
    pub title: &'static str,
    run: fn(&Library, &mut Findings) -> Result<()>,
}

/// All cases in their order.
pub const CASES: &[Case] = &[
    Case { name: "start", title: "starts and ends, says the truth of itself", run: cases::start },
    Case { name: "alone", title: "operations, types and layouts, without another engine", run: alone },
    Case { name: "over-cpu", title: "the same above the CPU engine", run: over_cpu },
    Case { name: "programs", title: "random programs", run: programs },
    Case { name: "supports", title: "the same answers to the same questions", run: cases::supports },
    Case { name: "registry", title: "loans, block ends and renames", run: cases::registry },
    Case { name: "data", title: "parts of arrays, eviction, transfers, aliases", run: cases::data },
    Case { name: "tickets", title: "work that is not done when a call returns", run: calls::tickets },
    Case { name: "exports", title: "memory of the program, and memory that it is lent", run: slots::exports },
    Case { name: "evaluate", title: "scalars that are computed at once", run: slots::evaluate },
    Case { name: "immediate", title: "operations that are carried out at once", run: immediate::immediate },
    Case { name: "predict", title: "what batches are foretold to take", run: slots::predict },
    Case { name: "reports", title: "what is reported of batches", run: slots::reports },
    Case { name: "serve", title: "serving other processes, and messages", run: slots::serve },
    Case { name: "methods", title: "methods that nobody knows", run: calls::methods },
    Case { name: "failures", title: "what is lost and what is not when an operation fails", run: cases::failures },
    Case { name: "memory", title: "memory of arrays that are gone", run: cases::memory },
    Case { name: "contexts", title: "two stacks in one process", run: cases::contexts },
];

/// The engine under test.
pub struct Library {
    path: String,
}

/// The findings of a case.
#[derive(Debug, Default)]
pub struct Findings {
    /// Violations, one line each.
    pub faults: Vec<String>,
    /// Output regardless of violations.
    pub notes: Vec<String>,
    /// The case could not be completed.
    pub cut_short: bool,
}

impl Findings {
    /// Records a violation.
    pub fn fault(&mut self, text: impl Into<String>) {
        // One line per violation; repeated ones are recorded once.
        let text = text.into().replace('\n', "\n  ");
        if self.faults.len() < 40 && !self.faults.contains(&text) {
            self.faults.push(text);
        }
    }
}

impl Library {
    /// The library of this file.
    pub fn new(path: &Path) -> Library {
        Library { path: path.display().to_string() }
    }

    /// A stack in which the engine is called `candidate`, with `more` appended to the configuration.
    fn load(&self, name: &str, stack: &str, more: &str) -> Result<Stack> {
        let paths = environment::variable_os("BH_LIBRARY_PATH").unwrap_or_default();
        let paths = std::env::split_paths(&paths).map(|path| path.display().to_string());
        let paths: Vec<String> = paths.filter(|path| !path.is_empty()).collect();
        let text = format!(
            "library_path = {paths:?}\n[stacks]\n{name} = [{stack}]\n[components.candidate]\nlibrary = {:?}\n{more}",
            self.path
        );
        let config = Config::from_text("check-engine", &text)?;
        Stack::load(&config.with_component("bh_witness", witness::component_table()), Some(name))
    }

    fn above_cpu(&self, name: &str) -> Result<Stack> {
        self.load(name, "\"fuser\", \"node\", \"candidate\", \"ve-cpu\"", "")
    }
}

/// Runs a case in this process, which should not have done anything else.
pub fn run(case: &Case, library: &Library) -> Findings {
    let mut findings = Findings::default();
    let before = process::State::now();
    if let Err(error) = (case.run)(library, &mut findings) {
        findings.fault(error.to_string());
        findings.cut_short = true;
    }
    before.compare(&mut findings);
    findings
}

fn conforms(mut stack: Stack, findings: &mut Findings) -> conformance::Summary {
    let summary = conformance::run(&mut stack, &mut |_| {});
    findings.notes.push(summary.to_string());
    summary.failures.iter().for_each(|failure| findings.fault(failure));
    summary
}

fn alone(library: &Library, findings: &mut Findings) -> Result<()> {
    let summary = conforms(library.load("alone", "\"fuser\", \"node\", \"candidate\"", "")?, findings);
    if summary.unsupported == summary.cases {
        findings.fault("the engine takes no operation at all");
    }
    Ok(())
}

fn over_cpu(library: &Library, findings: &mut Findings) -> Result<()> {
    conforms(library.above_cpu("over-cpu")?, findings);
    Ok(())
}

/// Programs that run on the engine above the CPU engine.
const PROGRAMS: u64 = 500;

fn programs(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stacks = [library.above_cpu("over-cpu")?];
    let failures: Vec<String> = (0..PROGRAMS).filter_map(|seed| random::check_seed(&mut stacks, seed).err()).collect();
    findings.notes.push(format!("over-cpu: {PROGRAMS} random programs, {} failed", failures.len()));
    failures.iter().for_each(|failure| findings.fault(failure));
    let leaks = stacks[0].message("leaks")?;
    if leaks != "0 arrays alive, 0 bytes of host memory" {
        findings.fault(format!("arrays stay when all are dropped: {leaks}"));
    }
    Ok(())
}

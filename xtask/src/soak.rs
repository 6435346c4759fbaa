//! `cargo xtask soak`: random programs with fresh seeds on all stacks, for as long as asked; what fails is kept.

use crate::command::{Failure, Outcome, cargo, line, option, root, target};
use crate::progress::Progress;
use crate::{artifacts, packages, python};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// The cargo profile of what runs.
const PROFILE: &str = "checked";

/// A test that makes programs of seeds from `BH_TEST_FIRST` on, `BH_TEST_PROGRAMS` of them, and shrinks what fails.
struct Suite {
    package: &'static str,
    file: &'static str,
    test: &'static str,
    /// The stacks that run them.
    stacks: &'static str,
    programs: u64,
}

const SUITES: &[Suite] = &[
    Suite {
        package: "bh-tests",
        file: "expressions",
        test: "patterns_equal_the_interpreter_beside_whatever_stands_there",
        stacks: "cpu: default, 2 threads, planned, direct; every eighth compiled",
        programs: 2_000,
    },
    Suite {
        package: "bh-tests",
        file: "ordinary",
        test: "ordinary_programs_equal_the_interpreter_by_default",
        stacks: "cpu: default",
        programs: 2_000,
    },
    Suite {
        package: "bh-tests",
        file: "ordinary",
        test: "ordinary_programs_equal_the_interpreter_with_every_key_at_every_value",
        stacks: "cpu: each key at each value, and pairs",
        programs: 399,
    },
    Suite {
        package: "bh-tests",
        file: "looped",
        test: "loops_read_the_same_bits_however_they_run",
        stacks: "cpu: 4 stacks, and more for some",
        programs: 300,
    },
    Suite {
        package: "bh-vem-cluster",
        file: "suites",
        test: "programs_in_several_batches_equal_the_oracle",
        stacks: "cluster: 2 to 8 ranks in turn",
        programs: 10_000,
    },
    Suite {
        package: "bh-vem-cluster",
        file: "suites",
        test: "windows_that_grow_equal_the_oracle",
        stacks: "cluster: 2 to 8 ranks in turn",
        programs: 5_000,
    },
];

/// The programs and rounds that a suite has run.
#[derive(Clone, Copy, Default)]
struct Count {
    programs: u64,
    rounds: u64,
    failures: u64,
}

/// Half of the time is for the programs in Python, if there is a Python with NumPy.
pub fn run(arguments: &[String]) -> Outcome {
    let number = |name: &str, default: u64| match option(arguments, name)? {
        Some(text) => text.parse().map_err(|_| Failure(format!("option {name} needs a number, not '{text}'"))),
        None => Ok(default),
    };
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (minutes, first) = (number("--minutes", 10)?, number("--seed", clock << 20)?);
    let report = option(arguments, "--report")?.map_or_else(|| target().join("soak"), PathBuf::from);
    std::fs::create_dir_all(&report)?;
    let python = packages::python_with_numpy();
    let share = if python.is_ok() { minutes * 30 } else { minutes * 60 };
    let mut failed = in_rust(Duration::from_secs(share), first, &report)?;
    match python {
        Ok(python) => failed |= in_python(&python, minutes.div_ceil(2), first, &report)?,
        Err(failure) => eprintln!("programs in Python are left out: {failure}"),
    }
    if failed { Err(Failure(format!("programs failed: see {}", report.display()))) } else { Ok(()) }
}

/// Runs the suites in turn until the time is over. Did one fail?
fn in_rust(time: Duration, first: u64, report: &Path) -> Outcome<bool> {
    let (mut counts, mut first) = ([Count::default(); SUITES.len()], first);
    crate::command::run(
        cargo().args(["test", "--profile", PROFILE, "--no-run", "--tests"]).args(packages::workspace()),
    )?;
    let begin = Instant::now();
    let progress = Progress::of(time.as_secs());
    while begin.elapsed() < time {
        for (suite, count) in SUITES.iter().zip(&mut counts) {
            progress.show(begin.elapsed().as_secs(), suite.test);
            if !suite.round(first, report)? {
                count.failures += 1;
            }
            count.programs += suite.programs;
            count.rounds += 1;
            first += suite.programs;
            if begin.elapsed() >= time {
                break;
            }
        }
    }
    drop(progress);
    for (suite, count) in SUITES.iter().zip(&counts) {
        let Count { programs, rounds, failures } = count;
        println!("{programs:>9} programs in {rounds} rounds, {failures} failed: {} ({})", suite.test, suite.stacks);
    }
    Ok(counts.iter().any(|count| count.failures > 0))
}

impl Suite {
    /// Runs programs from a seed on; false if one failed, which the report then has.
    fn round(&self, first: u64, report: &Path) -> Outcome<bool> {
        let mut command = cargo();
        command.args(["test", "--profile", PROFILE, "-q", "-p", self.package, "-p", packages::FEATURES]);
        let test = format!("{}::{}", self.file, self.test);
        command.args(["--test", artifacts::TESTS, "--", "--exact", &test, "--nocapture"]);
        command.env("BH_TEST_FIRST", first.to_string()).env("BH_TEST_PROGRAMS", self.programs.to_string());
        command.env("BH_TEST_LIBRARIES", target().join(PROFILE));
        let output = command.output()?;
        if output.status.success() {
            return Ok(true);
        }
        let file = report.join(format!("{}-{first}.txt", self.test));
        let seeds = format!("BH_TEST_FIRST={first} BH_TEST_PROGRAMS={} {}\n", self.programs, line(&command));
        std::fs::write(&file, [seeds.as_bytes(), &output.stdout, &output.stderr].concat())?;
        eprintln!("failed: {}", file.display());
        Ok(false)
    }
}

/// Runs the programs in Python. Did one fail?
fn in_python(python: &Path, minutes: u64, seed: u64, report: &Path) -> Outcome<bool> {
    let package = python::stage(PROFILE)?;
    let mut soak = Command::new(python);
    soak.arg("bh-bridge-numpy/tests/soak.py").current_dir(root()).env("PYTHONPATH", package);
    soak.args(["--minutes", &minutes.to_string(), "--seed", &seed.to_string(), "--report"]);
    Ok(!soak.arg(report.join("python.json")).status()?.success())
}

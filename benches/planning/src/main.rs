//! `bh-planning [FAMILY...] [--stages A,B] [--sizes 30,100]`: microseconds and steps of planning for each operation, by family,
//! number of operations and stage, one JSON object a line.

use bh_planning::families::FAMILIES;
use bh_planning::stages::{STAGES, Subject};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs of which the least time counts, and the time after which there are no more.
const RUNS: u32 = 15;
const ENOUGH: Duration = Duration::from_millis(300);

/// Seconds that this thread ran, whatever else the machine does.
fn clock() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time` only, which is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn measure(subject: &mut Subject, stage: &str) -> f64 {
    let (begin, mut least) = (Instant::now(), f64::MAX);
    for _ in 0..RUNS {
        let input = subject.input(stage);
        let run = clock();
        subject.run(stage, input);
        least = least.min((clock() - run) * 1e6);
        if begin.elapsed() > ENOUGH {
            break;
        }
    }
    least / subject.operations() as f64
}

fn main() -> ExitCode {
    let mut names: Vec<String> = Vec::new();
    let mut stages: Vec<String> = STAGES.iter().map(|name| (*name).to_owned()).collect();
    let mut sizes = vec![30, 100, 300, 1000, 3000, 10_000];
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let list = |words: &mut dyn Iterator<Item = String>| -> Vec<String> {
            words.next().unwrap_or_default().split(',').map(str::to_owned).collect()
        };
        match word.as_str() {
            "--stages" => stages = list(&mut words),
            "--sizes" => sizes = list(&mut words).iter().filter_map(|size| size.parse().ok()).collect(),
            _ => names.push(word),
        }
    }
    let unknown = |name: &&String| FAMILIES.iter().all(|(known, _)| known != *name);
    if let Some(name) = names.iter().find(unknown) {
        let known: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
        eprintln!("bh-planning: there is no family '{name}'; there are {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    if let Some(stage) = stages.iter().find(|stage| !STAGES.contains(&stage.as_str())) {
        eprintln!("bh-planning: there is no stage '{stage}'; there are {}", STAGES.join(", "));
        return ExitCode::FAILURE;
    }
    for (family, make) in FAMILIES.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|own| own == name)) {
        for &size in &sizes {
            let mut subject = Subject::new(make(size));
            let (operations, kernels) = (subject.operations(), subject.kernels());
            for stage in &stages {
                let steps = subject.steps(stage) as f64 / operations as f64;
                let time = measure(&mut subject, stage);
                println!(
                    "{{\"family\":\"{family}\",\"operations\":{operations},\"stage\":\"{stage}\",\"us_per_op\":{time:.3},\
                     \"steps_per_op\":{steps:.1},\"kernels\":{kernels}}}"
                );
            }
        }
    }
    ExitCode::SUCCESS
}

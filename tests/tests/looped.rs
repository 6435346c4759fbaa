//! Random user programs, loops among them, read the same bits lazily, fused and swept as operation by operation.

use bh_bytecode::compare::{Tolerance, compare};
use bh_core::recorder::{Options, Recorder};
use bh_tests::looped::{Looped, looped};
use bh_tests::stacks;
use std::io::Write;
use std::sync::Arc;

/// Programs in all. `BH_TEST_PROGRAMS` asks for another number.
const PROGRAMS: u64 = 3_000;
/// Parts that run side by side, each with recorders of its own.
const PARTS: u64 = 2;

/// Each operation on its own.
const PLAIN: &str = r#"
[stacks]
test = ["fuser", "node", "ve-cpu"]
[components.fuser]
algorithm = "singleton"
[components.ve-cpu]
threads = 1
jit = "off"
sweeps = "off"
overlap = "off"
"#;

/// As users have it; batches end at odd places.
const USUAL: &str = r#"
[stacks]
test = ["filter", "fuser", "node", "ve-cpu"]
[components.ve-cpu]
threads = 2
"#;

/// Strips of few rows, outputs past the caches, and kernels at the same time.
const TIGHT: &str = r#"
[stacks]
test = ["filter", "fuser", "node", "ve-cpu"]
[components.ve-cpu]
threads = 3
sweep_bytes = 3000
stream_bytes = 64
overlap = "on"
"#;

fn recorder(text: &str, options: Options) -> Arc<Recorder> {
    let config = stacks::from_text("looped", text).unwrap();
    let recorder = Recorder::new();
    let make = move || Ok(Box::new(bh_core::stack::Stack::load(&config, Some("test"))?) as Box<_>);
    recorder.start(options, make).unwrap();
    recorder
}

fn recorders() -> Vec<(&'static str, Arc<Recorder>)> {
    let options = |max_instructions, small_bytes| Options { max_instructions, small_bytes, ..Options::default() };
    vec![
        ("plain", recorder(PLAIN, Options { eager: true, ..Options::default() })),
        ("usual", recorder(USUAL, Options::default())),
        ("usual, short batches", recorder(USUAL, options(23, 0))),
        ("tight", recorder(TIGHT, options(150, 1 << 18))),
    ]
}

/// Runs a program on all recorders and compares what it reads.
fn check(recorders: &[(&str, Arc<Recorder>)], program: &Looped) -> Result<(), String> {
    let mut expected = Vec::new();
    for (at, (name, recorder)) in recorders.iter().enumerate() {
        let read = program.run(recorder).map_err(|error| format!("{name}: {error}"))?;
        if at == 0 {
            expected = read;
            continue;
        }
        for (number, ((dtype, expected), (_, actual))) in expected.iter().zip(&read).enumerate() {
            compare(*dtype, expected, actual, &Tolerance::Exact)
                .map_err(|difference| format!("{name}, array {number} that is read: {difference}"))?;
        }
    }
    Ok(())
}

fn check_part(part: u64, programs: u64) -> u64 {
    let recorders = recorders();
    let mut count = 0;
    for seed in (part..programs).step_by(PARTS as usize) {
        let mut program = looped(seed);
        let Err(mut error) = check(&recorders, &program) else {
            count += 1;
            continue;
        };
        // What fails may depend on what ran before, so it is made smaller on recorders of its own where it fails there.
        while let Some((smaller, reason)) = program
            .smaller()
            .into_iter()
            .find_map(|one| check(&self::recorders(), &one).err().map(|reason| (one, reason)))
        {
            (program, error) = (smaller, reason);
        }
        panic!("seed {seed}: {error}\n{program:?}");
    }
    for (_, recorder) in recorders {
        recorder.shutdown().unwrap();
    }
    count
}

#[test]
fn loops_read_the_same_bits_however_they_run() {
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap());
    let checked: u64 = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..PARTS).map(|part| scope.spawn(move || check_part(part, programs))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    });
    writeln!(std::io::stdout(), "{checked} random user programs read the same bits on 4 stacks").unwrap();
    assert_eq!(checked, programs);
}

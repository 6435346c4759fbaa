//! Planning levels change no bits: random user programs read the same at each forced level, at levels that follow from
//! work and repetition, and in every run.

use bh_bytecode::DType;
use bh_bytecode::compare::{Tolerance, compare};
use bh_recorder::{Options, Recorder};
use bh_tests::looped::{Looped, Run, looped};
use bh_tests::stacks;
use std::sync::Arc;

/// Programs; `BH_TEST_PROGRAMS` sets their number, `BH_TEST_FIRST` the first one.
const PROGRAMS: u64 = 20;
/// Runs of each program: enough for little work to be fully planned.
const TIMES: usize = 36;
/// The levels of the fuser and of the engine.
const LEVELS: [(&str, &str); 5] =
    [("full", "full"), ("auto", "auto"), ("direct", "direct"), ("linear", "direct"), ("linear", "full")];

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A recorder whose batches end with the program, or after `max_instructions` operations.
fn recorder((fuser, engine): (&str, &str), max_instructions: usize) -> Arc<Recorder> {
    let text = format!(
        "[stacks]\ntest = [\"filter\", \"fuser\", \"node\", \"ve-cpu\"]\n[components.fuser]\nplanning = {fuser:?}\n\
         [components.ve-cpu]\nplanning = {engine:?}\nthreads = 2\njit = \"off\"\n"
    );
    let config = stacks::from_text("levels", &text).unwrap();
    let recorder = Recorder::new();
    let make = move || Ok(Box::new(bh_core::stack::Stack::load(&config, Some("test"))?) as Box<_>);
    recorder.start(Options { max_instructions, ..Options::default() }, make).unwrap();
    recorder
}

/// The reads of a program.
fn read(program: &Looped, recorder: &Recorder) -> Vec<(DType, Vec<u8>)> {
    let mut run = Run::new(program, recorder);
    (0..program.rounds()).for_each(|_| run.step().unwrap());
    run.finish().unwrap()
}

fn counter(recorder: &Recorder, name: &str) -> u64 {
    recorder.sync().unwrap();
    recorder.with_stack(|stack| Ok(stack.stats().get(name).unwrap_or(0))).unwrap()
}

#[test]
fn programs_read_the_same_bits_at_each_level_and_each_time() {
    let recorders = LEVELS.map(|levels| (levels, [64, 1000].map(|most| recorder(levels, most))));
    let first = variable("BH_TEST_FIRST", 0);
    for seed in first..first + variable("BH_TEST_PROGRAMS", PROGRAMS) {
        let program = looped(seed);
        let mut expected = None;
        for ((levels, recorders), time) in (0..TIMES).flat_map(|time| recorders.iter().map(move |all| (all, time))) {
            let actual = read(&program, &recorders[time % 2]);
            let expected: &Vec<(DType, Vec<u8>)> = expected.get_or_insert_with(|| actual.clone());
            assert_eq!(expected.len(), actual.len());
            for ((dtype, expected), (_, actual)) in expected.iter().zip(&actual) {
                compare(*dtype, expected, actual, &Tolerance::Exact).unwrap_or_else(|error| {
                    panic!("seed {seed}, levels {levels:?}, time {time}: {error}\n{program:?}")
                });
            }
        }
    }
    // All levels occur if they follow from the work; a forced level is the only one.
    let found = |name: &str| recorders.each_ref().map(|(_, [recorder, _])| counter(recorder, name) > 0);
    assert_eq!(found("fuser.left_direct"), [false, true, true, false, false]);
    assert_eq!(found("fuser.planned_linear"), [false, false, false, true, true]);
    assert_eq!(found("fuser.planned_full"), [true, true, false, false, false]);
    recorders.iter().flat_map(|(_, recorders)| recorders).for_each(|recorder| recorder.shutdown().unwrap());
}

//! Programs that cycle through many different batches plan each of them once: filter, fuser and engine keep their
//! results within their limits of memory.

use bh_bytecode::{Constant, Opcode};
use bh_recorder::{ArrayId, Input, Location, Options, Recorder};
use bh_tests::stacks;
use std::sync::Arc;

/// Different batches per cycle; with `BH_TEST_ALL` ten times as many.
const BATCHES: i64 = 1_000;
/// Counters of plans and kernels made.
const MADE: [&str; 3] = ["filter.misses", "fuser.cache_misses", "ve-cpu.plan misses"];

fn recorder(planning: &str) -> Arc<Recorder> {
    let text = format!(
        "[stacks]\ntest = [\"filter\", \"fuser\", \"node\", \"ve-cpu\"]\n[components.fuser]\nplanning = {planning:?}\n\
         [components.ve-cpu]\nplanning = {planning:?}\njit = \"off\"\n"
    );
    let config = stacks::from_text("cycles", &text).unwrap();
    let recorder = Recorder::new();
    let make = move || Ok(Box::new(bh_core::stack::Stack::load(&config, Some("test"))?) as Box<_>);
    recorder.start(Options { immediate_bytes: 0, ..Options::default() }, make).unwrap();
    recorder
}

/// The values of these counters.
fn made(recorder: &Recorder) -> [u64; 3] {
    recorder.sync().unwrap();
    recorder.with_stack(|stack| Ok(MADE.map(|name| stack.stats().get(name).unwrap_or(0)))).unwrap()
}

/// Runs all batches once, each on a view of another length.
fn cycle(recorder: &Recorder, array: ArrayId, batches: i64) {
    let number = |value: f64| Input::Constant(Constant::from_value(value));
    for length in 1..=batches {
        let window = recorder.derive(array, |view| view.slice(0, Some(0), Some(length), 1)).unwrap();
        let operate = |opcode, other| {
            recorder.operate(opcode, 0, window, &[Input::Array(window), other], Location::UNKNOWN).unwrap();
        };
        operate(Opcode::Multiply, number(0.5));
        operate(Opcode::Add, number(1.5));
        operate(Opcode::Multiply, Input::Array(window));
        recorder.free(window).unwrap();
        recorder.flush().unwrap();
    }
}

/// The increase of the counters in each of `count` rounds.
fn rounds(planning: &str, count: usize) -> Vec<[u64; 3]> {
    let batches = if std::env::var_os("BH_TEST_ALL").is_some() { 10 * BATCHES } else { BATCHES };
    let recorder = recorder(planning);
    let array = recorder.full(Constant::from_value(0.25), &[batches], Location::UNKNOWN).unwrap();
    recorder.sync().unwrap();
    let all = (0..count).map(|_| {
        let before = made(&recorder);
        cycle(&recorder, array, batches);
        let after = made(&recorder);
        std::array::from_fn(|at| after[at] - before[at])
    });
    let all = all.collect();
    recorder.free(array).unwrap();
    recorder.shutdown().unwrap();
    all
}

#[test]
fn what_is_planned_is_found_from_the_second_round_on() {
    let all = rounds("full", 3);
    // The filter follows the level that batches request.
    assert!(all[0][1..].iter().all(|&made| made >= BATCHES as u64), "{all:?}");
    assert_eq!(all[1..], [[0; 3]; 2], "{all:?}");
}

#[test]
fn what_becomes_worth_it_is_planned_once() {
    // Little work is not planned until it has repeated often enough to pay for plans, at most 16 times.
    let all = rounds("auto", 19);
    assert_eq!(all[0], [0; 3], "{all:?}");
    for stage in 0..MADE.len() {
        let made: u64 = all.iter().map(|made| made[stage]).sum();
        assert!((BATCHES as u64..BATCHES as u64 * 3 / 2).contains(&made), "{}: {all:?}", MADE[stage]);
    }
    assert_eq!(all[17..], [[0; 3]; 2], "{all:?}");
}

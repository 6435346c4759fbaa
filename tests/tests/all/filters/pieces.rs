//! Programs with arrays in pieces, cut into boxes: the interpreter's results, however small the arrays are, and fewer copies.

use bh_bytecode::random::Program;
use bh_bytecode::validate;
use bh_core::stack::Stack;
use bh_filter::passes::{ALL, Options, Pass};
use bh_tests::ordinary::{self, Sizes};
use bh_tests::{run, stacks};

/// Programs for the pass alone, and for all passes. `BH_TEST_PROGRAMS` asks for another number.
const PROGRAMS: u64 = 3_000;
/// Stacks, some of which are clusters.
const STACKS: [&str; 9] =
    ["cpu", "cpu-linear", "cpu-plain", "shadow", "split", "cluster-2", "cluster-3", "cluster-7", "siblings"];
/// Programs on each stack.
const ON_STACKS: u64 = 250;

fn programs(default: u64) -> u64 {
    std::env::var("BH_TEST_PROGRAMS").map_or(default, |text| text.parse().unwrap())
}

/// Runs passes over random programs, and the results on the interpreter. Returns how many instructions they changed.
fn check(passes: &[Pass]) -> usize {
    let mut changes = 0;
    for seed in 0..programs(PROGRAMS) {
        let program = ordinary::moved(seed, Sizes::Small);
        validate(&program.batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: the test's program: {error}"));
        let oracle = program.oracle().unwrap();
        let mut batch = program.batch.clone();
        changes += passes.iter().map(|pass| (pass.run)(&mut batch, &Options::default())).sum::<usize>();
        validate(&batch.as_ref()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let rewritten = Program { batch, memory: program.memory.clone() };
        let actual = rewritten.oracle().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        oracle.check(&program.batch, &actual.memory).unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
    }
    changes
}

#[test]
fn arrays_in_pieces_keep_their_elements() {
    let pass: Vec<Pass> = ALL.iter().filter(|pass| pass.name == "pieces").map(|pass| Pass { ..*pass }).collect();
    assert!(check(&pass) > programs(PROGRAMS) as usize);
}

#[test]
fn arrays_in_pieces_keep_their_elements_with_all_passes() {
    assert!(check(ALL) > programs(PROGRAMS) as usize);
}

#[test]
fn arrays_in_pieces_are_the_same_on_all_stacks() {
    for name in STACKS {
        let all = vec![("BH_FILTER_PIECES_FROM".to_owned(), "1".to_owned())];
        let config = stacks::config(name).unwrap().with_environment(all);
        let mut stack = Stack::load(&config, Some(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        for seed in 0..programs(ON_STACKS) {
            let program = ordinary::moved(seed, Sizes::Small);
            let oracle = program.oracle().unwrap();
            let memory =
                run::run(&mut stack, &program).unwrap_or_else(|error| panic!("stack {name}, seed {seed}: {error}"));
            oracle.check(&program.batch, &memory).unwrap_or_else(|text| panic!("stack {name}, seed {seed}: {text}"));
        }
    }
}

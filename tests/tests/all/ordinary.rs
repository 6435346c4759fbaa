//! Ordinary programs agree with the interpreter: by default, and with every key at its other values.

use bh_core::stack::Stack;
use bh_tests::ordinary::{self, Sizes};
use bh_tests::run::Cuts;
use bh_tests::settings::{self, Configuration};
use bh_tests::{random, stacks};
use std::io::Write;

/// Programs with the default configuration. `BH_TEST_PROGRAMS` sets their number, `BH_TEST_FIRST` the first one.
const PROGRAMS: u64 = 1_500;
/// Programs for each other configuration.
const EACH: u64 = 3;
/// One pair of keys in `PAIRS` is tested; all of them with `BH_TEST_ALL`.
const PAIRS: usize = 12;
/// Parallel parts, each with its own stacks.
const PARTS: usize = 2;

fn load(configuration: &Configuration) -> Stack {
    let text = format!("[stacks]\nit = ['filter', 'fuser', 'node', 've-cpu']\n{}", configuration.sections);
    let config = stacks::from_text("ordinary.toml", &text).unwrap_or_else(|error| panic!("{configuration:?}: {error}"));
    Stack::load(&config, Some("it")).unwrap_or_else(|error| panic!("{configuration:?}: {error}"))
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn check(stack: &mut Stack, configuration: &Configuration, seed: u64) {
    let program = ordinary::program(seed, Sizes::Ordinary);
    let name = format!("{}, seed {seed}", configuration.name);
    let stack = std::slice::from_mut(stack);
    let outcome = match seed % 3 {
        0 => random::check_cut(
            stack,
            &program,
            &name,
            Cuts { length: 1 + (seed / 3 % 9) as usize, reads: seed.is_multiple_of(2) },
        ),
        _ => random::check_program(stack, &program, &name),
    };
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn in_parts(part: impl Fn(usize) -> u64 + Sync) -> u64 {
    std::thread::scope(|scope| {
        let part = &part;
        let parts: Vec<_> = (0..PARTS).map(|at| scope.spawn(move || part(at))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    })
}

#[test]
fn ordinary_programs_equal_the_interpreter_by_default() {
    let (programs, first) = (variable("BH_TEST_PROGRAMS", PROGRAMS), variable("BH_TEST_FIRST", 0));
    let default = &settings::configurations()[0];
    let checked = in_parts(|part| {
        let mut stack = load(default);
        let seeds = (first..first + programs).skip(part).step_by(PARTS);
        seeds.map(|seed| check(&mut stack, default, seed)).count() as u64
    });
    writeln!(std::io::stdout(), "{checked} ordinary programs equal the interpreter").unwrap();
    assert_eq!(checked, programs);
}

#[test]
fn ordinary_programs_equal_the_interpreter_with_every_key_at_every_value() {
    let first = variable("BH_TEST_FIRST", 0);
    let all = settings::configurations();
    let every = if first > 0 || std::env::var_os("BH_TEST_ALL").is_some() { 1 } else { PAIRS };
    let is_single = |it: &Configuration| !it.name.contains(", ");
    let chosen: Vec<&Configuration> =
        all.iter().enumerate().filter(|(at, it)| is_single(it) || at % every == 0).map(|(_, it)| it).collect();
    let times = variable("BH_TEST_PROGRAMS", EACH * chosen.len() as u64) / EACH;
    let checked = in_parts(|part| {
        let mut count = 0;
        for turn in (first / EACH..first / EACH + times).skip(part).step_by(PARTS) {
            let configuration = chosen[turn as usize % chosen.len()];
            let mut stack = load(configuration);
            for seed in EACH * turn..EACH * (turn + 1) {
                check(&mut stack, configuration, seed);
                count += 1;
            }
        }
        count
    });
    assert_eq!(checked, EACH * times);
    let text = format!("{checked} ordinary programs equal the interpreter with {} configurations", chosen.len());
    writeln!(std::io::stdout(), "{text}").unwrap();
}

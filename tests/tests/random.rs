//! Random programs: all stacks give what the oracle gives.

use bh_core::stack::Stack;
use bh_tests::{random, stacks};
use std::io::Write;

/// Programs in all; each runs on every stack. `BH_TEST_PROGRAMS` asks for another number.
const PROGRAMS: u64 = 20_000;

/// Parts that run side by side, each with stacks of its own.
const PARTS: u64 = 2;

fn check_part(part: u64, programs: u64) -> u64 {
    let load = |name: &&str| stacks::load(name).unwrap_or_else(|error| panic!("stack {name}: {error}"));
    let mut stacks: Vec<Stack> = stacks::STACKS.iter().map(load).collect();
    let mut count = 0;
    for seed in (part..programs).step_by(PARTS as usize) {
        if let Err(error) = random::check_seed(&mut stacks, seed) {
            panic!("{error}");
        }
        count += 1;
    }
    for stack in &mut stacks {
        if stack.name() == "overlap" {
            let overlapped = stack.stats().get("ve-cpu.kernels overlapped").unwrap_or(0);
            assert!(overlapped > count, "{overlapped} kernels at the same time in {count} programs");
        }
        let leaks = stack.message("leaks").unwrap();
        assert_eq!(leaks.lines().last(), Some("0 arrays alive, 0 bytes of host memory"), "stack {}", stack.name());
    }
    count
}

#[test]
fn stacks_equal_the_oracle() {
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap());
    let checked: u64 = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..PARTS).map(|part| scope.spawn(move || check_part(part, programs))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    });
    // Past the capture of the test harness: how much ran is part of the result.
    let stacks = stacks::STACKS.join(", ");
    writeln!(std::io::stdout(), "{checked} random programs equal the oracle on {stacks}").unwrap();
    assert_eq!(checked, programs);
}

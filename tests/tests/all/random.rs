//! Random programs: all stacks agree with the oracle.

use bh_core::stack::Stack;
use bh_tests::{random, stacks};
use std::io::Write;

/// Programs in total; each runs on every stack. `BH_TEST_PROGRAMS` sets their number.
const PROGRAMS: u64 = 20_000;

/// Parallel parts, each with its own stacks.
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
    // Bypasses the test harness's capture: the amount of tests is part of the result.
    let stacks = stacks::STACKS.join(", ");
    writeln!(std::io::stdout(), "{checked} random programs equal the oracle on {stacks}").unwrap();
    assert_eq!(checked, programs);
}

/// Programs on a device with memory for few arrays.
const CROWDED: u64 = 1_000;

#[test]
fn arrays_make_room_for_each_other_on_a_device() {
    let text = "[stacks]\nit = ['filter', 'fuser', 'node', 'shadow', 've-cpu']\n";
    let text = format!("{text}[components.shadow]\nmemory_bytes = 2000\nrefuse = 0.1\nrenames = true\ndelay_us = 0\n");
    let config = stacks::from_text("crowded.toml", &text).unwrap();
    let mut stacks = [Stack::load(&config, Some("it")).unwrap()];
    for seed in 0..CROWDED {
        if let Err(error) = random::check_seed(&mut stacks, seed) {
            panic!("{error}");
        }
    }
    let evictions = stacks[0].stats().get("shadow.evictions").unwrap_or(0);
    writeln!(std::io::stdout(), "{evictions} arrays made room for others in {CROWDED} programs").unwrap();
    assert!(evictions > CROWDED / 10, "only {evictions} arrays made room for others");
    assert_eq!(stacks[0].message("leaks").unwrap(), "0 arrays alive, 0 bytes of host memory");
}

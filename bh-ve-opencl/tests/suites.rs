//! The conformance suite and random programs on the OpenCL engine alone, so that nothing can fall through to another
//! engine. A sample by default, as drivers take long to build kernels; all with `BH_TEST_OPENCL=all`.

mod support;

use bh_core::stack::Stack;
use bh_tests::{conformance, random, stacks};
use std::io::Write;
use support::alone;

/// One of so many cases of the conformance suite is in the sample.
const STEP: usize = 29;
/// Random programs of the sample.
const PROGRAMS: u64 = 60;

fn all() -> bool {
    std::env::var("BH_TEST_OPENCL").is_ok_and(|text| text == "all")
}

/// The stack, unless the machine has no OpenCL; that is said.
fn load(name: &str) -> Option<Stack> {
    match stacks::load(name) {
        Ok(stack) => Some(stack),
        Err(error) => {
            assert!(error.to_string().contains("OpenCL"), "{error}");
            say(format_args!("left out: {error}"));
            None
        }
    }
}

#[test]
fn conforms() {
    let _alone = alone();
    let Some(mut stack) = load("opencl-only") else { return };
    let step = if all() { 1 } else { std::env::var("BH_TEST_STEP").map_or(STEP, |text| text.parse().unwrap()) };
    let opcodes = bh_bytecode::Opcode::ALL;
    let summary = conformance::run_sample(&mut stack, opcodes, step, &mut |line| eprintln!("{line}"));
    let kernels = stack.stats().get("opencl.kernels").unwrap_or(0);
    say(format_args!("{summary}, {kernels} kernels"));
    let shown: Vec<&str> = summary.failures.iter().take(20).map(String::as_str).collect();
    assert!(summary.passed(), "{summary}\n{}", shown.join("\n"));
    assert_eq!(summary.unsupported, 0, "{summary}");
    assert!(kernels as usize > summary.cases / 2, "{kernels} kernels of {} cases", summary.cases);
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

#[test]
fn random_programs_equal_the_oracle() {
    let _alone = alone();
    let Some(stack) = load("opencl-only") else { return };
    let mut stacks = [stack];
    let programs =
        if all() { 2000 } else { std::env::var("BH_TEST_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap()) };
    for seed in 0..programs {
        random::check_seed(&mut stacks, seed).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(stacks[0].message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

/// Prints past the capture of the test harness: what was left out is part of the result.
fn say(text: std::fmt::Arguments<'_>) {
    let mut output = std::io::stdout();
    writeln!(output, "{text}").unwrap();
}

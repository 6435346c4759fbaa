//! Every opcode × legal type × memory layout on every stack, one line per stack.

use bh_tests::{conformance, stacks};
use std::io::Write;

/// Runs the suite on one stack and fails with the first differences.
fn conforms(name: &str) {
    let mut stack = stacks::load(name).unwrap_or_else(|error| panic!("stack {name}: {error}"));
    let summary = conformance::run(&mut stack, &mut |_| {});
    // Past the capture of the test harness: how much ran is part of the result.
    writeln!(std::io::stdout(), "{summary}").unwrap();
    let shown: Vec<&str> = summary.failures.iter().take(20).map(String::as_str).collect();
    assert!(summary.passed(), "{summary}\n{}", shown.join("\n"));
    assert_eq!(summary.unsupported, 0, "{summary}");
    assert!(summary.cases > 5000, "the suite has shrunk to {} cases", summary.cases);
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
}

#[test]
fn interp() {
    conforms("interp");
}

#[test]
fn cpu() {
    conforms("cpu");
}

#[test]
fn cpu_plain() {
    conforms("cpu-plain");
}

#[test]
fn shadow() {
    conforms("shadow");
}

#[test]
fn split() {
    conforms("split");
}

#[test]
fn compiled() {
    conforms("jit");
}

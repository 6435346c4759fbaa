//! Every opcode × legal type × memory layout on every stack, one line per stack.

use bh_core::stack::Stack;
use bh_tests::{conformance, stacks};
use std::io::Write;

/// Runs the suite on one stack and fails with the first differences.
fn conforms(name: &str) {
    passes(stacks::load(name).unwrap_or_else(|error| panic!("stack {name}: {error}")));
}

/// The CPU engine with an instruction set other than the machine's best.
fn conforms_on(isa: &str) {
    let text = format!("[stacks]\nit = ['filter', 'fuser', 'node', 've-cpu']\n[components.ve-cpu]\nisa = '{isa}'\n");
    let config = stacks::from_text("isa.toml", &text).unwrap();
    match Stack::load(&config, Some("it")) {
        Ok(stack) => passes(stack),
        // Only a machine without the instructions skips the suite, with a message.
        Err(error) => assert!(error.to_string().contains("an instruction set that this processor has"), "{error}"),
    }
}

fn passes(mut stack: Stack) {
    let summary = conformance::run(&mut stack, &mut |_| {});
    // Bypasses the test harness's capture: the amount of tests is part of the result.
    let mut out = std::io::stdout();
    writeln!(out, "{summary}").unwrap();
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

#[cfg(target_arch = "x86_64")]
#[test]
fn cpu_with_avx2() {
    conforms_on("avx2");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn cpu_with_the_x86_64_baseline() {
    conforms_on("sse2");
}

#[test]
fn cpu_in_plain_rust() {
    conforms_on("portable");
}

#[test]
fn cpu_plain() {
    conforms("cpu-plain");
}

#[test]
fn cpu_linear() {
    conforms("cpu-linear");
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
fn cluster_of_2() {
    conforms("cluster-2");
}

#[test]
fn cluster_of_3() {
    conforms("cluster-3");
}

#[test]
fn cluster_of_4() {
    conforms("cluster-4");
}

#[test]
fn cluster_of_7() {
    conforms("cluster-7");
}

#[test]
fn siblings() {
    conforms("siblings");
}

#[test]
fn compiled() {
    conforms("jit");
}

//! Machines without a device of CUDA: one sentence says why there is none, and the next engine takes over.

use bh_core::stack::Stack;
use bh_tests::{conformance, stacks};

/// A stack of these components below the node, unless there is a device.
fn without_a_device(below: &str) -> Option<bh_core::Result<Stack>> {
    let text = format!("[stacks]\nit = ['filter', 'fuser', 'node', {below}]\n");
    let config = stacks::from_text("cuda-tests.toml", &text).unwrap();
    let mut stack = Stack::load(&config, Some("it"));
    let info = stack.as_mut().map_or(String::new(), |stack| stack.message("info").unwrap());
    if info.contains("CUDA device 0") {
        crate::say(format_args!("left out: there is a device"));
        return None;
    }
    Some(stack)
}

/// Why there is no device, in one sentence.
fn is_reason(text: &str) -> bool {
    ["NVIDIA driver", "NVRTC", "CUDA device"].iter().any(|word| text.contains(word)) && text.trim().lines().count() == 1
}

#[test]
fn the_next_engine_takes_over_and_one_sentence_says_why() {
    let Some(stack) = without_a_device("'cuda', 'interp'") else { return };
    let mut stack = stack.unwrap();
    let summary = conformance::run_opcodes(&mut stack, &[bh_bytecode::Opcode::Add], &mut |line| eprintln!("{line}"));
    assert!(summary.passed() && summary.cases > 10 && summary.unsupported == 0, "{summary}");
    let info = stack.message("info").unwrap();
    let line = info.lines().find(|line| line.starts_with("CUDA device: none (")).unwrap_or_default();
    assert!(is_reason(line), "{info}");
    assert!(is_reason(&stack.message("devices").unwrap()));
    assert_eq!(stack.message("device count").unwrap(), "0");
    assert_eq!(stack.stats().get("cuda.kernels").unwrap_or(0), 0);
}

#[test]
fn alone_it_is_an_error() {
    let Some(stack) = without_a_device("'cuda'") else { return };
    let error = stack.map(|_| ()).unwrap_err().to_string();
    assert!(is_reason(&error), "{error}");
}

#[test]
fn another_engine_takes_its_place() {
    let Some(stack) = without_a_device("'cuda|interp'") else { return };
    let mut stack = stack.unwrap();
    let summary = conformance::run_opcodes(&mut stack, &[bh_bytecode::Opcode::Add], &mut |line| eprintln!("{line}"));
    assert!(summary.passed(), "{summary}");
    assert!(!stack.message("info").unwrap().contains("CUDA"), "both are in the chain");
}

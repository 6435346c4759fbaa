//! Shared by the tests of the engine: stacks of their own configuration, one test at a time.
#![allow(dead_code, reason = "each test program uses some")]

use bh_core::stack::Stack;
use bh_tests::stacks;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A stack with these components below the node and these keys of the engine, whose groups have 16 items.
pub fn load(below: &str, keys: &str) -> Option<Stack> {
    load_with_groups(16, below, keys)
}

/// As [`load`], with this many items in a group.
pub fn load_with_groups(group: usize, below: &str, keys: &str) -> Option<Stack> {
    let text = format!(
        "[stacks]\nit = ['filter', 'fuser', 'node', {below}]\n[components.opencl]\ndevice = 'cpu'\ngroup = {group}\n{keys}\n"
    );
    let config = stacks::from_text("opencl-tests.toml", &text).unwrap();
    match Stack::load(&config, Some("it")) {
        Ok(stack) => Some(stack),
        Err(error) => {
            assert!(stacks::is_absent(&error), "{error}");
            // Past the capture of the test harness: what was left out is part of the result.
            let mut output = std::io::stdout();
            writeln!(output, "left out: {error}").unwrap();
            None
        }
    }
}

pub fn count(stack: &Stack, name: &str) -> u64 {
    stack.stats().get(&format!("{}.{name}", stacks::driver())).unwrap_or(0)
}

/// One test at a time: PoCL does not bear contexts that come and go on several threads. It builds kernels without optimisation.
pub fn alone() -> MutexGuard<'static, ()> {
    locked(true)
}

/// As [`alone`], with kernels as programs of users have them, for many random programs: without optimisation, some of PoCL's kernels of
/// complex powers read a null pointer.
pub fn alone_and_optimised() -> MutexGuard<'static, ()> {
    locked(false)
}

fn locked(quickly: bool) -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: tests that use a driver hold the lock; the others, and the harness, read the environment through `std::env`.
    unsafe { bh_tests::quick::build_quickly(quickly) };
    guard
}

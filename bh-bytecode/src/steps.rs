//! Counts what planning looks at: candidates, pairs of views, instructions. Planners add to it, and tests read it to see that
//! their work grows no faster than programs do, which no clock can tell.

use std::cell::Cell;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Adds `count` steps of this thread.
#[inline]
pub fn add(count: usize) {
    TAKEN.with(|taken| taken.set(taken.get().wrapping_add(count as u64)));
}

/// The steps of this thread so far.
pub fn taken() -> u64 {
    TAKEN.with(Cell::get)
}

//! What the search for windows may look at in a batch. It ends where that is used up, so that it grows no faster than batches.

use bh_bytecode::steps;
use std::cell::Cell;

/// Looks that are left.
pub(super) struct Effort {
    left: Cell<usize>,
}

impl Effort {
    pub(super) fn new(most: usize) -> Effort {
        Effort { left: Cell::new(most) }
    }

    /// Counts what is looked at.
    pub(super) fn look(&self, count: usize) {
        steps::add(count);
        self.left.set(self.left.get().saturating_sub(count));
    }

    /// Takes `count` off what is left; if that is not there, all is used up.
    pub(super) fn afford(&self, count: usize) -> bool {
        let enough = count < self.left.get();
        if enough {
            self.look(count);
        } else {
            self.left.set(0);
        }
        enough
    }

    /// Is all used up?
    pub(super) fn spent(&self) -> bool {
        self.left.get() == 0
    }
}

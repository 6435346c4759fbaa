//! The limit of a search's steps in a batch. The search ends there, so that it grows no faster than batches.

use bh_bytecode::steps;
use std::cell::Cell;

/// Steps that are left.
pub(crate) struct Effort {
    left: Cell<usize>,
}

impl Effort {
    pub(crate) fn new(most: usize) -> Effort {
        Effort { left: Cell::new(most) }
    }

    /// Counts steps.
    pub(crate) fn look(&self, count: usize) {
        steps::add(count);
        self.left.set(self.left.get().saturating_sub(count));
    }

    /// Takes `count` steps; if fewer are left, none is left.
    pub(crate) fn afford(&self, count: usize) -> bool {
        let enough = count < self.left.get();
        if enough {
            self.look(count);
        } else {
            self.left.set(0);
        }
        enough
    }

    /// Is no step left?
    pub(crate) fn spent(&self) -> bool {
        self.left.get() == 0
    }
}

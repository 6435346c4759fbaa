//! Working memory of one participant of a kernel.

use crate::block::{Aligned, BlockScratch};

/// Working memory of one nest.
pub(crate) struct NestScratch {
    pub(crate) block: BlockScratch,
    /// Lanes of folds.
    pub(crate) lanes: Aligned,
    /// Where the lanes of each fold are.
    pub(crate) accumulators: Vec<*mut u8>,
    /// Slot positions at two levels of the loop nest.
    pub(crate) positions: [Vec<*mut u8>; 2],
    /// Indices of the loops around lines.
    pub(crate) indices: [Vec<i64>; 2],
}

/// Working memory of one participant.
pub(crate) struct Scratch {
    pub(crate) nest: NestScratch,
    /// Line buffers: rows of arrays that a tile keeps.
    pub(crate) rows: Aligned,
    /// Where the slots of a chain's nest begin.
    pub(crate) slots: Vec<*mut u8>,
}

// SAFETY: the pointers are only meaningful while a kernel runs.
unsafe impl Send for Scratch {}

impl Scratch {
    pub(crate) const fn new() -> Scratch {
        let nest = NestScratch {
            block: BlockScratch::new(),
            lanes: Aligned::empty(),
            accumulators: Vec::new(),
            positions: [const { Vec::new() }; 2],
            indices: [const { Vec::new() }; 2],
        };
        Scratch { nest, rows: Aligned::empty(), slots: Vec::new() }
    }
}

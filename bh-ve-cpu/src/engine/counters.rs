//! The engine's counters.

use crate::plan::TilePlan;
use bh_core::{Counter, Host};

/// The counters of batches that run.
pub(super) struct Counters {
    pub(super) kernels: Counter,
    pub(super) at_once: Counter,
    pub(super) plan_hits: Counter,
    pub(super) plan_misses: Counter,
    pub(super) refused_windows: Counter,
    windows: Counter,
    window_kernels: Counter,
    tilings: Counter,
    tiled_kernels: Counter,
    saved_bytes: Counter,
}

impl Counters {
    pub(super) fn new(host: Host) -> Counters {
        Counters {
            kernels: host.counter("kernels"),
            at_once: host.counter("kernels run at once"),
            plan_hits: host.counter("plan hits"),
            plan_misses: host.counter("plan misses"),
            refused_windows: host.counter("windows refused"),
            windows: host.counter("windows"),
            window_kernels: host.counter("kernels in windows"),
            tilings: host.counter("tilings"),
            tiled_kernels: host.counter("kernels in tiles"),
            saved_bytes: host.counter("bytes saved by windows"),
        }
    }

    /// A chain has run.
    pub(super) fn chain(&self, plan: &TilePlan) {
        let chain = &plan.chain;
        let (chains, kernels, count) = match chain.borders {
            Some(_) => (self.windows, self.window_kernels, chain.blocks.end - chain.blocks.start),
            None => (self.tilings, self.tiled_kernels, chain.kernels),
        };
        chains.add(1);
        kernels.add(u64::from(count));
        self.saved_bytes.add(plan.saved());
    }
}

//! What one stack shares among its components: memory, statistics, the trace, the log level and base ids.

use crate::memory::Memory;
use crate::stats::Stats;
use crate::trace::Trace;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The services of one stack. Every method may be called from any thread.
pub struct Services {
    memory: Memory,
    stats: Stats,
    trace: Option<Trace>,
    log_level: u32,
    next_base: Arc<AtomicU64>,
    timing: bool,
}

impl Services {
    /// Services with these parts; `timing` asks for the time spent in each component.
    pub fn new(memory: Memory, trace: Option<Trace>, log_level: u32, timing: bool) -> Arc<Services> {
        let timing = timing || trace.is_some();
        let stats = Stats::default();
        Arc::new(Services { memory, stats, trace, log_level, next_base: Arc::new(AtomicU64::new(1)), timing })
    }

    /// Host memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The trace, if one is wanted.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Is the time spent in each component wanted?
    pub fn timing(&self) -> bool {
        self.timing
    }

    /// A new base id, never 0 and never given twice.
    #[inline]
    pub fn new_base_id(&self) -> u64 {
        self.next_base.fetch_add(1, Ordering::Relaxed)
    }

    /// The counter that base ids come from.
    pub fn base_ids(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.next_base)
    }

    /// Writes a line to the log if the level is wanted; see [`crate::abi::log_level`].
    pub fn log(&self, level: u32, component: &str, text: &str) {
        if level <= self.log_level {
            let name = crate::log::level_name(level);
            eprintln!("bh: {name}: {component}: {text}");
        }
    }
}

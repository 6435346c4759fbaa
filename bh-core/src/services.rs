//! The state that the components of a stack share: memory, statistics, the trace, the log level and base ids.

mod frozen;

pub use frozen::FrozenServices;

use crate::abi::ProgressFn;
use crate::memory::Memory;
use crate::stats::{Snapshot, Stats};
use crate::trace::Trace;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The services of one stack. Every method may be called from any thread.
pub struct Services {
    memory: Memory,
    stats: Stats,
    trace: Option<Trace>,
    log_level: u32,
    next_base: Arc<AtomicU64>,
    timing: bool,
    progress: Progress,
    handles: Handles,
}

/// The functions that engines call between chunks, if any.
#[derive(Default)]
struct Progress {
    /// Whether a function is set; read without the lock.
    wanted: AtomicBool,
    function: Mutex<Option<(ProgressFn, *mut c_void)>>,
    /// The host's own function.
    host: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

// SAFETY: the function works with its argument on any thread, as [`Services::set_progress`] asks.
unsafe impl Send for Progress {}
// SAFETY: as above.
unsafe impl Sync for Progress {}

/// The application's own handles by name, given when the context is made.
#[derive(Default)]
pub struct Handles {
    handles: Vec<(String, *mut c_void)>,
    /// The texts that some of the handles point to.
    texts: Vec<CString>,
}

// SAFETY: the handles are only passed on, and work on any thread, as [`Handles::with`] asks.
unsafe impl Send for Handles {}
// SAFETY: as above.
unsafe impl Sync for Handles {}

impl Handles {
    /// Adds a handle: `opencl.context`, `opencl.queue`.
    ///
    /// # Safety
    /// The handle must be of the type that [`crate::abi::HostTable::handle`] and the constants of [`crate::stack`]
    /// state for this name, and work on any thread until the stack has ended.
    pub unsafe fn with(mut self, name: &str, handle: *mut c_void) -> Handles {
        self.handles.push((name.to_owned(), handle));
        self
    }

    /// Adds a handle to a text, which ends with a NUL and lives as long as the services that get the handles.
    pub fn with_text(mut self, name: &str, text: CString) -> Handles {
        self.handles.push((name.to_owned(), text.as_ptr().cast_mut().cast()));
        self.texts.push(text);
        self
    }
}

impl Services {
    /// Services with these parts; `timing` enables measuring the time spent in each component.
    pub fn new(memory: Memory, trace: Option<Trace>, log_level: u32, timing: bool) -> Arc<Services> {
        Services::with_handles(memory, trace, log_level, timing, Handles::default())
    }

    /// As [`Services::new`], with the application's own handles.
    pub fn with_handles(
        memory: Memory,
        trace: Option<Trace>,
        log_level: u32,
        timing: bool,
        handles: Handles,
    ) -> Arc<Services> {
        let timing = timing || trace.is_some();
        let (stats, next_base) = (Stats::default(), Arc::new(AtomicU64::new(1)));
        Arc::new(Services {
            memory,
            stats,
            trace,
            log_level,
            next_base,
            timing,
            progress: Progress::default(),
            handles,
        })
    }

    /// The application's own handle of this name, or null.
    pub fn handle(&self, name: &str) -> *mut c_void {
        self.handles.handles.iter().find(|(known, _)| known == name).map_or(std::ptr::null_mut(), |(_, handle)| *handle)
    }

    /// Calls the functions from [`Services::set_progress`] and [`Services::set_host_progress`]. One call at a time:
    /// overlapping calls return immediately.
    #[inline]
    pub fn progress(&self) {
        if self.progress.wanted.load(Ordering::Relaxed) {
            self.make_progress();
        }
    }

    #[cold]
    fn make_progress(&self) {
        if let Ok(function) = self.progress.function.try_lock()
            && let Some((function, argument)) = *function
        {
            // SAFETY: the function works with the argument until another one is set, as [`Services::set_progress`]
            // asks, and that waits for the lock.
            unsafe { function(argument) };
        }
        if let Some(host) = self.progress.host.get() {
            host();
        }
    }

    /// Sets a second function for [`Services::progress`] to call as long as the services live. Only the first call has
    /// an effect.
    pub fn set_host_progress(&self, function: impl Fn() + Send + Sync + 'static) {
        let _ = self.progress.host.set(Box::new(function));
        self.progress.wanted.store(true, Ordering::Relaxed);
    }

    /// Sets the function that [`Services::progress`] calls, or none. Returns when no call of the earlier function is
    /// running.
    ///
    /// # Safety
    /// The function must work with the argument, on any thread, until another one is set.
    pub unsafe fn set_progress(&self, function: Option<ProgressFn>, argument: *mut c_void) {
        let mut current = self.progress.function.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *current = function.map(|function| (function, argument));
        let wanted = current.is_some() || self.progress.host.get().is_some();
        self.progress.wanted.store(wanted, Ordering::Relaxed);
    }

    /// Host memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// All counters with their values, with the memory's.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let usage = self.memory.usage();
        self.stats.set("memory.in_use_bytes", usage.in_use as u64);
        self.stats.set("memory.peak_bytes", usage.peak as u64);
        self.stats.set("memory.cached_bytes", usage.cached as u64);
        self.stats.set("memory.allocations", usage.allocations);
        self.stats.set("memory.cache_hits", usage.cache_hits);
        self.stats.set("memory.refused", usage.refused);
        self.stats.snapshot()
    }

    /// Records the memory in use in the trace, if tracing is on.
    pub(crate) fn trace_memory(&self) {
        if let Some(trace) = &self.trace {
            trace.record_memory(self.memory.usage().in_use);
        }
    }

    /// The trace, if tracing is on.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Whether to measure the time spent in each component.
    pub fn timing(&self) -> bool {
        self.timing
    }

    /// A new base id, never 0 and never reused.
    #[inline]
    pub fn new_base_id(&self) -> u64 {
        self.next_base.fetch_add(1, Ordering::Relaxed)
    }

    /// The counter that base ids come from.
    pub fn base_ids(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.next_base)
    }

    /// Takes all locks that threads of the program may hold outside calls of components, so that a forked child finds
    /// them free.
    pub fn freeze(self: &Arc<Services>) -> FrozenServices {
        FrozenServices::of(Arc::clone(self))
    }

    /// Writes a line to the log if the level is wanted; see [`crate::abi::log_level`].
    pub fn log(&self, level: u32, component: &str, text: &str) {
        if level <= self.log_level {
            let name = crate::log::level_name(level);
            eprintln!("bh: {name}: {component}: {text}");
        }
    }
}

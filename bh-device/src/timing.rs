//! When kernels ran on the device, for the profile and the trace.

use crate::driver::{Event, Times};
use bh_bytecode::BatchRef;
use bh_core::kernel_trace::{Kernel, KernelTrace};
use bh_core::{Counter, Host};
use std::collections::VecDeque;
use std::sync::Arc;

/// Kernels whose times have not been read yet, at most; the first of more are waited for.
const MOST: usize = 4096;

/// Reads times of kernels.
pub(crate) struct Timing {
    host: Host,
    wanted: bool,
    /// In the order of the queue.
    pending: VecDeque<Timed>,
    /// The running work, for the trace.
    label: String,
    detail: String,
    kernels: KernelTrace,
    kernel: Counter,
    /// The last kernel since somebody asked, if times are not wanted.
    last: Option<Arc<dyn Event>>,
    any: bool,
}

struct Timed {
    event: Arc<dyn Event>,
    /// When it was put into the queue, on the clock of the trace; 0 without one.
    begin: u64,
    label: String,
    detail: String,
}

impl Timing {
    pub(crate) fn new(host: Host, wanted: bool) -> Timing {
        let (label, detail, kernel) = (String::new(), String::new(), host.counter("kernel_ns"));
        let (pending, kernels) = (VecDeque::new(), KernelTrace::default());
        Timing { host, wanted, pending, label, detail, kernels, kernel, last: None, any: false }
    }

    /// Names the kernels that come next after the operations of a block.
    pub(crate) fn enter(&mut self, batch: &BatchRef<'_>, block: u32) {
        if !self.wanted || self.host.trace_clock() == 0 {
            return;
        }
        let kernel = Kernel::of(batch, block..block + 1);
        (self.label, self.detail) = self.kernels.event(kernel, "on the device", String::new);
    }

    /// Are kernels to be timed?
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// A kernel is in the queue, with its event if there is one.
    pub(crate) fn started(&mut self, event: Option<Arc<dyn Event>>) {
        self.any = true;
        if !self.wanted {
            self.last = event;
        } else if let Some(event) = event {
            let (begin, label) = (self.host.trace_clock(), self.label.clone());
            let detail = match begin {
                0 => String::new(),
                _ => {
                    self.kernels.said();
                    std::mem::replace(&mut self.detail, self.kernels.more())
                }
            };
            self.pending.push_back(Timed { event, begin, label, detail });
            if self.pending.len() > MOST {
                self.next();
            }
        }
    }

    /// Has a kernel started since this was last asked? Its event, if that is not needed for its time.
    pub(crate) fn take_last(&mut self) -> Option<Option<Arc<dyn Event>>> {
        std::mem::take(&mut self.any).then(|| self.last.take())
    }

    /// Reads the times of kernels that are done.
    pub(crate) fn collect(&mut self) {
        while self.pending.front().is_some_and(|timed| timed.event.is_done()) {
            self.next();
        }
    }

    /// Reads the times of all kernels, and waits for them.
    pub(crate) fn collect_all(&mut self) {
        while !self.pending.is_empty() {
            self.next();
        }
    }

    fn next(&mut self) {
        let Some(Timed { event, begin, label, detail }) = self.pending.pop_front() else { return };
        // A kernel that failed, or a queue of the program that takes no times, has none.
        let Some(Times { queued, start, end }) = event.times() else { return };
        self.kernel.add(end.saturating_sub(start));
        let on_host = |time: u64| begin + time.saturating_sub(queued);
        if begin != 0 {
            self.host.trace_device(&label, 0, on_host(start), on_host(end), &detail);
        }
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        self.collect_all();
    }
}

//! The registry's operations on an array's copy on the device, from any thread: reads, writes, copies of views, its end.

use crate::memory::Memory;
use crate::moves;
use bh_bytecode::{DType, View};
use bh_core::abi::{HostMemory, status};
use bh_core::component::Attachment;
use bh_core::{Counter, Error, Host, Result};
use std::sync::Arc;
use std::time::Instant;

/// When a transfer began.
pub(crate) struct Begun {
    at: Instant,
    /// On the clock of the trace; 0 without one.
    clock: u64,
}

/// Counters of transfers. They live as long as the process, because copies may outlive the engine.
pub(crate) struct Counters {
    upload_bytes: Counter,
    upload_ns: Counter,
    download_bytes: Counter,
    download_ns: Counter,
    clones: Counter,
    peer_bytes: Counter,
    peer_ns: Counter,
    host: Host,
}

impl Counters {
    pub(crate) fn new(host: &Host) -> &'static Counters {
        Box::leak(Box::new(Counters {
            upload_bytes: host.counter("upload_bytes"),
            upload_ns: host.counter("upload_ns"),
            download_bytes: host.counter("download_bytes"),
            download_ns: host.counter("download_ns"),
            clones: host.counter("copies on the device"),
            peer_bytes: host.counter("peer_bytes"),
            peer_ns: host.counter("peer_ns"),
            host: *host,
        }))
    }

    fn trace(&self, name: &str, bytes: usize, begun: &Begun) {
        if begun.clock != 0 {
            self.host.trace(name, begun.clock, &format!("{{\"bytes\":{bytes}}}"));
        }
    }

    /// A transfer begins.
    pub(crate) fn begin(&self) -> Begun {
        Begun { at: Instant::now(), clock: self.host.trace_clock() }
    }

    /// Counts a transfer to the device that began then.
    pub(crate) fn upload(&self, bytes: usize, begun: &Begun) {
        self.trace("upload", bytes, begun);
        self.upload_bytes.add(bytes as u64);
        self.upload_ns.add(begun.at.elapsed().as_nanos() as u64);
    }

    /// Counts copies from another device that were put into the queue since then.
    pub(crate) fn peer(&self, bytes: usize, begun: &Begun) {
        self.trace("copy from another device", bytes, begun);
        self.peer_bytes.add(bytes as u64);
        self.peer_ns.add(begun.at.elapsed().as_nanos() as u64);
    }

    /// Counts a transfer to the host that began then.
    pub(crate) fn download(&self, outcome: Result<usize>, begun: &Begun) -> Result<()> {
        self.trace("download", *outcome.as_ref().unwrap_or(&0), begun);
        self.download_bytes.add(*outcome.as_ref().unwrap_or(&0) as u64);
        self.download_ns.add(begun.at.elapsed().as_nanos() as u64);
        outcome.map(drop)
    }
}

impl Attachment for Memory {
    type Shared = Counters;

    fn to_host(self: &Arc<Self>, counters: &Counters, target: &mut [u8]) -> Result<()> {
        self.settle()?;
        let begun = counters.begin();
        counters.download(self.download_at(0, target).map(|()| target.len()), &begun)
    }

    unsafe fn read(
        self: &Arc<Self>,
        counters: &Counters,
        dtype: DType,
        view: &View,
        memory: &HostMemory,
    ) -> Result<()> {
        self.settle()?;
        let begun = counters.begin();
        // SAFETY: the view lies inside the base and `memory` is writable for its elements, as [`Attachment::read`]
        // asks.
        counters.download(unsafe { moves::read(self, dtype, view, memory) }, &begun)
    }

    unsafe fn write(
        self: &Arc<Self>,
        counters: &Counters,
        dtype: DType,
        view: &View,
        memory: &HostMemory,
    ) -> Result<()> {
        if self.is_read_only() {
            // The registry writes elsewhere then.
            return Err(Error::new(status::UNSUPPORTED, "the memory is only to be read"));
        }
        self.settle()?;
        self.before_writing(0..usize::MAX)?;
        let begun = counters.begin();
        // SAFETY: the view lies inside the base and `memory` is readable for its elements, as [`Attachment::write`]
        // asks.
        let bytes = unsafe { moves::write(self, dtype, view, memory)? };
        counters.upload(bytes, &begun);
        Ok(())
    }

    /// The queue begins with what it has, so that a later read waits less.
    fn prefetch(self: &Arc<Self>, _: &Counters) {
        // If the queue cannot begin, the next read reports it.
        let _ = self.pool.gpu.driver.flush();
    }

    fn duplicate(self: &Arc<Self>, counters: &Counters, dtype: DType, view: &View) -> Result<Arc<Self>> {
        self.settle()?;
        let copied = moves::clone(self, dtype, view)?;
        counters.clones.add(1);
        Ok(Arc::new(copied))
    }
}

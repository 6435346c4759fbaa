//! A device in use.

use crate::device::DeviceInfo;
use bh_core::abi::status;
use bh_core::{Error, Result};
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::Device;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A device in use: its context and its queue, on which everything happens in order.
pub(crate) struct Gpu {
    pub(crate) facts: DeviceInfo,
    pub(crate) context: Context,
    pub(crate) queue: CommandQueue,
    /// Does the program use the queue, too?
    pub(crate) shares_queue: bool,
    pub(crate) presence: Presence,
}

/// Is the device still there?
#[derive(Default)]
pub(crate) struct Presence {
    lost: AtomicBool,
    /// Kernels until it is as lost; 0 for never.
    fault: AtomicU64,
}

/// An error of OpenCL, with what was being done.
pub(crate) fn failed(what: &str, error: opencl3::error_codes::ClError) -> Error {
    let status = if matches!(error.0, -6..=-4) { status::MEMORY } else { status::DEVICE };
    Error::new(status, format!("OpenCL: {what} failed: {error}"))
}

impl Gpu {
    /// Opens a device.
    pub(crate) fn open(facts: DeviceInfo, times: bool) -> Result<Gpu> {
        let context =
            Context::from_device(&Device::new(facts.device())).map_err(|why| failed("making a context", why))?;
        let properties = if times { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        #[allow(deprecated, reason = "the call that replaces it needs OpenCL 2")]
        let queue = CommandQueue::create_default(&context, properties).map_err(|why| failed("making a queue", why))?;
        Ok(Gpu { facts, context, queue, shares_queue: false, presence: Presence::default() })
    }

    /// Waits until everything is done.
    pub(crate) fn finish(&self) -> Result<()> {
        self.usable()?;
        self.queue.finish().map_err(|why| failed("waiting for the device", why))
    }

    /// Is the device known to be lost?
    pub(crate) fn is_lost(&self) -> bool {
        self.presence.lost.load(Ordering::Relaxed)
    }

    /// Fails if the device is lost.
    pub(crate) fn usable(&self) -> Result<()> {
        match self.is_lost() {
            true => Err(Error::new(status::DEVICE, format!("OpenCL: device '{}' is lost", self.facts.name))),
            false => Ok(()),
        }
    }

    /// After an error: finds out whether the device still works.
    pub(crate) fn look(&self) {
        if self.finish().is_err() {
            self.presence.lost.store(true, Ordering::Relaxed);
        }
    }

    /// For tests: the device is as lost at the kernel with this number.
    pub(crate) fn lose_after(&self, kernels: u64) {
        self.presence.fault.store(kernels, Ordering::Relaxed);
    }

    /// A kernel is to start.
    pub(crate) fn kernel_starts(&self) -> Result<()> {
        if self.presence.fault.load(Ordering::Relaxed) > 0 && self.presence.fault.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.presence.lost.store(true, Ordering::Relaxed);
        }
        self.usable()
    }
}

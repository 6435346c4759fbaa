//! A device in use, and whether it is still there.

use crate::device::DeviceInfo;
use crate::driver::Driver;
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A device in use.
pub(crate) struct Gpu {
    pub(crate) facts: DeviceInfo,
    pub(crate) driver: Arc<dyn Driver>,
    /// The driver's name.
    title: &'static str,
    lost: AtomicBool,
    /// Kernels until it is as lost; 0 for never.
    fault: AtomicU64,
}

impl Gpu {
    /// A device that has been opened.
    pub(crate) fn new(driver: Arc<dyn Driver>, title: &'static str) -> Gpu {
        Gpu { facts: driver.info().clone(), driver, title, lost: AtomicBool::new(false), fault: AtomicU64::new(0) }
    }

    /// Waits until everything is done.
    pub(crate) fn finish(&self) -> Result<()> {
        self.usable()?;
        self.driver.finish()
    }

    /// Is the device known to be lost?
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Fails if the device is lost.
    pub(crate) fn usable(&self) -> Result<()> {
        match self.is_lost() {
            true => {
                let text = format!("{}: device '{}' is lost", self.title, self.facts.name);
                Err(Error::new(status::DEVICE, text))
            }
            false => Ok(()),
        }
    }

    /// After an error: finds out whether the device still works.
    pub(crate) fn look(&self) {
        if self.finish().is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// For tests: the device is as lost at the kernel with this number.
    pub(crate) fn lose_after(&self, kernels: u64) {
        self.fault.store(kernels, Ordering::Relaxed);
    }

    /// A kernel is to start.
    pub(crate) fn kernel_starts(&self) -> Result<()> {
        if self.fault.load(Ordering::Relaxed) > 0 && self.fault.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.lost.store(true, Ordering::Relaxed);
        }
        self.usable()
    }
}

//! The OpenCL engine: the engine of devices on OpenCL's drivers.

mod borrowed;
mod devices;
mod driver;
mod language;

use bh_core::abi::{memory, status};
use bh_core::config::Row;
use bh_core::{Error, Host, Result, keys};
use bh_device::device::DeviceInfo;
use bh_device::driver::{Driver, Options, Platform};
use std::sync::Arc;

/// OpenCL's drivers.
pub struct OpenCl;

/// The engine on OpenCL's devices.
type Engine = bh_device::Engine<OpenCl>;

impl Platform for OpenCl {
    const NAME: &'static str = "opencl";
    const TITLE: &'static str = "OpenCL";
    const KEYS: &'static [Row] = keys::opencl::ALL;
    const MEMORY: u32 = memory::OPENCL;

    fn devices() -> Result<Vec<DeviceInfo>> {
        devices::list()
    }

    fn open(device: DeviceInfo, options: Options) -> Result<Arc<dyn Driver>> {
        Ok(Arc::new(driver::Queue::open(device, options)?))
    }

    fn borrow(host: &Host, options: Options) -> Option<Result<Arc<dyn Driver>>> {
        let (context, queue) = (host.handle("opencl.context"), host.handle("opencl.queue"));
        if context.is_null() && queue.is_null() {
            return None;
        }
        // SAFETY: the program has said that they are OpenCL's.
        let borrowed = unsafe { driver::Queue::borrow(context, queue, options) };
        Some(borrowed.map(|queue| Arc::new(queue) as Arc<dyn Driver>))
    }
}

/// An error of OpenCL, with what was being done.
fn failed(what: &str, error: opencl3::error_codes::ClError) -> Error {
    let status = if matches!(error.0, -6..=-4) { status::MEMORY } else { status::DEVICE };
    Error::new(status, format!("OpenCL: {what} failed: {error}"))
}

bh_core::export_component!(Engine);

//! The CUDA engine: the engine of devices on NVIDIA's driver, whose kernels NVRTC compiles. Both are loaded when the engine is, so
//! that nothing of CUDA is needed to build it.

mod api;
mod compilers;
mod cublas;
mod cufft;
mod cusolver;
mod devices;
mod driver;
mod graph;
pub mod language;
mod libraries;
mod library;
pub mod nvrtc;
mod peers;
mod stream;

use bh_core::abi::memory;
use bh_core::config::Row;
use bh_core::{Host, Result, keys};
use bh_device::device::DeviceInfo;
use bh_device::driver::{Driver, Options, Platform};
use std::sync::Arc;

/// NVIDIA's driver.
struct Cuda;

/// The engine on CUDA's devices.
type Engine = bh_device::Engine<Cuda>;

impl Platform for Cuda {
    const NAME: &'static str = "cuda";
    const TITLE: &'static str = "CUDA";
    const KEYS: &'static [Row] = keys::cuda::ALL;
    const MEMORY: u32 = memory::CUDA;

    fn devices() -> Result<Vec<DeviceInfo>> {
        devices::list()
    }

    fn open(device: DeviceInfo, options: Options) -> Result<Arc<dyn Driver>> {
        Ok(Arc::new(driver::Queue::open(device, options)?))
    }

    /// Programs lend no stream.
    fn borrow(_: &Host, _: Options) -> Option<Result<Arc<dyn Driver>>> {
        None
    }
}

bh_core::export_component!(Engine);

//! The devices of all platforms.

use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::device::{Class, DeviceInfo};
use opencl3::device::{CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device};
use opencl3::platform::get_platforms;
use opencl3::types::cl_device_id;
use std::sync::{Mutex, PoisonError};

/// The handle of a device for OpenCL's calls.
pub(crate) fn handle(info: &DeviceInfo) -> cl_device_id {
    info.id as cl_device_id
}

/// The properties of a device.
fn read(id: cl_device_id, platform: &str) -> opencl3::Result<DeviceInfo> {
    let device = Device::new(id);
    let kind = device.dev_type()?;
    let class = if kind & CL_DEVICE_TYPE_GPU != 0 {
        Class::Gpu
    } else if kind & CL_DEVICE_TYPE_CPU != 0 {
        Class::Cpu
    } else {
        debug_assert!(kind & CL_DEVICE_TYPE_ACCELERATOR != 0 || kind != 0);
        Class::Accelerator
    };
    Ok(DeviceInfo {
        id: id as usize,
        number: 0,
        name: device.name()?.trim().to_owned(),
        platform: platform.trim().to_owned(),
        version: format!("{}, driver {}", device.version()?.trim(), device.driver_version()?.trim()),
        class,
        global_bytes: device.global_mem_size()?,
        largest_bytes: device.max_mem_alloc_size()?,
        local_bytes: device.local_mem_size()?,
        units: device.max_compute_units()?.max(1) as usize,
        megahertz: device.max_clock_frequency()?.max(1),
        largest_group: device.max_work_group_size()?.max(1),
        parameter_bytes: device.max_parameter_size()?,
        f64: device.double_fp_config().is_ok_and(|config| config != 0),
        matrix_units: device.compute_capability_major_nv().is_ok_and(|major| (9..100).contains(&major)),
    })
}

/// All usable devices of all platforms; the error says why there are none.
pub(crate) fn list() -> Result<Vec<DeviceInfo>> {
    // PoCL prepares its devices at the first question, and crashes if two threads ask at once.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let none = |text: String| Error::new(status::DEVICE, text);
    let platforms = get_platforms().map_err(|error| match error.0 {
        -2000 | -2001 => none("no OpenCL library is installed (libOpenCL.so.1)".into()),
        -1001 => none("no OpenCL platform is installed".into()),
        _ => none(format!("OpenCL platforms cannot be listed: {error}")),
    })?;
    let mut found = Vec::new();
    for platform in platforms {
        let name = platform.name().unwrap_or_default();
        // A platform may have no device at the moment.
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::new(id);
            let usable = device.available().unwrap_or(false) && device.compiler_available().unwrap_or(false);
            if let (true, Ok(facts)) = (usable, read(id, &name)) {
                found.push(facts);
            }
        }
    }
    if found.is_empty() { Err(none("no OpenCL device is available".into())) } else { Ok(found) }
}

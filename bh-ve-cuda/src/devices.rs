//! The devices of NVIDIA's driver.

use crate::api::{Functions, functions};
use crate::nvrtc::Nvrtc;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::device::{Class, DeviceInfo};
use std::ffi::{CStr, c_int};

/// `CUdevice_attribute`: facts of a device.
const LARGEST_GROUP: c_int = 1;
const LOCAL_BYTES: c_int = 8;
const KILOHERTZ: c_int = 13;
const UNITS: c_int = 16;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
pub(crate) const MEMORY_POOLS: c_int = 115;

/// Bytes of a kernel's arguments, at most, on every device.
const PARAMETER_BYTES: usize = 4096;

/// A fact of a device; 0 if the driver does not know it.
pub(crate) fn fact(functions: &Functions, device: c_int, fact: c_int) -> c_int {
    let mut value = 0;
    // SAFETY: `value` takes a number.
    unsafe { (functions.device_fact)(&mut value, fact, device) };
    value
}

/// The compute capability of a device.
pub(crate) fn capability(functions: &Functions, device: c_int) -> (i32, i32) {
    (fact(functions, device, MAJOR), fact(functions, device, MINOR))
}

/// The version of CUDA that the driver is made for.
fn driver_version(functions: &Functions) -> (i32, i32) {
    let mut version = 0;
    // SAFETY: `version` takes a number.
    unsafe { (functions.version)(&mut version) };
    (version / 1000, version % 1000 / 10)
}

/// The compiler for this driver.
pub(crate) fn compiler(functions: &Functions) -> Result<&'static Nvrtc> {
    Nvrtc::find(driver_version(functions).0 as u32).map_err(|why| Error::new(status::DEVICE, why))
}

/// The properties of a device.
fn read(functions: &Functions, device: c_int, nvrtc: &Nvrtc) -> Result<DeviceInfo> {
    let (mut name, mut bytes) = ([0; 256], 0);
    // SAFETY: there is room for as many bytes as it says, and for a number.
    let code = unsafe {
        (functions.device_name)(name.as_mut_ptr(), name.len() as c_int - 1, device);
        (functions.device_bytes)(&mut bytes, device)
    };
    functions.check("asking for the memory of a device", code)?;
    // SAFETY: the last byte is 0.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().trim().to_owned();
    let ((major, minor), driver) = (capability(functions, device), driver_version(functions));
    let fact = |which| fact(functions, device, which);
    Ok(DeviceInfo {
        id: device as usize,
        number: 0,
        name,
        platform: format!(
            "CUDA {}.{}, NVRTC {}.{} of {}",
            driver.0, driver.1, nvrtc.version.0, nvrtc.version.1, nvrtc.file
        ),
        version: format!("compute capability {major}.{minor}"),
        class: Class::Gpu,
        global_bytes: bytes as u64,
        largest_bytes: bytes as u64,
        local_bytes: fact(LOCAL_BYTES) as u64,
        units: fact(UNITS).max(1) as usize,
        megahertz: (fact(KILOHERTZ) / 1000).max(1) as u32,
        largest_group: fact(LARGEST_GROUP).max(1) as usize,
        parameter_bytes: PARAMETER_BYTES,
        f64: true,
        matrix_units: major >= 9,
    })
}

/// All devices for which the compiler makes code; the error says in one sentence why there are none.
pub(crate) fn list() -> Result<Vec<DeviceInfo>> {
    let functions = functions()?;
    let nvrtc = compiler(functions)?;
    let mut count = 0;
    // SAFETY: `count` takes a number.
    functions.check("listing the devices", unsafe { (functions.device_count)(&mut count) })?;
    let mut found = Vec::new();
    for number in 0..count {
        let mut device = 0;
        // SAFETY: `device` takes a number.
        functions.check("listing the devices", unsafe { (functions.device)(&mut device, number) })?;
        if nvrtc.form(capability(functions, device)).is_some() {
            found.push(read(functions, device, nvrtc)?);
        }
    }
    if found.is_empty() { Err(Error::new(status::DEVICE, "no CUDA device is available")) } else { Ok(found) }
}

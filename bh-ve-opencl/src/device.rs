//! Which device: all that the platforms offer, the choice among them, and what the chosen one can do.

use bh_core::abi::status;
use bh_core::{Error, Result};
use opencl3::device::{
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, Device,
};
use opencl3::platform::get_platforms;
use opencl3::types::cl_device_id;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// A processor.
    Cpu,
    /// Anything else that computes.
    Accelerator,
    /// A graphics processor.
    Gpu,
}

/// A device and what it can do.
#[derive(Clone, Debug)]
pub(crate) struct DeviceInfo {
    pub(crate) id: usize,
    /// Its place in the list of devices, by which the key `device` names it.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) platform: String,
    /// Version of the device and of its driver.
    pub(crate) version: String,
    pub(crate) class: Class,
    pub(crate) global_bytes: u64,
    pub(crate) largest_bytes: u64,
    pub(crate) local_bytes: u64,
    pub(crate) units: usize,
    pub(crate) megahertz: u32,
    pub(crate) largest_group: usize,
    pub(crate) parameter_bytes: usize,
    pub(crate) f64: bool,
    pub(crate) exact_division: bool,
    /// Has it instructions of NVIDIA's ninth generation, which multiply matrices of f64?
    pub(crate) matrix_units: bool,
}

impl DeviceInfo {
    /// The handle for OpenCL's calls.
    pub(crate) fn device(&self) -> cl_device_id {
        self.id as cl_device_id
    }

    /// Operations in a nanosecond, roughly, as the device announces its units and their clock. Processors are none beside the
    /// processor.
    pub(crate) fn speed(&self) -> f64 {
        const LANES: f64 = 64.0;
        if self.class == Class::Cpu { 0.0 } else { self.units as f64 * f64::from(self.megahertz) * LANES / 1000.0 }
    }

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
            exact_division: device.single_fp_config()? & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
            matrix_units: device.compute_capability_major_nv().is_ok_and(|major| (9..100).contains(&major)),
        })
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            Class::Cpu => "processor",
            Class::Accelerator => "accelerator",
            Class::Gpu => "GPU",
        };
        let gibibytes = self.global_bytes as f64 / (1u64 << 30) as f64;
        write!(f, "{} ({class}, {}, {gibibytes:.1} GiB, {} units", self.name, self.platform, self.units)?;
        f.write_str(if self.f64 { ")" } else { ", no f64)" })
    }
}

/// GPUs come first, then other accelerators, then processors: where a processor is listed beside them, 0 is the first GPU still.
fn number(devices: &mut [DeviceInfo]) {
    devices.sort_by_key(|facts| std::cmp::Reverse(facts.class));
    devices.iter_mut().enumerate().for_each(|(number, facts)| facts.number = number);
}

/// All usable devices of all platforms, GPUs first; the error says why there are none.
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
            if let (true, Ok(facts)) = (usable, DeviceInfo::read(id, &name)) {
                found.push(facts);
            }
        }
    }
    number(&mut found);
    if found.is_empty() { Err(none("no OpenCL device is available".into())) } else { Ok(found) }
}

/// The best of the devices that the key `device` asks for, or of all that are no processors, and its equals; the one at a
/// place is alone. `all` stands for all that are no processors, and a list for what its parts stand for, in its order.
fn fitting<'a>(devices: &'a [DeviceInfo], wanted: Option<&str>) -> Vec<&'a DeviceInfo> {
    let best = |fits: &dyn Fn(&DeviceInfo) -> bool| {
        let fitting: Vec<&DeviceInfo> = devices.iter().filter(|facts| fits(facts)).collect();
        let key = |facts: &DeviceInfo| (facts.class, facts.global_bytes);
        let most = fitting.iter().map(|facts| key(facts)).max();
        fitting.into_iter().filter(|facts| Some(key(facts)) == most).collect()
    };
    let Some(text) = wanted else { return best(&|facts| facts.class != Class::Cpu) };
    if text.contains(',') {
        let mut found: Vec<&DeviceInfo> = Vec::new();
        for facts in text.split(',').flat_map(|one| fitting(devices, Some(one.trim()))) {
            if found.iter().all(|known| !std::ptr::eq(*known, facts)) {
                found.push(facts);
            }
        }
        return found;
    }
    match (text.to_lowercase().as_str(), text.parse::<usize>()) {
        (_, Ok(index)) => devices.get(index).into_iter().collect(),
        ("all", _) => devices.iter().filter(|facts| facts.class != Class::Cpu).collect(),
        ("gpu", _) => best(&|facts| facts.class == Class::Gpu),
        ("cpu", _) => best(&|facts| facts.class == Class::Cpu),
        ("accelerator", _) => best(&|facts| facts.class == Class::Accelerator),
        (name, _) => best(&|facts| facts.name.to_lowercase().contains(name)),
    }
}

/// How many devices a stack may have an instance for.
pub(crate) fn count(wanted: Option<&str>) -> usize {
    list().map_or(0, |devices| fitting(&devices, wanted).len())
}

/// The device that the key `device` asks for, or the best that is no processor. Of equal ones, the one of this number.
pub(crate) fn choose(devices: &[DeviceInfo], wanted: Option<&str>, number: usize) -> Result<DeviceInfo> {
    let fitting = fitting(devices, wanted);
    let found = fitting.get(number % fitting.len().max(1)).map(|&facts| facts.clone());
    found.ok_or_else(|| {
        let list = devices.iter().enumerate().map(|(index, facts)| format!("{index}: {facts}")).collect::<Vec<_>>();
        let list = list.join("; ");
        Error::new(
            status::DEVICE,
            match wanted {
                None => format!(
                    "there is no OpenCL GPU; processors are used if key 'device' (BH_OPENCL_DEVICE) names them: {list}"
                ),
                Some(text) => format!("config key 'device': there is no OpenCL device '{text}' among {list}"),
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str, class: Class, global_bytes: u64) -> DeviceInfo {
        DeviceInfo {
            id: 0,
            number: 0,
            name: name.into(),
            platform: "test".into(),
            version: "1".into(),
            class,
            global_bytes,
            largest_bytes: global_bytes,
            local_bytes: 32 << 10,
            units: 1,
            megahertz: 1000,
            largest_group: 256,
            parameter_bytes: 1024,
            f64: true,
            exact_division: true,
            matrix_units: false,
        }
    }

    #[test]
    fn the_largest_gpu_comes_first_and_processors_only_by_name() {
        let cpu = facts("Fast Processor", Class::Cpu, 1 << 40);
        let card = facts("Card A", Class::Gpu, 8 << 30);
        let other = facts("Card B", Class::Accelerator, 99 << 30);
        let large = facts("Card C", Class::Gpu, 9 << 30);
        let all = [cpu.clone(), card, other.clone(), large];
        let name = |devices: &[DeviceInfo], wanted| choose(devices, wanted, 0).map(|facts| facts.name);
        assert_eq!(name(&all, None).unwrap(), "Card C");
        assert_eq!(name(&[cpu.clone(), other], None).unwrap(), "Card B");
        assert!(name(std::slice::from_ref(&cpu), None).unwrap_err().to_string().contains("BH_OPENCL_DEVICE"));
        assert_eq!(name(&all, Some("cpu")).unwrap(), "Fast Processor");
        assert_eq!(name(&all, Some("1")).unwrap(), "Card A");
        assert_eq!(name(&all, Some("card b")).unwrap(), "Card B");
        let twins = [cpu.clone(), facts("Card D", Class::Gpu, 9 << 30), all[3].clone()];
        let numbered = |number| choose(&twins, None, number).map(|facts| facts.name).unwrap();
        assert_eq!([numbered(0), numbered(1), numbered(2)], ["Card D", "Card C", "Card D"]);
        let places = |wanted: &str| {
            let place = |facts: &DeviceInfo| all.iter().position(|one| std::ptr::eq(one, facts)).unwrap();
            fitting(&all, Some(wanted)).into_iter().map(place).collect::<Vec<usize>>()
        };
        assert_eq!([places("all"), places("3, 1"), places("gpu,0,card c")], [vec![1, 2, 3], vec![3, 1], vec![3, 0]]);
        assert_eq!(places("7, x"), [0; 0]);
        let mut numbered = all.to_vec();
        number(&mut numbered);
        let names: Vec<(usize, &str)> = numbered.iter().map(|facts| (facts.number, &facts.name[..])).collect();
        assert_eq!(names, [(0, "Card A"), (1, "Card C"), (2, "Card B"), (3, "Fast Processor")]);
        let error = name(&all, Some("Card X")).unwrap_err().to_string();
        assert!(error.contains("'Card X'") && error.contains("3: Card C (GPU"), "{error}");
    }
}

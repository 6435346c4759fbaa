//! Which device: the choice among all that a driver finds, and what each can do.

use crate::driver::Platform;
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::fmt;

/// The kind of hardware that a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A processor.
    Cpu,
    /// Anything else that computes.
    Accelerator,
    /// A graphics processor.
    Gpu,
}

/// A device and what it can do.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The driver's own name for it.
    pub id: usize,
    /// Its place in the list of devices, by which the key `device` names it.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// The vendor of its driver.
    pub platform: String,
    /// Version of the device and of its driver.
    pub version: String,
    /// Is it a processor?
    pub class: Class,
    /// Bytes of its memory.
    pub global_bytes: u64,
    /// Bytes that a buffer has at most.
    pub largest_bytes: u64,
    /// Bytes of the memory of a group.
    pub local_bytes: u64,
    /// Parts that work on groups of their own.
    pub units: usize,
    /// The units' clock.
    pub megahertz: u32,
    /// Items that a group has at most.
    pub largest_group: usize,
    /// Bytes that the arguments of a kernel have at most.
    pub parameter_bytes: usize,
    /// Does it compute with numbers of double precision?
    pub f64: bool,
    /// Has it instructions of NVIDIA's ninth generation, which multiply matrices of f64?
    pub matrix_units: bool,
}

impl DeviceInfo {
    /// Operations in a nanosecond, roughly, as the device announces its units and their clock. Processors are none beside the
    /// processor.
    pub(crate) fn speed(&self) -> f64 {
        const LANES: f64 = 64.0;
        if self.class == Class::Cpu { 0.0 } else { self.units as f64 * f64::from(self.megahertz) * LANES / 1000.0 }
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

/// The devices by number. GPUs come first, then other accelerators, then processors: where a processor is listed beside them, 0 is
/// the first GPU still.
pub fn numbered(mut devices: Vec<DeviceInfo>) -> Vec<DeviceInfo> {
    devices.sort_by_key(|facts| std::cmp::Reverse(facts.class));
    devices.iter_mut().enumerate().for_each(|(number, facts)| facts.number = number);
    devices
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
pub(crate) fn count(devices: &[DeviceInfo], wanted: Option<&str>) -> usize {
    fitting(devices, wanted).len()
}

/// The device that the key `device` asks for, or the best that is no processor. Of equal ones, the one of this number.
pub(crate) fn choose<P: Platform>(devices: &[DeviceInfo], wanted: Option<&str>, number: usize) -> Result<DeviceInfo> {
    let fitting = fitting(devices, wanted);
    let found = fitting.get(number % fitting.len().max(1)).map(|&facts| facts.clone());
    found.ok_or_else(|| {
        let list = devices.iter().enumerate().map(|(index, facts)| format!("{index}: {facts}")).collect::<Vec<_>>();
        let (list, title) = (list.join("; "), P::TITLE);
        Error::new(
            status::DEVICE,
            match wanted {
                None => format!(
                    "there is no {title} GPU; processors are used if key 'device' (BH_{}_DEVICE) names them: {list}",
                    P::NAME.to_uppercase()
                ),
                Some(text) => format!("config key 'device': there is no {title} device '{text}' among {list}"),
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{Driver, Options};
    use bh_core::Host;
    use bh_core::abi::memory;
    use bh_core::config::Row;
    use std::sync::Arc;

    struct Nowhere;

    impl Platform for Nowhere {
        const NAME: &'static str = "nowhere";
        const TITLE: &'static str = "Nowhere";
        const KEYS: &'static [Row] = &[];
        const MEMORY: u32 = memory::FIRST_PRIVATE;

        fn devices() -> Result<Vec<DeviceInfo>> {
            Ok(Vec::new())
        }

        fn open(_: DeviceInfo, _: Options) -> Result<Arc<dyn Driver>> {
            Err(Error::new(status::DEVICE, "there is none"))
        }

        fn borrow(_: &Host, _: Options) -> Option<Result<Arc<dyn Driver>>> {
            None
        }
    }

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
        let name = |devices: &[DeviceInfo], wanted| choose::<Nowhere>(devices, wanted, 0).map(|facts| facts.name);
        assert_eq!(name(&all, None).unwrap(), "Card C");
        assert_eq!(name(&[cpu.clone(), other], None).unwrap(), "Card B");
        assert!(name(std::slice::from_ref(&cpu), None).unwrap_err().to_string().contains("BH_NOWHERE_DEVICE"));
        assert_eq!(name(&all, Some("cpu")).unwrap(), "Fast Processor");
        assert_eq!(name(&all, Some("1")).unwrap(), "Card A");
        assert_eq!(name(&all, Some("card b")).unwrap(), "Card B");
        let twins = [cpu.clone(), facts("Card D", Class::Gpu, 9 << 30), all[3].clone()];
        let twin = |number| choose::<Nowhere>(&twins, None, number).map(|facts| facts.name).unwrap();
        assert_eq!([twin(0), twin(1), twin(2)], ["Card D", "Card C", "Card D"]);
        let places = |wanted: &str| {
            let place = |facts: &DeviceInfo| all.iter().position(|one| std::ptr::eq(one, facts)).unwrap();
            fitting(&all, Some(wanted)).into_iter().map(place).collect::<Vec<usize>>()
        };
        assert_eq!([places("all"), places("3, 1"), places("gpu,0,card c")], [vec![1, 2, 3], vec![3, 1], vec![3, 0]]);
        assert_eq!(places("7, x"), [0; 0]);
        let numbered = numbered(all.to_vec());
        let names: Vec<(usize, &str)> = numbered.iter().map(|facts| (facts.number, &facts.name[..])).collect();
        assert_eq!(names, [(0, "Card A"), (1, "Card C"), (2, "Card B"), (3, "Fast Processor")]);
        let error = name(&all, Some("Card X")).unwrap_err().to_string();
        assert!(error.contains("'Card X'") && error.contains("3: Card C (GPU"), "{error}");
    }
}

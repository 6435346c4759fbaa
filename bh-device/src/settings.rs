//! The engine's config keys.

use crate::code::{PLACEMENTS, Placement, Placements};
use crate::device::Class;
use bh_core::config::{Key, parse_size};
use bh_core::keys::opencl;
use bh_core::{Error, Host, Result};
use std::path::PathBuf;

/// When kernels are built with their sizes as numbers in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Specialise {
    /// Never.
    Off,
    /// In the background, when a batch has come several times.
    Auto,
    /// Before a kernel first runs.
    On,
}

/// Whose ways of building hot kernels are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tune {
    /// Nobody's.
    Off,
    /// Those of blocks with much data, on graphics processors.
    Auto,
    /// All blocks', on any device.
    On,
}

/// Which chains of kernels run tile by tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeTiles {
    /// None.
    Off,
    /// Those that gain, when their batch has come several times.
    Auto,
    /// All of this many kernels, at once.
    Kernels(u32),
}

/// Little work, which the next engine does where its data is in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Little {
    /// Its blocks touch fewer bytes.
    pub(crate) bytes: u64,
    /// They make fewer element operations.
    pub(crate) operations: u64,
    /// May the next engine carry out operations on little arrays at their calls?
    pub(crate) at_once: bool,
}

impl Little {
    /// A kernel and two transfers take a device as long as a processor takes for this.
    const USUAL: Little = Little { bytes: 256 << 10, operations: 4 << 20, at_once: true };
    /// Everything runs on the device.
    pub(crate) const NOTHING: Little = Little { bytes: 0, operations: 0, at_once: false };

    /// Little work by the key `placement`.
    fn read(text: Option<&str>) -> Result<Little> {
        let given = match text.map(str::trim) {
            None | Some("auto") => return Ok(Little::USUAL),
            Some("device") => return Ok(Little::NOTHING),
            Some(given) => given,
        };
        let wrong = || Error::of_key("placement", "auto, device, or a size and a number, as in 256KiB 4194304", given);
        let (size, number) = given.split_once(' ').ok_or_else(wrong)?;
        let bytes = parse_size(size, || 0).ok_or_else(wrong)? as u64;
        let operations = number.trim().parse().map_err(|_| wrong())?;
        Ok(Little { bytes, operations, at_once: false })
    }
}

/// Values of the keys.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// A number, a type or a part of a name; `None`: the best that is no processor.
    pub(crate) device: Option<String>,
    /// Bytes of device memory that may be used; `None`: nine tenths.
    pub(crate) memory: Option<u64>,
    /// Bytes of a piece of pinned memory for transfers; 0 for none, `None`: what suits the device.
    pub(crate) staging: Option<usize>,
    pub(crate) little: Little,
    /// Items of a work-group.
    pub(crate) group: usize,
    pub(crate) specialise: Specialise,
    /// May kernels round differently?
    pub(crate) fast_math: bool,
    /// Where built kernels are kept from run to run.
    pub(crate) cache_dir: Option<PathBuf>,
    /// Has the user given this directory?
    pub(crate) cache_given: bool,
    /// Where texts of kernels are written.
    pub(crate) dump: Option<PathBuf>,
    /// Measure how long kernels run on the device.
    pub(crate) profile: bool,
    /// Read times of kernels: for the profile or the trace.
    pub(crate) times: bool,
    /// Threads that build the kernels of a batch.
    pub(crate) builders: usize,
    /// The most kernels that are built as one program.
    pub(crate) together: usize,
    /// Do methods but products run on the device, too?
    pub(crate) methods: bool,
    /// May the next engine run blocks whose kernels are not built yet?
    pub(crate) while_building: bool,
    pub(crate) placements: Placements,
    pub(crate) tune: Tune,
    pub(crate) time_tiles: TimeTiles,
    /// For tests: after this many kernels the device is as lost.
    pub(crate) fault_after: Option<u64>,
}

impl Settings {
    /// Reads and checks the keys of the component of this name. Those of all drivers have the names of OpenCL's.
    pub(crate) fn read(host: &Host, name: &str) -> Result<Settings> {
        let text = |key: &Key<String>| host.config(key).filter(|text| !text.is_empty());
        let size = |key: &Key<String>| {
            let text = text(key).unwrap_or_else(|| key.default());
            let bytes = parse_size(&text, || 0).map(|bytes| bytes as u64);
            bytes.ok_or_else(|| Error::of_key(key.name(), "a size, as in 64KiB", &text))
        };
        let memory = match text(&opencl::MEMORY).as_deref() {
            None | Some("auto") => None,
            Some(given) => Some(
                parse_size(given, || 0)
                    .map(|bytes| bytes as u64)
                    .filter(|&bytes| bytes > 0)
                    .ok_or_else(|| Error::of_key("memory", "a size, as in 4GiB, or auto", given))?,
            ),
        };
        let staging = match text(&opencl::STAGING).as_deref() {
            None | Some("auto") => None,
            Some(_) => Some(size(&opencl::STAGING)? as usize),
        };
        let specialise = match text(&opencl::SPECIALISE).as_deref() {
            None | Some("auto") => Specialise::Auto,
            Some("off") => Specialise::Off,
            Some("on") => Specialise::On,
            Some(other) => return Err(Error::of_key("specialise", "off, auto or on", other)),
        };
        let group: usize = host.setting(&opencl::GROUP)?;
        if !(1..=1024).contains(&group) || !group.is_power_of_two() {
            return Err(Error::of_key("group", "a power of two from 1 to 1024", &group.to_string()));
        }
        let while_building = match text(&opencl::WHILE_BUILDING).as_deref() {
            Some("auto") => true,
            None | Some("off") => false,
            Some(other) => return Err(Error::of_key("while_building", "off or auto", other)),
        };
        let tune = match text(&opencl::TUNE).as_deref() {
            None | Some("auto") => Tune::Auto,
            Some("off") => Tune::Off,
            Some("on") => Tune::On,
            Some(other) => return Err(Error::of_key("tune", "off, auto or on", other)),
        };
        let time_tiles = match text(&opencl::TIME_TILES).as_deref() {
            None | Some("auto") => TimeTiles::Auto,
            Some("off") => TimeTiles::Off,
            Some(other) => match other.parse() {
                Ok(kernels @ 1..=1024) => TimeTiles::Kernels(kernels),
                _ => return Err(Error::of_key("time_tiles", "auto, off or a number of kernels from 1 to 1024", other)),
            },
        };
        let fault_after: u64 = host.setting(&opencl::FAULT_AFTER)?;
        let profile: bool = host.setting(&opencl::PROFILE)?;
        let builders: usize = host.setting(&opencl::BUILDERS)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Settings {
            device: text(&opencl::DEVICE).filter(|text| text != "auto"),
            memory,
            staging,
            little: Little::read(text(&opencl::PLACEMENT).as_deref())?,
            group,
            specialise,
            fast_math: host.setting(&opencl::FAST_MATH)?,
            cache_given: text(&opencl::CACHE_DIR).is_some_and(|text| text != "auto"),
            cache_dir: cache_directory(host.config(&opencl::CACHE_DIR).as_deref(), name),
            dump: text(&opencl::DUMP).map(PathBuf::from),
            profile,
            times: profile || host.trace_clock() != 0,
            together: host.setting(&opencl::TOGETHER)?.max(1),
            methods: host.setting(&opencl::METHODS)?,
            while_building,
            placements: placements(text(&opencl::PLACEMENTS).as_deref())?,
            tune,
            time_tiles,
            fault_after: (fault_after > 0).then_some(fault_after),
            builders: if builders == 0 { cores.min(16) } else { builders },
        })
    }
}

impl Settings {
    /// Is the way in which hot kernels are built on a device of this class to be measured? From this many bytes of a block on.
    pub(crate) fn tunes(&self, class: Class) -> Option<u64> {
        match self.tune {
            _ if self.specialise != Specialise::Auto => None,
            Tune::Off => None,
            Tune::Auto => (class == Class::Gpu).then_some(TUNED_BYTES),
            Tune::On => Some(0),
        }
    }
}

/// Bytes of blocks whose ways are worth measuring.
const TUNED_BYTES: u64 = 16 << 20;

/// The placements of a text: all of them, none, or a list.
fn placements(text: Option<&str>) -> Result<Placements> {
    let names: Vec<&str> = match text.map(str::trim) {
        None | Some("auto") => return Ok(Placements::USUAL),
        Some("all") => return Ok(Placements::ALL),
        Some("none") => Vec::new(),
        Some(list) => list.split(',').map(str::trim).collect(),
    };
    let find = |name: &str| PLACEMENTS.iter().find(|(_, known)| *known == name).map(|(placement, _)| *placement);
    let found: Option<Vec<Placement>> = names.iter().map(|name| find(name)).collect();
    let known = PLACEMENTS.map(|(_, name)| name).join(", ");
    let wrong =
        || Error::of_key("placements", &format!("auto, all, none, or some of {known}"), text.unwrap_or_default());
    found.map(Placements::of).ok_or_else(wrong)
}

/// The directory of a text: a path, empty for none, or by default one of the component in the user's cache directory.
fn cache_directory(text: Option<&str>, name: &str) -> Option<PathBuf> {
    match text {
        None | Some("auto") => {
            let set = |name: &str| bh_core::environment::variable_os(name).map(PathBuf::from);
            let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
            let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
            Some(base.join("bh").join(name))
        }
        Some("") => None,
        Some(path) => Some(path.into()),
    }
}

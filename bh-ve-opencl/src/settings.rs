//! The engine's config keys.

use bh_core::config::parse_size;
use bh_core::{Error, Host, Result};
use std::path::PathBuf;

/// The keys of the section `opencl`.
pub(crate) const KEYS: &[&str] = &[
    "device",
    "memory",
    "staging",
    "small_bytes",
    "small_operations",
    "group",
    "specialise",
    "fast_math",
    "cache_dir",
    "dump",
    "profile",
    "builders",
];

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

/// Values of the keys.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// A number, a type or a part of a name; `None`: the best that is no processor.
    pub(crate) device: Option<String>,
    /// Bytes of device memory that may be used; `None`: nine tenths.
    pub(crate) memory: Option<u64>,
    /// Bytes of a piece of pinned memory for transfers; 0 for none, `None`: what suits the device.
    pub(crate) staging: Option<usize>,
    /// Blocks that touch fewer bytes, none of them on the device, go to the next engine.
    pub(crate) small_bytes: u64,
    /// Blocks with fewer element operations do, whose data is in host memory; 0 if their bytes alone decide.
    pub(crate) small_operations: u64,
    /// Items of a work-group.
    pub(crate) group: usize,
    pub(crate) specialise: Specialise,
    /// May kernels round differently?
    pub(crate) fast_math: bool,
    /// Where built kernels are kept from run to run.
    pub(crate) cache_dir: Option<PathBuf>,
    /// Where texts of kernels are written.
    pub(crate) dump: Option<PathBuf>,
    /// Measure how long kernels run on the device.
    pub(crate) profile: bool,
    /// Threads that build the kernels of a batch.
    pub(crate) builders: usize,
}

impl Settings {
    /// Reads and checks the keys.
    pub(crate) fn read(host: &Host) -> Result<Settings> {
        let text = |key: &str| host.config(key).filter(|text| !text.is_empty());
        let size = |key: &str, default: u64| match text(key) {
            None => Ok(default),
            Some(text) => parse_size(&text, || 0)
                .map(|bytes| bytes as u64)
                .ok_or_else(|| Error::of_key(key, "a size, as in 64KiB", &text)),
        };
        let memory = match text("memory").as_deref() {
            None | Some("auto") => None,
            Some(given) => Some(
                parse_size(given, || 0)
                    .map(|bytes| bytes as u64)
                    .filter(|&bytes| bytes > 0)
                    .ok_or_else(|| Error::of_key("memory", "a size, as in 4GiB, or auto", given))?,
            ),
        };
        let staging = match text("staging").as_deref() {
            None | Some("auto") => None,
            Some(_) => Some(size("staging", 0)? as usize),
        };
        let specialise = match text("specialise").as_deref() {
            None | Some("auto") => Specialise::Auto,
            Some("off") => Specialise::Off,
            Some("on") => Specialise::On,
            Some(other) => return Err(Error::of_key("specialise", "off, auto or on", other)),
        };
        let group: usize = host.config_or("group", 256)?;
        if !(1..=1024).contains(&group) || !group.is_power_of_two() {
            return Err(Error::of_key("group", "a power of two from 1 to 1024", &group.to_string()));
        }
        let builders: usize = host.config_or("builders", 0)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Settings {
            device: text("device").filter(|text| text != "auto"),
            memory,
            staging,
            small_bytes: size("small_bytes", 256 << 10)?,
            small_operations: host.config_or("small_operations", 4 << 20)?,
            group,
            specialise,
            fast_math: host.config_or("fast_math", false)?,
            cache_dir: cache_directory(host.config("cache_dir").as_deref()),
            dump: text("dump").map(PathBuf::from),
            profile: host.config_or("profile", false)?,
            builders: if builders == 0 { cores.min(16) } else { builders },
        })
    }
}

/// The directory of a text: a path, empty for none, or by default one in the user's cache directory.
fn cache_directory(text: Option<&str>) -> Option<PathBuf> {
    match text {
        None | Some("auto") => {
            let set = |name: &str| bh_core::environment::variable_os(name).map(PathBuf::from);
            let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
            let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
            Some(base.join("bh/opencl"))
        }
        Some("") => None,
        Some(path) => Some(path.into()),
    }
}

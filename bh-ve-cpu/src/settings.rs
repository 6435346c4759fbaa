//! The engine's config keys.

use crate::affinity::Affinity;
use crate::domains::domains;
use crate::primitives::Primitives;
use crate::prims::STREAMS;
use crate::processors;
use crate::simd::Isa;
use bh_core::abi::{log_level, status};
use bh_core::config::{Key, parse_size};
use bh_core::keys::ve_cpu;
use bh_core::{Error, Host, Result};
use bh_jit_abi::Divider;
use bh_kernel::TileOptions;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// How much of a batch is planned before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanningMode {
    /// As much as the batch asks for.
    Auto,
    /// Nothing that can run without a plan.
    Direct,
    /// Everything.
    Full,
}

/// When kernels are compiled to machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jit {
    /// Never.
    Off,
    /// In the background, when a kernel has proved hot.
    Auto,
    /// Before a kernel first runs.
    On,
}

/// Which chains of kernels run tile by tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeTiles {
    Off,
    /// Those that the model gains from.
    Auto,
    /// All, of this many kernels at most.
    Kernels(u32),
}

/// Values of the keys.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Participants of a kernel, the calling thread among them.
    pub(crate) threads: usize,
    /// Instruction set.
    pub(crate) isa: Isa,
    /// The speed of divisions that kernels are compiled for.
    pub(crate) divider: Divider,
    pub(crate) affinity: Affinity,
    /// Bytes of rows that a sliding window may have in use; `None` if kernels run one after the other.
    pub(crate) window_bytes: Option<i64>,
    /// Which chains of kernels run tile by tile.
    pub(crate) time_tiles: TimeTiles,
    /// Do several operations become one primitive, where there is one?
    pub(crate) superinstructions: bool,
    /// Outputs of at least this many bytes are written past the caches.
    pub(crate) stream_bytes: u64,
    /// How much is planned.
    pub(crate) planning: PlanningMode,
    /// About the most bytes of plans of batches that are kept.
    pub(crate) plan_bytes: usize,
    /// When kernels are compiled.
    pub(crate) jit: Jit,
    /// The most compiled kernels that are kept in memory.
    pub(crate) jit_kernels: usize,
    /// Where compiled kernels are kept from run to run.
    pub(crate) jit_cache_dir: Option<PathBuf>,
    /// The kernel compiler, if it is not looked for.
    pub(crate) jit_library: Option<PathBuf>,
    /// May compiled kernels round differently from block operations?
    pub(crate) fast_math: bool,
}

/// Bytes of the second-level cache if its size is not known.
const CACHE_BYTES: i64 = 768 << 10;
/// Bytes of the first-level cache if its size is not known.
const SMALL_BYTES: i64 = 32 << 10;
/// The most that a cache may be said to hold.
const MOST_BYTES: i64 = 0x1_0000_0000_0000;

/// Plans of ten thousand batches of a few operations each.
const PLAN_BYTES: usize = 128 << 20;

impl Settings {
    /// A number of threads from its text.
    pub(crate) fn threads(text: &str) -> Result<usize> {
        match (text, text.parse()) {
            ("" | "auto" | "0", _) => Ok(bh_core::machine::processors()),
            (_, Ok(threads @ 1..=1024)) => Ok(threads),
            _ => wrong("threads", text, "a number of threads from 1 to 1024, or auto"),
        }
    }

    /// The primitives that kernels are made of.
    pub(crate) fn primitives(&self) -> Primitives {
        Primitives { isa: self.isa, stream_bytes: self.stream_bytes, superinstructions: self.superinstructions }
    }

    /// The options of tiles, if windows have this many bytes.
    pub(crate) fn tiles(&self, bytes: i64) -> Option<TileOptions> {
        let kernels = match self.time_tiles {
            TimeTiles::Off => return None,
            TimeTiles::Auto => None,
            TimeTiles::Kernels(kernels) => Some(kernels),
        };
        let small = cache(1).unwrap_or(SMALL_BYTES);
        Some(TileOptions { bytes, small, threads: self.threads as i64, kernels })
    }

    /// Reads and checks the keys.
    pub(crate) fn read(host: &Host) -> Result<Settings> {
        let mut threads = Settings::threads(&host.setting(&ve_cpu::THREADS)?)?;
        let isa = match host.setting(&ve_cpu::ISA)?.as_str() {
            "" | "auto" => Isa::detect(),
            text => match Isa::from_name(text) {
                Some(isa) if isa.is_available() => isa,
                _ => {
                    let names: Vec<&str> = Isa::available().map(Isa::name).collect();
                    let form = format!("auto or an instruction set of this processor ({})", names.join(", "));
                    return wrong("isa", text, &form);
                }
            },
        };
        let (own, family) = processors::divider();
        host.log(log_level::DEBUG, &format!("kernels divide as {family} does ({own:?})"));
        let dividers = [
            ("auto", own),
            ("slow", Divider::Slow),
            ("fast", Divider::Fast),
            ("wide", Divider::Wide),
            ("unknown", Divider::Unknown),
        ];
        let divider = choice(host, &ve_cpu::DIVIDER, &dividers)?;
        let mut affinity = Affinity::parse(&host.setting(&ve_cpu::AFFINITY)?)
            .map_err(|text| Error::new(status::CONFIG, format!("config key 'affinity': {text}")))?;
        // One of several instances of a stack has the processors next to its part of the memory.
        if let Some(number) = host.device_number()
            && let Some(processors) = domains(&host.setting(&ve_cpu::DOMAINS)?)?.into_iter().nth(number)
        {
            (threads, affinity) = (processors.len(), Affinity::List(processors));
        }
        let most = cache(2).map_or(CACHE_BYTES, |bytes| bytes / 4 * 3);
        let window_bytes = bytes(host, &ve_cpu::WINDOW_BYTES, 1..=MOST_BYTES, most)?;
        let share = bh_core::machine::STREAM_BYTES / bh_core::machine::processes() as u64;
        let share = if STREAMS { share } else { u64::MAX };
        let stream_bytes = bytes(host, &ve_cpu::STREAM_BYTES, 0..=u64::MAX, share)?;
        let plan_bytes = bytes(host, &ve_cpu::PLAN_BYTES, 0..=usize::MAX, PLAN_BYTES)?;
        let window_bytes = choice(host, &ve_cpu::WINDOWS, &[("auto", Some(window_bytes)), ("off", None)])?;
        let time_tiles = match host.setting(&ve_cpu::TIME_TILES)?.as_str() {
            "auto" => TimeTiles::Auto,
            "" | "off" => TimeTiles::Off,
            text => match text.parse() {
                Ok(kernels @ 1..=1024) => TimeTiles::Kernels(kernels),
                _ => return wrong("time_tiles", text, "auto, off or a number of kernels from 1 to 1024"),
            },
        };
        let superinstructions = choice(host, &ve_cpu::SUPERINSTRUCTIONS, &[("auto", true), ("off", false)])?;
        let modes = [("auto", PlanningMode::Auto), ("direct", PlanningMode::Direct), ("full", PlanningMode::Full)];
        let planning = choice(host, &ve_cpu::PLANNING, &modes)?;
        let jit = choice(host, &ve_cpu::JIT, &[("auto", Jit::Auto), ("on", Jit::On), ("off", Jit::Off)])?;
        let jit_cache_dir = match host.setting(&ve_cpu::JIT_CACHE_DIR)?.as_str() {
            "auto" => cache_directory(),
            "" => None,
            directory => Some(PathBuf::from(directory)),
        };
        let jit_library = host.config(&ve_cpu::JIT_LIBRARY).filter(|file| !file.is_empty()).map(PathBuf::from);
        if let Some(file) = jit_library.as_ref().filter(|file| !file.is_file()) {
            return wrong("jit_library", &file.display().to_string(), "the path of the kernel compiler's library");
        }
        let jit_kernels = host.setting(&ve_cpu::JIT_KERNELS)?;
        let fast_math = host.setting(&ve_cpu::FAST_MATH)?;
        Ok(Settings {
            threads,
            isa,
            divider,
            affinity,
            window_bytes,
            time_tiles,
            superinstructions,
            stream_bytes,
            planning,
            plan_bytes,
            jit,
            jit_kernels,
            jit_cache_dir,
            jit_library,
            fast_math,
        })
    }
}

/// The value of a key that is one of some words; the first one may be left out.
fn choice<T: Copy>(host: &Host, key: &Key<String>, words: &[(&str, T)]) -> Result<T> {
    let text = host.config(key).filter(|text| !text.is_empty());
    let Some(text) = text else { return Ok(words[0].1) };
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let (last, others) = names.split_last().expect("there are words");
            wrong(host.spelling(key), &text, &format!("{} or {last}", others.join(", ")))
        }
    }
}

/// The value of a key that is a size in bytes in a range, or "auto".
fn bytes<T: TryFrom<usize> + PartialOrd + Display>(
    host: &Host,
    key: &Key<String>,
    range: RangeInclusive<T>,
    auto: T,
) -> Result<T> {
    let text = match host.config(key) {
        None => return Ok(auto),
        Some(text) if text.is_empty() || text == "auto" => return Ok(auto),
        Some(text) => text,
    };
    // There is nothing that a percentage could be of.
    let size = parse_size(&text, || 0).filter(|_| !text.ends_with('%'));
    match size.and_then(|size| T::try_from(size).ok()) {
        Some(size) if range.contains(&size) => Ok(size),
        _ => {
            let form = format!("auto or a size from {} to {} bytes, like 768KiB or 64MiB", range.start(), range.end());
            wrong(host.spelling(key), &text, &form)
        }
    }
}

/// Bytes of a processor's cache of data: the first or the second level.
#[cfg(target_os = "linux")]
fn cache(level: usize) -> Option<i64> {
    let question = [libc::_SC_LEVEL1_DCACHE_SIZE, libc::_SC_LEVEL2_CACHE_SIZE][level - 1];
    // SAFETY: a question without arguments in memory.
    let answer = unsafe { libc::sysconf(question) };
    (answer > 0).then_some(answer)
}

#[cfg(not(target_os = "linux"))]
fn cache(_: usize) -> Option<i64> {
    None
}

/// The user's directory for compiled kernels.
fn cache_directory() -> Option<PathBuf> {
    let set = |name: &str| bh_core::environment::variable_os(name).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    caches.is_absolute().then(|| caches.join("bh/kernels"))
}

fn wrong<T>(key: &str, value: &str, form: &str) -> Result<T> {
    Err(Error::of_key(key, form, value))
}

//! Reads the cluster's configuration.

use crate::coordinator::membership::Stacks;
use crate::plan::layout::Weights;
use crate::plan::rates::Rates;
use crate::plan::settings::{Grids, Settings};
use crate::run::shares::MOST_PERCENT;
use crate::run::tune::{self, Given};
use bh_core::component::Host;
use bh_core::config::{Key, Setting};
use bh_core::error::{Error, Result};
use bh_core::keys;
use bh_core::launcher::Launcher;
use bh_core::stack::DESCRIPTION;
use std::ffi::{CStr, c_char};

/// The stack of this component, as configuration text.
pub(super) fn description(host: &Host) -> String {
    let text = host.handle(DESCRIPTION).cast_const().cast::<c_char>();
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the stack keeps the NUL-terminated text as long as its components.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Rows computed ahead, in percent of a rank's own, by ranks in host memory: enough to run several iterations as time
/// tiles.
const AHEAD_PERCENT: u32 = 10;

/// The same if a rank has its own device memory: less, because iterations of other sizes need further kernels.
const AHEAD_PERCENT_ON_DEVICES: u32 = 2;

/// Right factors up to this size are copied to all ranks of one host: any other method would also move them through its
/// memory.
const KEEP_BYTES: u64 = 64 << 20;

/// A right factor is copied to every device, or sibling, if it fits this fraction (1/KEPT) of the smallest memory.
const KEPT: u64 = 8;

/// Defaults for keys that the configuration does not set.
pub(super) struct Defaults {
    overlap_bytes: u64,
    ahead_percent: u32,
    keep_bytes: u64,
}

impl Defaults {
    /// Defaults for ranks with these stacks, on one host or several.
    fn of_ranks(stacks: &Stacks, one_host: bool) -> Defaults {
        let in_host_memory = stacks.iter().all(|one| one.memory.is_none());
        let memory: Option<Vec<u64>> = stacks.iter().map(|one| one.memory).collect();
        Defaults {
            overlap_bytes: keys::cluster::OVERLAP_BYTES.default(),
            ahead_percent: if in_host_memory { AHEAD_PERCENT } else { AHEAD_PERCENT_ON_DEVICES },
            keep_bytes: match memory.and_then(|all| all.into_iter().min()) {
                Some(least) => part_for_factors(least),
                None if in_host_memory && one_host => KEEP_BYTES,
                None => keys::cluster::KEEP_BYTES.default(),
            },
        }
    }

    /// Defaults for several processes with these stacks.
    pub(super) fn of_processes(all: &[Stacks]) -> Defaults {
        let one_host = Launcher::find().is_some_and(|launcher| launcher.local_size == launcher.size);
        Defaults::of_ranks(&all.concat(), one_host)
    }

    /// Defaults for one process: one stack per rank, or a single stack that simulates all ranks. Simulated ranks send
    /// what ranks on several hosts would.
    pub(super) fn of_process(stacks: &Stacks) -> Defaults {
        let mut defaults = Defaults::of_ranks(stacks, false);
        // Siblings do not overlap: splitting a batch needs further kernels, whose memory traffic exceeds the gain.
        if stacks.len() > 1 {
            defaults.overlap_bytes = u64::MAX;
            // Siblings without their own memory share the host's.
            let in_host = stacks.iter().filter(|one| one.memory.is_none()).count() as u64;
            let of_host = bh_core::machine::memory() / in_host.max(1);
            let least = stacks.iter().map(|one| one.memory.unwrap_or(of_host)).min();
            defaults.keep_bytes = part_for_factors(least.unwrap_or(0));
        }
        defaults
    }
}

/// The part of a memory that a copied factor may occupy.
fn part_for_factors(memory: u64) -> u64 {
    memory / 100 * MOST_PERCENT / KEPT
}

/// The value of a key, or a default if it is not set.
fn given_or<T: Setting>(host: &Host, key: &Key<T>, otherwise: T) -> Result<T> {
    match host.config(key) {
        Some(_) => host.setting(key),
        None => Ok(otherwise),
    }
}

/// The settings for this many ranks. `speeds`: announced speeds by rank.
pub(super) fn settings(host: &Host, ranks: usize, speeds: Option<Vec<f64>>, defaults: Defaults) -> Result<Settings> {
    let (weights, rates) = shares(host, ranks, speeds)?;
    Ok(Settings {
        weights,
        rates,
        small_bytes: host.setting(&keys::cluster::SMALL_BYTES)?,
        overlap_rows: host.setting(&keys::cluster::OVERLAP_ROWS)?.into(),
        ahead_percent: given_or(host, &keys::cluster::AHEAD_PERCENT, defaults.ahead_percent)?.into(),
        grid: Grids::read(&host.setting(&keys::cluster::GRID)?, ranks)?,
        overlap_bytes: given_or(host, &keys::cluster::OVERLAP_BYTES, defaults.overlap_bytes)?,
        keep_bytes: given_or(host, &keys::cluster::KEEP_BYTES, defaults.keep_bytes)?,
    })
}

/// This process's settings as one line, for comparison with other processes.
pub(super) fn line(host: &Host) -> Result<String> {
    let grid = host.setting(&keys::cluster::GRID)?;
    let settings = Settings {
        small_bytes: host.setting(&keys::cluster::SMALL_BYTES)?,
        overlap_rows: host.setting(&keys::cluster::OVERLAP_ROWS)?.into(),
        ahead_percent: host.setting(&keys::cluster::AHEAD_PERCENT)?.into(),
        grid: Grids::default(),
        overlap_bytes: host.setting(&keys::cluster::OVERLAP_BYTES)?,
        keep_bytes: host.setting(&keys::cluster::KEEP_BYTES)?,
        ..Settings::default(1)
    };
    Ok(settings.line(&host.config(&keys::cluster::WEIGHTS).unwrap_or_default(), &grid))
}

/// The weights from the key, from announced speeds, or equal ones; and the ranks' rates if shares follow the kinds of
/// work.
fn shares(host: &Host, ranks: usize, speeds: Option<Vec<f64>>) -> Result<(Weights, Vec<Rates>)> {
    let of_rates = |rates: Vec<Rates>| {
        let weights = Weights::given(rates.iter().map(|rates| rates.0[0]).collect())?;
        (rates.len() == ranks && Rates::are_sound(&rates)).then_some((weights, rates))
    };
    let Some(text) = host.config(&keys::cluster::WEIGHTS).filter(|text| !text.is_empty()) else {
        let rates = speeds.map(|speeds| speeds.into_iter().map(Rates::announced).collect());
        return Ok(rates.and_then(of_rates).unwrap_or_else(|| (Weights::even(ranks), Vec::new())));
    };
    if text == tune::EVEN {
        return Ok((Weights::even(ranks), Vec::new()));
    }
    let given = match tune::given(&text) {
        Some(Given::Shares(shares)) => {
            Weights::given(shares).filter(|weights| weights.ranks() == ranks).map(|weights| (weights, Vec::new()))
        }
        Some(Given::Rates(rates)) => of_rates(rates),
        None => None,
    };
    given.ok_or_else(|| {
        let form =
            format!("{ranks} numbers from 0 that are not all 0, or a file with them or of bh tune for {ranks} engines");
        Error::of_key("weights", &form, &text)
    })
}

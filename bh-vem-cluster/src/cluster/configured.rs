//! What the configuration says of a cluster.

use crate::lead::roster::Stacks;
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

/// The stack that this component is part of, as a configuration.
pub(super) fn description(host: &Host) -> String {
    let text = host.handle(DESCRIPTION).cast_const().cast::<c_char>();
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the stack keeps the text as long as its components, and ends it with NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// How far ranks that work in host memory go ahead, so that they do several turns of a loop tile by tile, as one would.
const AHEAD_PERCENT: u32 = 10;

/// The same where some have memory of their own: less, as turns of other sizes are kernels that a device builds.
const AHEAD_PERCENT_ON_DEVICES: u32 = 2;

/// Right factors of products that come to all ranks of one host as a whole: they would all pass through its memory anyway.
const KEEP_BYTES: u64 = 64 << 20;

/// A factor that takes no more than one part in this many of the least memory of devices, or of siblings, comes to them as a whole.
const KEPT: u64 = 8;

/// What suits some ranks where the configuration does not name it.
pub(super) struct Defaults {
    overlap_bytes: u64,
    ahead_percent: u32,
    keep_bytes: u64,
}

impl Defaults {
    /// Those of ranks with such stacks, on one host or on several.
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

    /// Those of several processes with such stacks.
    pub(super) fn of_processes(all: &[Stacks]) -> Defaults {
        let one_host = Launcher::find().is_some_and(|launcher| launcher.local_size == launcher.size);
        Defaults::of_ranks(&all.concat(), one_host)
    }

    /// Those of one process with such stacks, one for each rank or one for all that it simulates: these send what ranks of several
    /// hosts would.
    pub(super) fn of_process(stacks: &Stacks) -> Defaults {
        let mut defaults = Defaults::of_ranks(stacks, false);
        // What siblings compute while elements move takes kernels of its own, which read and write more than they win.
        if stacks.len() > 1 {
            defaults.overlap_bytes = u64::MAX;
            // Those without memory of their own share the host's.
            let in_host = stacks.iter().filter(|one| one.memory.is_none()).count() as u64;
            let of_host = bh_core::machine::memory() / in_host.max(1);
            let least = stacks.iter().map(|one| one.memory.unwrap_or(of_host)).min();
            defaults.keep_bytes = part_for_factors(least.unwrap_or(0));
        }
        defaults
    }
}

/// How much of a memory may be a factor that comes as a whole.
fn part_for_factors(memory: u64) -> u64 {
    memory / 100 * MOST_PERCENT / KEPT
}

/// What the configuration says, if it does.
fn given_or<T: Setting>(host: &Host, key: &Key<T>, otherwise: T) -> Result<T> {
    match host.config(key) {
        Some(_) => host.setting(key),
        None => Ok(otherwise),
    }
}

/// How the configuration shares out work among ranks. `speeds`: how fast they say they are.
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

/// What a process's configuration says of shares, in a line that is equal where the settings are.
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

/// What the key says, or what follows from speeds, or equal shares; and how fast ranks are, if shares are to follow that.
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

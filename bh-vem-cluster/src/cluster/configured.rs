//! What the configuration says of a cluster.

use crate::lead::roster::Stacks;
use crate::plan::layout::Weights;
use crate::plan::rates::Rates;
use crate::plan::settings::{Grids, Settings};
use crate::run::tune::{self, Given};
use bh_core::component::Host;
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

/// Right factors of products that come to all ranks of one host as a whole: they would all pass through its memory anyway.
const KEEP_BYTES: u64 = 64 << 20;

/// What suits some ranks where the configuration does not name it.
pub(super) struct Defaults {
    overlap_bytes: u64,
    ahead_percent: u32,
    keep_bytes: u64,
}

impl Defaults {
    /// Those of ranks in general. `in_host_memory`: none has memory of its own, as devices have.
    fn of_ranks(in_host_memory: bool) -> Defaults {
        let (overlap_bytes, ahead_percent) = (&keys::cluster::OVERLAP_BYTES, &keys::cluster::AHEAD_PERCENT);
        let ahead_percent = if in_host_memory { AHEAD_PERCENT } else { ahead_percent.default() };
        Defaults { overlap_bytes: overlap_bytes.default(), ahead_percent, keep_bytes: 0 }
    }

    /// Those of several processes with such stacks.
    pub(super) fn of_processes(all: &[Stacks]) -> Defaults {
        let in_host_memory = all.iter().flatten().all(|one| one.memory.is_none());
        let one_host = Launcher::find().is_some_and(|launcher| launcher.local_size == launcher.size);
        let keep_bytes = if in_host_memory && one_host { KEEP_BYTES } else { 0 };
        Defaults { keep_bytes, ..Defaults::of_ranks(in_host_memory) }
    }

    /// Those of one process with such stacks, one for each rank or one for all that it simulates.
    pub(super) fn of_process(stacks: &Stacks) -> Defaults {
        let mut defaults = Defaults::of_ranks(stacks.iter().all(|one| one.memory.is_none()));
        // What siblings compute while elements move takes kernels of its own, which read and write more than they win.
        if stacks.len() > 1 {
            defaults.overlap_bytes = u64::MAX;
        }
        defaults
    }
}

/// How the configuration shares out work among ranks. `speeds`: how fast they say they are.
pub(super) fn settings(host: &Host, ranks: usize, speeds: Option<Vec<f64>>, defaults: Defaults) -> Result<Settings> {
    let overlap_bytes = match host.config(&keys::cluster::OVERLAP_BYTES) {
        Some(_) => host.setting(&keys::cluster::OVERLAP_BYTES)?,
        None => defaults.overlap_bytes,
    };
    let ahead_percent = match host.config(&keys::cluster::AHEAD_PERCENT) {
        Some(_) => host.setting(&keys::cluster::AHEAD_PERCENT)?,
        None => defaults.ahead_percent,
    };
    let (weights, rates) = shares(host, ranks, speeds)?;
    Ok(Settings {
        weights,
        rates,
        small_bytes: host.setting(&keys::cluster::SMALL_BYTES)?,
        overlap_rows: host.setting(&keys::cluster::OVERLAP_ROWS)?.into(),
        ahead_percent: ahead_percent.into(),
        grid: Grids::read(&host.setting(&keys::cluster::GRID)?, ranks)?,
        overlap_bytes,
        keep_bytes: defaults.keep_bytes,
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

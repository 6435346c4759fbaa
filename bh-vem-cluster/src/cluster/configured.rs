//! What the configuration says of a cluster.

use crate::plan::layout::Weights;
use crate::plan::rates::Rates;
use crate::plan::settings::Settings;
use crate::run::tune::{self, Given};
use bh_core::component::Host;
use bh_core::error::{Error, Result};
use bh_core::keys;
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

/// What suits some ranks where the configuration does not name it.
pub(super) struct Defaults {
    pub overlap_bytes: u64,
    pub ahead_percent: u32,
}

impl Defaults {
    /// Those of ranks in general.
    pub(super) fn of_ranks() -> Defaults {
        let (overlap_bytes, ahead_percent) = (&keys::cluster::OVERLAP_BYTES, &keys::cluster::AHEAD_PERCENT);
        Defaults { overlap_bytes: overlap_bytes.default(), ahead_percent: ahead_percent.default() }
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
        overlap_bytes,
    })
}

/// What a process's configuration says of shares, in a line that is equal where the settings are.
pub(super) fn line(host: &Host) -> Result<String> {
    let settings = Settings {
        weights: Weights::even(1),
        rates: Vec::new(),
        small_bytes: host.setting(&keys::cluster::SMALL_BYTES)?,
        overlap_rows: host.setting(&keys::cluster::OVERLAP_ROWS)?.into(),
        ahead_percent: host.setting(&keys::cluster::AHEAD_PERCENT)?.into(),
        overlap_bytes: host.setting(&keys::cluster::OVERLAP_BYTES)?,
    };
    Ok(settings.line(&host.config(&keys::cluster::WEIGHTS).unwrap_or_default()))
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

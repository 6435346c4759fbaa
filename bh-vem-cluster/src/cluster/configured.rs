//! What the configuration says of a cluster.

use crate::plan::layout::Weights;
use crate::plan::settings::Settings;
use crate::run::tune;
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

/// How the configuration shares out work among ranks. `shares`: as fast as they are, if they differ.
pub(super) fn settings(host: &Host, ranks: usize, shares: Option<Vec<f64>>, overlap_bytes: u64) -> Result<Settings> {
    let overlap_bytes = match host.config(&keys::cluster::OVERLAP_BYTES) {
        Some(_) => host.setting(&keys::cluster::OVERLAP_BYTES)?,
        None => overlap_bytes,
    };
    Ok(Settings {
        weights: weights(host, ranks, shares)?,
        small_bytes: host.setting(&keys::cluster::SMALL_BYTES)?,
        overlap_rows: host.setting(&keys::cluster::OVERLAP_ROWS)?.into(),
        ahead_percent: host.setting(&keys::cluster::AHEAD_PERCENT)?.into(),
        overlap_bytes,
    })
}

/// What a process's configuration says of shares, in a line that is equal where the settings are.
pub(super) fn line(host: &Host) -> Result<String> {
    let settings = Settings {
        weights: Weights::even(1),
        small_bytes: host.setting(&keys::cluster::SMALL_BYTES)?,
        overlap_rows: host.setting(&keys::cluster::OVERLAP_ROWS)?.into(),
        ahead_percent: host.setting(&keys::cluster::AHEAD_PERCENT)?.into(),
        overlap_bytes: host.setting(&keys::cluster::OVERLAP_BYTES)?,
    };
    Ok(settings.line(&host.config(&keys::cluster::WEIGHTS).unwrap_or_default()))
}

/// Those of the key, or the given ones, or equal ones.
fn weights(host: &Host, ranks: usize, shares: Option<Vec<f64>>) -> Result<Weights> {
    let Some(text) = host.config(&keys::cluster::WEIGHTS).filter(|text| !text.is_empty()) else {
        let shares = shares.filter(|shares| shares.len() == ranks);
        return Ok(shares.and_then(Weights::given).unwrap_or_else(|| Weights::even(ranks)));
    };
    let weights = tune::shares(&text).filter(|numbers| numbers.len() == ranks).and_then(Weights::given);
    weights.ok_or_else(|| {
        Error::of_key("weights", &format!("{ranks} numbers from 0 that are not all 0, or a file with them"), &text)
    })
}

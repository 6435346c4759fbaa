//! Levels of the log on standard error, as named in `BH_LOG`.

use crate::abi::log_level::{DEBUG, ERROR, INFO, WARN};

const NAMES: [(&str, u32); 5] = [("off", 0), ("error", ERROR), ("warn", WARN), ("info", INFO), ("debug", DEBUG)];

/// The level of this name; the error lists the valid names.
pub fn parse_level(name: &str) -> Result<u32, String> {
    let found = NAMES.iter().find(|(known, _)| *known == name);
    found.map(|&(_, level)| level).ok_or_else(|| NAMES.map(|(name, _)| name).join(", "))
}

/// The name of a level.
pub fn level_name(level: u32) -> &'static str {
    NAMES.iter().find(|&&(_, known)| known == level).map_or("debug", |&(name, _)| name)
}

//! Settings of the core, from text to typed values.

use super::{Config, Section, Value};
use crate::abi::{log_level, status};
use crate::error::{Error, Result};
use crate::log::parse_level;
use crate::memory::MemorySettings;

impl Config {
    /// The limits of the host memory. Parts of the machine's memory count what a container may use.
    pub fn memory_settings(&self) -> Result<MemorySettings> {
        let size = |key: &str, default: &str| {
            let value = self.core_value("memory", key).unwrap_or_else(|| built_in(default));
            parse_size(&value.value, machine_memory).ok_or_else(|| {
                self.invalid(&value, key, "a size like 8GiB, 512MiB, 4096 or 90% (of the machine's memory), or none")
            })
        };
        Ok(MemorySettings {
            limit: size("limit", "90%")?,
            cache: size("cache", "25%")?,
            huge_pages: self.core_flag("memory", "huge_pages")?.unwrap_or(true),
        })
    }

    /// The level of the log: `BH_LOG`, else warnings and errors.
    pub fn log_level(&self) -> Result<u32> {
        match self.variable("BH_LOG") {
            None => Ok(log_level::WARN),
            Some(name) => parse_level(name).map_err(|valid| {
                let text = format!("environment variable BH_LOG: '{name}' is no log level; valid: {valid}");
                Error::new(status::CONFIG, text)
            }),
        }
    }

    /// A number of a core section, if it is set.
    pub fn core_number(&self, section: &str, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.core_value(section, key) else { return Ok(None) };
        let number = parse_size(&value.value, machine_memory).map(|size| size as u64);
        number.map(Some).ok_or_else(|| self.invalid(&value, key, "a number or a size like 512MiB"))
    }

    /// A size of a core section: `default` (the text of one) if it is not set.
    pub fn core_size(&self, section: &str, key: &str, default: &str) -> Result<u64> {
        match self.core_number(section, key)? {
            Some(size) => Ok(size),
            None => Ok(parse_size(default, machine_memory).unwrap_or(usize::MAX) as u64),
        }
    }

    fn core_flag(&self, section: &str, key: &str) -> Result<Option<bool>> {
        let Some(value) = self.core_value(section, key) else { return Ok(None) };
        match value.value.as_str() {
            "true" | "1" => Ok(Some(true)),
            "false" | "0" => Ok(Some(false)),
            _ => Err(self.invalid(&value, key, "true or false")),
        }
    }

    fn core_value(&self, section: &str, key: &str) -> Option<Value> {
        self.value(Section::Core(section), key)
    }

    fn invalid(&self, value: &Value, key: &str, wanted: &str) -> Error {
        let text = format!("{}: key '{key}' must be {wanted}, not '{}'", value.place, value.value);
        Error::new(status::CONFIG, text)
    }
}

fn built_in(value: &str) -> Value {
    Value { value: value.to_owned(), place: String::new() }
}

/// Bytes: a number with an optional unit, a percentage of `whole`, or "none" for no bound.
fn parse_size(text: &str, whole: impl Fn() -> u64) -> Option<usize> {
    let text = text.trim();
    if text == "none" {
        return Some(usize::MAX);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let factor = match unit {
        "%" => {
            let percent: f64 = number.parse().ok()?;
            return (percent <= 100.0).then(|| (whole() as f64 * percent / 100.0) as usize);
        }
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1u64 << 40,
        _ => return None,
    };
    match number.parse::<u64>() {
        Ok(number) => usize::try_from(number.checked_mul(factor)?).ok(),
        Err(_) => number.parse::<f64>().ok().filter(|_| factor > 1).map(|number| (number * factor as f64) as usize),
    }
}

/// Bytes of memory that this process may use: the machine's, or its container's if that is less.
fn machine_memory() -> u64 {
    // SAFETY: plain system queries.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let machine = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(page).unwrap_or(0));
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let container = limits.iter().find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    container.map_or(machine, |limit: u64| limit.min(machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_parts() {
        let parse = |text| parse_size(text, || 1000);
        let cases = [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("8GiB", Some(8 << 30)),
            ("1.5 MiB", Some(3 << 19)),
            ("90%", Some(900)),
            ("none", Some(usize::MAX)),
            ("101%", None),
            ("1.5", None),
            ("8GB", None),
            ("", None),
            ("-1", None),
            ("99999999TiB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert!(machine_memory() > 1 << 26);
    }
}

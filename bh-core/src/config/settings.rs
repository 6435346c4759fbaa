//! Settings of the core, from text to typed values.

use super::{Checks, Config, Recipes, Section, Value};
use crate::abi::{log_level, status};
use crate::component::Setting;
use crate::error::{Error, Result};
use crate::log::parse_level;
use crate::machine;
use crate::memory::MemorySettings;

impl Config {
    /// The limits of the host memory. Parts of the machine's memory count what a container may use.
    pub fn memory_settings(&self) -> Result<MemorySettings> {
        let size = |key: &str, default: &str| {
            let value = self.core_value("memory", key).unwrap_or_else(|| built_in(default));
            parse_size(&value.value, machine::memory).ok_or_else(|| {
                self.invalid(&value, key, "a size like 8GiB, 512MiB, 4096 or 90% (of the machine's memory), or none")
            })
        };
        Ok(MemorySettings {
            limit: size("limit", "90%")?,
            cache: size("cache", "25%")?,
            huge_pages: self.core_flag("memory", "huge_pages")?.unwrap_or(true),
        })
    }

    /// The checks of operations: `BH_CHECK`, else the key.
    pub fn checks(&self) -> Result<Checks> {
        let (list, place) = match self.variable("BH_CHECK") {
            Some(list) => (list.to_owned(), "environment variable BH_CHECK".to_owned()),
            None => match self.core_value("recorder", "check") {
                Some(value) => (value.value, format!("{}: key 'check'", value.place)),
                None => return Ok(Checks::default()),
            },
        };
        Checks::parse(&list).map_err(|text| Error::new(status::CONFIG, format!("{place}: {text}")))
    }

    /// Which results the recorder does not store.
    pub fn recipes(&self) -> Result<Recipes> {
        let Some(value) = self.core_value("recorder", "recipes") else { return Ok(Recipes::default()) };
        Recipes::read(&value.value).ok_or_else(|| self.invalid(&value, "recipes", Recipes::FORM))
    }

    /// What is wrong with the settings of the core: the sections `memory` and `recorder`, and the environment's place of them.
    pub fn core_errors(&self) -> Vec<Error> {
        let recorder = ["max_instructions", "max_bytes", "small_bytes", "immediate_bytes"];
        let numbers = recorder.map(|key| self.core_number("recorder", key).map(drop));
        let others = [
            self.memory_settings().map(drop),
            self.checks().map(drop),
            self.recipes().map(drop),
            self.log_level().map(drop),
        ];
        numbers.into_iter().chain(others).filter_map(Result::err).collect()
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
        let number = parse_size(&value.value, machine::memory).map(|size| size as u64);
        number.map(Some).ok_or_else(|| {
            self.invalid(&value, key, "a number, a size like 512MiB or 50% (of the machine's memory), or none")
        })
    }

    fn core_flag(&self, section: &str, key: &str) -> Result<Option<bool>> {
        let Some(value) = self.core_value(section, key) else { return Ok(None) };
        bool::read(&value.value).map(Some).ok_or_else(|| self.invalid(&value, key, bool::FORM))
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

/// Bytes: a number with an optional unit (KiB, MiB, GiB, TiB), a percentage of `whole`, or "none" for no bound.
pub fn parse_size(text: &str, whole: impl Fn() -> u64) -> Option<usize> {
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
    }
}

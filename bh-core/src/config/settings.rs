//! Settings of the core, from text to typed values.

use super::{Checks, Config, Key, Setting, Table, Value, core_sections};
use crate::abi::{log_level, status};
use crate::error::{Error, Result};
use crate::keys::{memory, recorder};
use crate::log::parse_level;
use crate::machine;
use crate::memory::MemorySettings;

/// Bytes, or another number, as [`parse_size`] reads them. Percentages are of the machine's memory, or of what a container may
/// use of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

impl Setting for Size {
    const FORM: &'static str = "a size like 8GiB, 512MiB, 4096 or 90% (of the machine's memory), or none";

    fn read(text: &str) -> Option<Size> {
        parse_size(text, machine::memory).map(Size)
    }
}

impl Config {
    /// The limits of the host memory.
    pub fn memory_settings(&self) -> Result<MemorySettings> {
        Ok(MemorySettings {
            limit: self.core(&memory::LIMIT)?.0,
            cache: self.core(&memory::CACHE)?.0,
            huge_pages: self.core(&memory::HUGE_PAGES)?,
        })
    }

    /// The checks of operations: `BH_CHECK`, else the key.
    pub fn checks(&self) -> Result<Checks> {
        let (list, place) = match self.variable("BH_CHECK") {
            Some(list) => (list.to_owned(), "environment variable BH_CHECK".to_owned()),
            None => match self.core_value(&recorder::CHECK) {
                Some(value) => (value.value, format!("{}: key 'check'", value.place)),
                None => return Ok(Checks::default()),
            },
        };
        Checks::parse(&list).map_err(|text| Error::new(status::CONFIG, format!("{place}: {text}")))
    }

    /// What is wrong with the settings of the core: its sections, and the environment's place of them.
    pub fn core_errors(&self) -> Vec<Error> {
        let mut errors: Vec<Error> = self.checks().err().into_iter().chain(self.log_level().err()).collect();
        for row in core_sections().flat_map(|section| section.rows) {
            if let Some(value) = self.value(Table::Core(row.section), row.name)
                && !(row.is_legal)(&value.value)
            {
                errors.push(invalid(&value, row.name, row.form));
            }
        }
        errors
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

    /// The value of a key of the core, its default if it is unset.
    pub fn core<T: Setting>(&self, key: &Key<T>) -> Result<T> {
        Ok(self.core_if_set(key)?.unwrap_or_else(|| key.default()))
    }

    /// The value of a key of the core, if it is set.
    pub fn core_if_set<T: Setting>(&self, key: &Key<T>) -> Result<Option<T>> {
        let Some(value) = self.core_value(key) else { return Ok(None) };
        T::read(&value.value).map(Some).ok_or_else(|| invalid(&value, key.name(), T::FORM))
    }

    fn core_value<T: Setting>(&self, key: &Key<T>) -> Option<Value> {
        self.value(Table::Core(key.row().section), key.name())
    }
}

fn invalid(value: &Value, key: &str, wanted: &str) -> Error {
    let text = format!("{}: key '{key}' must be {wanted}, not '{}'", value.place, value.value);
    Error::new(status::CONFIG, text)
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

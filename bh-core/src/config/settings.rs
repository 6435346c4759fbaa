//! Settings of the core, parsed to typed values.

use super::{Checks, Config, Key, Setting, Table, Value, core_sections};
use crate::abi::{log_level, status};
use crate::error::{Error, Result};
use crate::keys::{memory, recorder};
use crate::log::parse_level;
use crate::memory::MemorySettings;

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

    /// The errors in the settings of the core: in its sections, and in the environment that overrides them.
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

    /// The value of a key of the core, or its default if it is unset.
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

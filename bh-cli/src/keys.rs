//! `bh info --keys`: every key of the configuration, with its value and the place that sets it.

use bh_core::config::{Row, Table};
use bh_core::keys::SECTIONS;
use bh_core::{Config, Result};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Prints the keys. Fails only without a readable configuration.
pub fn run(as_json: bool) -> Result<ExitCode> {
    let config = Config::find()?;
    let mut all: Vec<Value> = Vec::new();
    for section in SECTIONS {
        let table = if section.is_component { Table::Component(section.name) } else { Table::Core(section.name) };
        all.extend(section.rows.iter().map(|row| entry(&config, table, row)));
    }
    if as_json {
        println!("{:#}", Value::Array(all));
        return Ok(ExitCode::SUCCESS);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut last = String::new();
    for key in all {
        let (section, place) = (text(&key["section"]), text(&key["place"]));
        if section != last {
            println!("[{section}]");
            last = section;
        }
        let from = if place.is_empty() { "default".to_owned() } else { place };
        println!("  {:<18} {:<12} {from}", text(&key["key"]), text(&key["value"]));
    }
    Ok(ExitCode::SUCCESS)
}

/// A key as JSON; the place is empty for a default.
fn entry(config: &Config, table: Table<'_>, row: &Row) -> Value {
    let set = row.names().find_map(|name| config.value(table, name));
    let (value, place) = set.map_or_else(|| (row.default_text(), String::new()), |set| (set.value, set.place));
    json!({
        "section": row.section,
        "key": row.name,
        "value": value,
        "default": row.default_text(),
        "place": place,
        "text": row.text,
    })
}

//! `bh check-config`: everything that is wrong with a configuration, at once.

use bh_core::{Config, Error, Result, Stack, environment, loader};
use std::path::Path;
use std::process::ExitCode;

/// Checks a configuration file and prints the errors.
pub fn config(file: &Path) -> Result<ExitCode> {
    let config = Config::from_file(file)?.with_environment(environment::bh_variables());
    let mut errors: Vec<Error> = loader::check(&config);
    // Components are fine by themselves: does each stack start?
    if errors.is_empty() {
        let names: Vec<String> = config.stack_names().map(str::to_owned).collect();
        errors.extend(names.iter().filter_map(|name| Stack::load(&config, Some(name)).err()));
    }
    if errors.is_empty() {
        let names: Vec<&str> = config.stack_names().collect();
        println!("{}: stacks {} load", file.display(), names.join(", "));
        return Ok(ExitCode::SUCCESS);
    }
    for error in &errors {
        eprintln!("{error}");
    }
    Ok(ExitCode::FAILURE)
}

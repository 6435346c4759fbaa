//! `bh check-config`: reports all errors of a configuration at once.

use bh_core::abi::{kind, status};
use bh_core::{Config, Error, Result, Stack, environment, loader};
use std::path::Path;
use std::process::ExitCode;

/// Checks a configuration file and prints the errors.
pub fn config(file: &Path) -> Result<ExitCode> {
    let config = Config::from_file(file)?.with_environment(environment::bh_variables());
    let mut errors: Vec<Error> = loader::check(&config);
    errors.extend(config.core_errors());
    // A file with several stacks need not choose one. A wrong name in BH_STACK is an error.
    if environment::variable("BH_STACK").is_some() {
        errors.extend(config.choose_stack(None).err());
    }
    // Without errors in components, test whether each stack starts.
    if errors.is_empty() {
        let names: Vec<String> = config.stack_names().map(str::to_owned).collect();
        errors.extend(names.iter().filter_map(|name| match Stack::load(&config, Some(name)) {
            Ok(stack) => unmanaged(&stack).map(|engine| {
                let text = format!("stack '{name}': no data manager stands above the engine '{engine}'");
                Error::new(status::CONFIG, format!("{}: {text}", file.display()))
            }),
            Err(error) => Some(error),
        }));
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

/// An engine without a data manager above it.
fn unmanaged(stack: &Stack) -> Option<String> {
    // For each depth of the branch: is there a manager above?
    let mut managed = Vec::new();
    stack.components().into_iter().find_map(|component| {
        managed.truncate(component.depth);
        let above = managed.last().copied().unwrap_or(false);
        managed.push(above || component.kind == kind::DATA_MANAGER);
        (component.kind == kind::ENGINE && !above).then_some(component.label)
    })
}

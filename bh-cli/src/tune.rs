//! `bh tune`: measures the engines of a stack, and saves the resulting shares.

use bh_core::abi::status;
use bh_core::config::Config;
use bh_core::environment;
use bh_core::stack::Stack;
use bh_core::{Error, Result};
use std::path::Path;
use std::process::ExitCode;

/// The variable of the shares.
const WEIGHTS: &str = "BH_CLUSTER_WEIGHTS";

/// Measures, prints the result, and writes it to a file if one is given.
pub fn run(stack: Option<&str>, file: Option<&Path>) -> Result<ExitCode> {
    // Without configured shares, so that slow engines are measured, too.
    let mut variables = environment::bh_variables();
    variables.retain(|(name, _)| name != WEIGHTS);
    variables.push((WEIGHTS.to_owned(), "even".to_owned()));
    let config = Config::find()?.with_environment(variables);
    let mut stack = Stack::load(&config, stack)?;
    let found = stack.message("cluster tune")?;
    if found.is_empty() {
        let text = format!(
            "stack '{}' shares nothing out: bh tune is for stacks with a cluster, such as gpus and all",
            stack.name()
        );
        return Err(Error::new(status::ARGUMENT, text));
    }
    print!("{found}");
    if let Some(file) = file {
        let failed = |why| Error::new(status::FILE, format!("'{}' cannot be written: {why}", file.display()));
        std::fs::write(file, &found).map_err(failed)?;
        println!("use them with BH_CLUSTER_WEIGHTS={}, or as weights of [components.cluster]", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

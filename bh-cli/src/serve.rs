//! `bh serve`: a rank of a cluster that runs no program of its own.

use bh_core::abi::status;
use bh_core::config::Config;
use bh_core::stack::Stack;
use bh_core::{Error, Result};
use std::process::ExitCode;

/// Loads the stack, which serves and ends the process with rank 0's; where there is nothing to serve, that is an error.
pub fn run(stack: Option<&str>) -> Result<ExitCode> {
    let config = Config::find()?;
    let stack = Stack::load(&config, stack)?;
    let text = format!(
        "this process is rank 0 of stack '{}', or alone: rank 0 must be a program, as in 'mpirun -n 1 ./app : -n 3 bh serve' \
         with BH_STACK=cluster",
        stack.name()
    );
    Err(Error::new(status::ARGUMENT, text))
}

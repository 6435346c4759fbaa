//! `bh serve`: a rank of a cluster without its own program.

use bh_core::abi::status;
use bh_core::config::Config;
use bh_core::stack::Stack;
use bh_core::{Error, Result};
use std::process::ExitCode;

/// Loads the stack, which serves and ends the process with rank 0's. An error if the stack has nothing to serve.
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

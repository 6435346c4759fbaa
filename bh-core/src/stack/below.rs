//! The lower part of a stack on its own: the components that a process runs when it works for another process's
//! context.

use crate::component::Child;
use crate::config::Config;
use crate::error::Result;
use crate::loader::Loader;
use crate::memory::Memory;
use crate::services::{Handles, Services};

/// Loads the components below the one that names itself `component` in a stack of this configuration: the topmost of
/// them, side by side. Each ends, with the components below it, when its value is dropped.
pub fn load(config: &Config, stack: &str, component: &str) -> Result<Vec<Child>> {
    let memory = Memory::new(config.memory_settings()?);
    let services = Services::with_handles(memory, None, config.log_level()?, false, Handles::default());
    let chosen = config.choose_stack(Some(stack))?;
    let links = Loader::new(config, services).build_below(&chosen, component)?;
    Ok(links.into_iter().map(Child::owning).collect())
}

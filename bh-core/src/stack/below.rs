//! The components below one of a stack, on their own: what a process that works for another runs for its context.

use crate::component::Child;
use crate::config::Config;
use crate::error::Result;
use crate::link::Link;
use crate::loader::Loader;
use crate::memory::Memory;
use crate::services::{Handles, Services};
use std::sync::Arc;

/// The components below one of a stack.
pub struct Below {
    /// The topmost of them, side by side.
    pub children: Vec<Child>,
    #[expect(clippy::vec_box, reason = "the children point at the links, which must stay where they are")]
    links: Vec<Box<Link>>,
    _services: Arc<Services>,
}

impl Below {
    /// Loads what stands below the component that calls itself `component` in a stack of this configuration.
    pub fn load(config: &Config, stack: &str, component: &str) -> Result<Below> {
        let memory = Memory::new(config.memory_settings()?);
        let services = Services::with_handles(memory, None, config.log_level()?, false, Handles::default());
        let chosen = config.choose_stack(Some(stack))?;
        let links = Loader::new(config, Arc::clone(&services)).build_below(&chosen, component)?;
        // SAFETY: this value owns the links, and gives the children out by `&mut` only.
        let children = links.iter().map(|link| unsafe { Child::new(link.handle()) }).collect();
        Ok(Below { children, links, _services: services })
    }
}

impl Drop for Below {
    fn drop(&mut self) {
        self.links.iter_mut().for_each(|link| link.shutdown());
    }
}

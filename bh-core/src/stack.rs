//! A stack of components, ready to run: what the recorder talks to.

#[cfg(test)]
mod fakes;
#[cfg(test)]
mod tests;

use crate::abi::{Capabilities, ReleaseFn, log_level};
use crate::component::{Child, Ticket};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::link::Link;
use crate::loader::Loader;
use crate::memory::Memory;
use crate::services::Services;
use crate::stats::Snapshot;
use crate::trace::Trace;
use bh_bytecode::{Base, BatchRef, Opcode, View};
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Arc;

/// A component of a stack, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentInfo {
    /// Name of the instance: the config section, with a number if there are several of it.
    pub label: String,
    /// Name that the component gives itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A value of [`crate::abi::kind`].
    pub kind: u32,
    /// How deep it stands; the top is 0.
    pub depth: usize,
}

/// The components of one stack. Calls are serialised by `&mut`; [`Stack::services`] may be shared among threads.
pub struct Stack {
    name: String,
    top: Child,
    links: Box<Link>,
    services: Arc<Services>,
    /// Where the statistics go at the end.
    statistics: Option<PathBuf>,
    running: bool,
}

impl Stack {
    /// Loads the components of a stack, and only those: `name`, or else `BH_STACK`, or else the config's default.
    /// `BH_TRACE` names a file for a trace, `BH_STATS` one for the statistics (as JSON if it ends in `.json`).
    pub fn load(config: &Config, name: Option<&str>) -> Result<Stack> {
        let memory = Memory::new(config.memory_settings()?);
        let trace = config.variable("BH_TRACE").map(Trace::new);
        let statistics = config.variable("BH_STATS").map(PathBuf::from);
        let services = Services::new(memory, trace, config.log_level()?, statistics.is_some());
        let chosen = config.choose_stack(name)?;
        let links = Loader::new(config, Arc::clone(&services)).build(&chosen)?;
        // SAFETY: the stack owns the link, and calls take `&mut self`.
        let top = unsafe { Child::new(links.handle()) };
        Ok(Stack { name: chosen.name, top, links, services, statistics, running: true })
    }

    /// The stack's name in the config.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Memory, counters, trace and base ids of the stack.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// The components from top to bottom.
    pub fn components(&self) -> Vec<ComponentInfo> {
        let mut components = Vec::new();
        visit(&self.links, 0, &mut |link, depth| {
            let component = &link.component;
            components.push(ComponentInfo {
                label: link.label().to_owned(),
                name: component.name.clone(),
                version: component.version.clone(),
                kind: component.kind(),
                depth,
            });
        });
        components
    }

    /// What the top component can do.
    pub fn capabilities(&mut self) -> Capabilities {
        self.top.capabilities()
    }

    /// Runs a batch; see [`crate::Component::execute`]. A batch without a partition has no blocks to list.
    pub fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        self.top.execute(batch, blocks)
    }

    /// Waits for the work behind a ticket; see [`crate::Component::wait`].
    pub fn wait(&mut self, ticket: Ticket) -> Result<()> {
        self.top.wait(ticket)
    }

    /// Makes a base, or the part under `view`, accessible in host memory; see [`crate::Component::map`].
    pub fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        self.top.map(base, view, access)
    }

    /// Ends a `map`.
    pub fn unmap(&mut self, base: &Base) -> Result<()> {
        self.top.unmap(base)
    }

    /// Takes the caller's memory as the base's data.
    ///
    /// # Safety
    /// As [`crate::Component::adopt`].
    pub unsafe fn adopt(
        &mut self,
        base: &Base,
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe { self.top.adopt(base, data, release, argument) }
    }

    /// Forbids or allows moving the base's host memory; see [`crate::Component::pin`].
    pub fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        self.top.pin(base, pinned)
    }

    /// Announces an extension method; see [`crate::Component::extmethod`].
    pub fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        self.top.extmethod(name, opcode)
    }

    /// Asks a question or gives a command; see [`crate::Component::message`].
    pub fn message(&mut self, text: &str) -> Result<String> {
        self.top.message(text)
    }

    /// All counters, with the memory's and the time that each component spent itself.
    pub fn stats(&self) -> Snapshot {
        let stats = self.services.stats();
        let usage = self.services.memory().usage();
        stats.set("memory.in_use_bytes", usage.in_use as u64);
        stats.set("memory.peak_bytes", usage.peak as u64);
        stats.set("memory.cached_bytes", usage.cached as u64);
        stats.set("memory.allocations", usage.allocations);
        stats.set("memory.cache_hits", usage.cache_hits);
        stats.set("memory.refused", usage.refused);
        visit(&self.links, 0, &mut |link, _| {
            let below: u64 = link.children().iter().map(|child| child.nanoseconds()).sum();
            stats.set(&format!("{}.own_ns", link.label()), link.nanoseconds().saturating_sub(below));
        });
        stats.snapshot()
    }

    /// Ends all components, from the top down, and writes the trace and the statistics that the environment asked for.
    /// The first failure to write is returned; a second call does nothing.
    pub fn shutdown(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.running) {
            return Ok(());
        }
        self.links.shutdown();
        let mut result = Ok(());
        if let Some(trace) = self.services.trace() {
            result = result.and(trace.write().map_err(|error| file_error("trace", trace.path(), &error)));
        }
        if let Some(path) = &self.statistics {
            let snapshot = self.stats();
            let written = match path.extension().is_some_and(|extension| extension == "json") {
                true => std::fs::write(path, snapshot.to_json()),
                false => std::fs::write(path, snapshot.to_table()),
            };
            result = result.and(written.map_err(|error| file_error("statistics", path, &error)));
        }
        result
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown() {
            self.services.log(log_level::ERROR, "stack", &error.to_string());
        }
    }
}

fn file_error(what: &str, path: &std::path::Path, error: &std::io::Error) -> Error {
    let text = format!("the {what} cannot be written to '{}': {error}", path.display());
    Error::new(crate::abi::status::FILE, text)
}

fn visit(link: &Link, depth: usize, each: &mut dyn FnMut(&Link, usize)) {
    each(link, depth);
    for child in link.children() {
        visit(child, depth + 1, each);
    }
}

//! The interface between the recorder and the stack below it.

use crate::data::{Data, SharedData};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::{Adoption, Capabilities, Export, ExportRequest, HostMemory, Residency, access, fork};
use bh_core::component::{SharedCalls, Ticket};
use bh_core::error::Result;
use bh_core::services::Services;
use bh_core::stack::{SharedTop, Stack};
use bh_core::strided::Side;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A stack of components, seen from the top. Calls are serialised by the recorder, except for those through
/// [`Backend::shared_data`].
pub trait Backend: Data + Send {
    /// The counter that new base identities are taken from, shared with the components.
    fn base_ids(&self) -> Arc<AtomicU64>;

    /// The stack's capabilities.
    fn capabilities(&mut self) -> Capabilities;

    /// Runs a batch; an empty list of blocks stands for a batch without partition.
    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket>;

    /// Waits for a ticket.
    fn wait(&mut self, ticket: Ticket) -> Result<()>;

    /// Is the work behind a ticket done? `None`: the stack cannot tell without waiting.
    fn poll(&mut self, _ticket: Ticket) -> Option<bool> {
        None
    }

    /// The data for callers that do not wait for a running batch, if the stack allows such calls.
    fn shared_data(&mut self) -> Option<Arc<dyn SharedData>> {
        None
    }

    /// For a stack whose calls come from one thread: the data for calls on that thread from within `execute`, if the stack
    /// allows such calls. `between` is called there when it is time for them.
    fn data_between(&mut self, _between: Box<dyn Fn() + Send + Sync>) -> Option<Arc<dyn SharedData>> {
        None
    }

    /// Calls that compute operations on scalars immediately, from any thread, if the stack has them.
    fn evaluator(&mut self) -> Option<Arc<dyn SharedCalls>> {
        None
    }

    /// Calls that run operations on little data immediately, from any thread, and the services that count their memory, if
    /// the stack has them.
    fn immediate_calls(&mut self) -> Option<(Arc<dyn SharedCalls>, Arc<Services>)> {
        None
    }

    /// Announces an extension method; returns whether some component runs it.
    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool>;

    /// A text question or command.
    fn message(&mut self, text: &str) -> Result<String>;

    /// Follows a fork of the process; `moment` is a value of [`bh_core::abi::fork`].
    fn fork(&mut self, _moment: u32) -> Result<()> {
        Ok(())
    }

    /// The loaded stack, if it is one.
    fn stack(&mut self) -> Option<&mut Stack> {
        None
    }
}

/// Are values in host memory, or nowhere, so that no engine has to copy them there? If they are to change, no engine may have them,
/// too, as it would copy them again.
fn costs_nothing_here(found: Residency, mode: u32) -> bool {
    let is_here = found.host != 0 && (found.spaces == 0 || mode & access::WRITE == 0);
    is_here || found.host == 0 && found.spaces == 0 && found.alias == 0
}

impl Data for Stack {
    fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        Stack::map(self, base, view, access)
    }

    fn unmap(&mut self, base: &Base) -> Result<()> {
        Stack::unmap(self, base)
    }

    fn is_at_host(&mut self, base: &Base, access: u32) -> Result<bool> {
        Stack::residency(self, base).map(|found| costs_nothing_here(found, access))
    }

    unsafe fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()> {
        Stack::adopt(self, base, adoption)
    }

    fn export(&mut self, base: &Base, request: &ExportRequest) -> Result<Export> {
        Stack::export_data(self, base, request)
    }

    fn end_export(&mut self, base: &Base, token: u64) -> Result<()> {
        Stack::end_export(self, base, token)
    }

    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        Stack::pin(self, base, pinned)
    }

    unsafe fn read(&mut self, base: &Base, view: &View, to: Side<'_>) -> Result<()> {
        // SAFETY: the memory is writable for the view's elements and no part of the base's own, as [`Data::read`] asks,
        // and it and the strides live through the call.
        Stack::read(self, base, view, &unsafe { HostMemory::new(to.data, to.stride) })
    }

    unsafe fn write(&mut self, base: &Base, view: &View, from: Side<'_>) -> Result<()> {
        // SAFETY: the memory is readable for the view's elements and no part of the base's own, as [`Data::write`]
        // asks, and it and the strides live through the call.
        Stack::write(self, base, view, &unsafe { HostMemory::new(from.data, from.stride) })
    }
}

/// The data of a stack whose components allow calls while a batch runs.
struct Concurrent(SharedTop);

impl SharedData for Concurrent {
    fn with(&self, work: &mut dyn FnMut(&mut dyn Data)) {
        work(&mut Calls(&self.0));
    }
}

/// Calls about data while a batch runs.
struct Calls<'a>(&'a SharedTop);

impl Data for Calls<'_> {
    fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        self.0.map(base, view, access)
    }

    fn unmap(&mut self, base: &Base) -> Result<()> {
        self.0.unmap(base)
    }

    fn is_at_host(&mut self, base: &Base, access: u32) -> Result<bool> {
        self.0.residency(base).map(|found| costs_nothing_here(found, access))
    }

    unsafe fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()> {
        self.0.adopt(base, adoption)
    }

    fn export(&mut self, base: &Base, request: &ExportRequest) -> Result<Export> {
        self.0.export_data(base, request)
    }

    fn end_export(&mut self, base: &Base, token: u64) -> Result<()> {
        self.0.end_export(base, token)
    }

    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        self.0.pin(base, pinned)
    }

    unsafe fn read(&mut self, base: &Base, view: &View, to: Side<'_>) -> Result<()> {
        // SAFETY: the memory is writable for the view's elements and no part of the base's own, as [`Data::read`] asks,
        // and it and the strides live through the call.
        self.0.read(base, view, &unsafe { HostMemory::new(to.data, to.stride) })
    }

    unsafe fn write(&mut self, base: &Base, view: &View, from: Side<'_>) -> Result<()> {
        // SAFETY: the memory is readable for the view's elements and no part of the base's own, as [`Data::write`]
        // asks, and it and the strides live through the call.
        self.0.write(base, view, &unsafe { HostMemory::new(from.data, from.stride) })
    }
}

impl Backend for Stack {
    fn base_ids(&self) -> Arc<AtomicU64> {
        self.services().base_ids()
    }

    fn capabilities(&mut self) -> Capabilities {
        Stack::capabilities(self)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        Stack::execute(self, batch, blocks)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        Stack::wait(self, ticket)
    }

    fn poll(&mut self, ticket: Ticket) -> Option<bool> {
        // Waiting reports all other errors.
        Stack::poll(self, ticket).ok()
    }

    fn shared_data(&mut self) -> Option<Arc<dyn SharedData>> {
        Some(Arc::new(Concurrent(self.shared_calls()?)))
    }

    fn evaluator(&mut self) -> Option<Arc<dyn SharedCalls>> {
        Some(Arc::new(self.evaluating_calls()?))
    }

    fn immediate_calls(&mut self) -> Option<(Arc<dyn SharedCalls>, Arc<Services>)> {
        let calls = Stack::immediate_calls(self)?;
        Some((Arc::new(calls), self.services().clone()))
    }

    fn data_between(&mut self, between: Box<dyn Fn() + Send + Sync>) -> Option<Arc<dyn SharedData>> {
        let calls = self.calls_between()?;
        self.services().set_host_progress(between);
        Some(Arc::new(Concurrent(calls)))
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        Stack::extmethod(self, name, opcode)
    }

    fn message(&mut self, text: &str) -> Result<String> {
        Stack::message(self, text)
    }

    fn fork(&mut self, moment: u32) -> Result<()> {
        Stack::fork(self, moment)?;
        if moment == fork::CHILD {
            // For components that were built before there was a slot.
            Stack::message(self, "forked")?;
        }
        Ok(())
    }

    fn stack(&mut self) -> Option<&mut Stack> {
        Some(self)
    }
}

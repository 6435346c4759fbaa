//! What the recorder asks of the stack below it.

use crate::abi::{Capabilities, ReleaseFn};
use crate::component::Ticket;
use crate::error::Result;
use bh_bytecode::{Base, BatchRef, Opcode, View};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A stack of components, seen from the top. Calls are serialised by the recorder.
pub trait Backend: Send {
    /// The counter that new base identities are taken from, shared with the components.
    fn base_ids(&self) -> Arc<AtomicU64>;

    /// What the stack can do.
    fn capabilities(&mut self) -> Capabilities;

    /// Runs a batch; an empty list of blocks stands for a batch without partition.
    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket>;

    /// Waits for a ticket.
    fn wait(&mut self, ticket: Ticket) -> Result<()>;

    /// Makes a base, or the part under `view`, accessible in host memory; returns the address of its element 0.
    fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8>;

    /// Ends a `map`.
    fn unmap(&mut self, base: &Base) -> Result<()>;

    /// Takes the caller's memory as the base's data.
    ///
    /// # Safety
    /// `data` must hold the whole base and stay valid until `release` is called.
    unsafe fn adopt(
        &mut self,
        base: &Base,
        data: *mut u8,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
    ) -> Result<()>;

    /// Forbids or allows moving the base's host memory.
    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()>;

    /// Announces an extension method; returns whether some component runs it.
    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool>;

    /// A text question or command.
    fn message(&mut self, text: &str) -> Result<String>;
}

//! The safe side of the ABI: what a component implements ([`Component`]) and what it is given ([`Host`], [`Child`],
//! [`Registry`]).

mod child;
mod host;
mod registry;
mod setting;

pub use child::Child;
pub use host::{Counter, Host};
pub use registry::Registry;
pub use setting::Setting;

use crate::abi::{Capabilities, ReleaseFn, status};
use crate::error::{Error, Result};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use std::ffi::c_void;

/// Names the work of an `execute` call; [`Ticket::DONE`] needs no waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The work is done.
    pub const DONE: Ticket = Ticket(0);
}

/// A component. Every method but `create` and `child` has a default that forwards to the child. Methods are never called
/// concurrently or re-entered on one instance. Export the type with [`crate::export_component!`].
pub trait Component: Sized + Send + 'static {
    /// Name, as in config sections: `filter`.
    const NAME: &'static str;
    /// A value of [`crate::abi::kind`].
    const KIND: u32;
    /// The config keys it knows.
    const KEYS: &'static [&'static str];

    /// Makes an instance above these children.
    fn create(host: Host, children: Vec<Child>) -> Result<Self>;

    /// The child that default methods forward to; `None` at the bottom of the stack.
    fn child(&mut self) -> Option<&mut Child>;

    /// What it can do; by default what the child can do.
    fn capabilities(&mut self) -> Capabilities {
        self.child().map_or_else(Capabilities::default, |child| child.capabilities())
    }

    /// Receives the registry of the data manager above.
    fn bind(&mut self, registry: Registry) -> Result<()> {
        self.child().map_or(Ok(()), |child| child.bind(registry))
    }

    /// Can it run this block?
    fn supports(&mut self, _batch: &BatchRef<'_>, _block: u32) -> bool {
        true
    }

    /// Runs these blocks in this order, or the batch in stored order if it has no partition. On failure: stop, name the
    /// block ([`Error::in_block`]); earlier blocks are done.
    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        let name = Self::NAME;
        match self.child() {
            Some(child) => child.execute(batch, blocks),
            None => Err(Error::new(status::UNSUPPORTED, format!("{name} cannot execute and has no child"))),
        }
    }

    /// Waits for a ticket.
    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        self.child().map_or(Ok(()), |child| child.wait(ticket))
    }

    /// Makes a base (or the part under `view`) accessible in host memory; returns the address of element 0 of the base.
    fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        let name = Self::NAME;
        match self.child() {
            Some(child) => child.map(base, view, access),
            None => Err(Error::new(status::UNSUPPORTED, format!("{name} holds no arrays and has no child"))),
        }
    }

    /// Ends a `map`.
    fn unmap(&mut self, base: &Base) -> Result<()> {
        self.child().map_or(Ok(()), |child| child.unmap(base))
    }

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
    ) -> Result<()> {
        let name = Self::NAME;
        match self.child() {
            // SAFETY: passed on as promised by the caller.
            Some(child) => unsafe { child.adopt(base, data, release, argument) },
            None => Err(Error::new(status::UNSUPPORTED, format!("{name} holds no arrays and has no child"))),
        }
    }

    /// Forbids or allows moving the base's host memory.
    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        self.child().map_or(Ok(()), |child| child.pin(base, pinned))
    }

    /// Learns that `opcode` stands for the method `name`; returns whether it or a component below runs it.
    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        self.child().map_or(Ok(false), |child| child.extmethod(name, opcode))
    }

    /// Answers a text question or command; an empty answer means that nobody knew it.
    fn message(&mut self, text: &str) -> Result<String> {
        self.child().map_or(Ok(String::new()), |child| child.message(text))
    }
}

/// Notes that an engine begins with this block, so that an error or a panic is reported at its place and only this block
/// is lost.
pub fn enter_block(block: u32) {
    crate::guard::BLOCK.set(Some(block));
}

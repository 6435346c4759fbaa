//! The rules of the array registry: which copies of a base exist, which are valid, and what each access does to them.
//! Nothing here calls an engine; what must be called is returned ([`Step::Transfer`]) or put off ([`Buffers::later`]).

mod lifetime;
mod state;
mod versions;

use crate::buffer::{Buffers, NONE};
use bh_bytecode::Base;
use bh_core::abi::{Buffer, HOST_SPACE, access};
use bh_core::component::{Counter, Host};
use bh_core::error::Result;
use state::{Alias, Bases, attachment_token_of, buffer_of, state_of, token_of, unknown};
pub use state::{Leak, Step};
use std::ptr;

/// All bases and their data.
pub struct Arrays {
    bases: Bases,
    pub buffers: Buffers,
    spaces: u32,
    /// The last alias that went, for the next one: a loop that makes one in each turn allocates nothing.
    spare_alias: Option<Box<Alias>>,
    to_host: Counter,
    alias_copies: Counter,
    renames: Counter,
}

impl Arrays {
    /// Without bases.
    pub fn new(host: Host) -> Arrays {
        Arrays {
            bases: Bases::default(),
            buffers: Buffers::new(host),
            spaces: HOST_SPACE,
            spare_alias: None,
            to_host: host.counter("node.to_host"),
            alias_copies: host.counter("node.alias_copies"),
            renames: host.counter("node.renames"),
        }
    }

    /// A number for an engine's memory space.
    pub fn new_space(&mut self) -> u32 {
        self.spaces += 1;
        self.spaces
    }

    /// One step of lending a base's buffer.
    #[inline]
    pub fn acquire(&mut self, base: &Base, space: u32, mode: u32) -> Result<Step> {
        let state = state_of(&mut self.bases, base)?;
        let discard = mode & access::DISCARD != 0;
        if let Some(error) = &state.poison {
            if !discard {
                return Err((**error).clone());
            }
            state.poison = None;
        }
        if space != HOST_SPACE {
            return self.acquire_elsewhere(base.id, space, mode).map(Step::Ready);
        }
        // The hot path: valid on the host, and neither copies nor aliases to care for.
        if state.host_valid && (mode == access::READ || state.attachments.is_empty()) {
            let index = state.buffer;
            let buffer = self.buffers.get(index);
            if mode == access::READ || buffer.aliases.is_empty() {
                buffer.refs += 1;
                state.version = state.version.wrapping_add(u32::from(mode != access::READ));
                return Ok(Step::Ready(Buffer {
                    data: buffer.data.cast(),
                    bytes: buffer.bytes,
                    token: token_of(index),
                }));
            }
        }
        self.acquire_slowly(base.id, mode)
    }

    /// Brings the host buffer up to date and lends it.
    fn acquire_slowly(&mut self, id: u64, mode: u32) -> Result<Step> {
        let discard = mode & access::DISCARD != 0;
        let Some(state) = self.bases.get(&id) else { return Err(unknown(id)) };
        if state.transferring {
            return Ok(Step::Wait);
        }
        if discard {
            self.drop_alias(id);
        } else if state.alias.is_some() {
            self.materialise(id)?;
        } else if !state.host_valid && !state.attachments.is_empty() {
            return self.begin_transfer(id).map(Step::Transfer);
        }
        if mode & (access::WRITE | access::DISCARD) != 0 {
            self.before_change(id, discard)?;
            self.drop_attachments(id, None);
        }
        let Some(state) = self.bases.get_mut(&id) else { return Err(unknown(id)) };
        if state.buffer == NONE {
            // A base that was never written reads as zeros, so that every engine gives the same results.
            state.buffer = self.buffers.allocate(state.bytes(), !discard)?;
        }
        state.host_valid = true;
        let index = state.buffer;
        let buffer = self.buffers.get(index);
        buffer.refs += 1;
        Ok(Step::Ready(Buffer { data: buffer.data.cast(), bytes: buffer.bytes, token: token_of(index) }))
    }

    /// Lends the copy in an engine's space, if there is a valid one.
    fn acquire_elsewhere(&mut self, id: u64, space: u32, mode: u32) -> Result<Buffer> {
        let Some(state) = self.bases.get(&id) else { return Err(unknown(id)) };
        let Some(&(_, index)) = state.attachments.iter().find(|(at, _)| *at == space) else {
            return Ok(Buffer { data: ptr::null_mut(), bytes: 0, token: 0 });
        };
        let bytes = state.bytes();
        if mode & (access::WRITE | access::DISCARD) != 0 {
            self.drop_attachments(id, Some(space));
            self.make_host_stale(id)?;
        }
        let (handle, _) = self.buffers.ref_attachment(index);
        Ok(Buffer { data: handle, bytes, token: attachment_token_of(index) })
    }

    /// Ends a loan.
    #[inline]
    pub fn release(&mut self, buffer: &Buffer) {
        match buffer_of(buffer.token) {
            Some(index) => self.buffers.unref(index),
            None if buffer.token != 0 => self.buffers.unref_attachment((buffer.token >> 2) as u32),
            None => {}
        }
    }

    /// Gets ready for a change of the host buffer: aliases made from it are copied out, or keep it while the base gets
    /// another one if all of it will be overwritten.
    fn before_change(&mut self, id: u64, discard: bool) -> Result<()> {
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        state.version = state.version.wrapping_add(1);
        let index = state.buffer;
        if index == NONE || self.buffers.get(index).aliases.is_empty() {
            return Ok(());
        }
        if discard && !state.is_fixed() && !self.buffers.is_lent(index) {
            (state.buffer, state.host_valid) = (NONE, false);
            self.buffers.unref(index);
            return Ok(());
        }
        self.copy_out_aliases(index)
    }
}

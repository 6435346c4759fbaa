//! The rules of the array registry: which copies of a base exist, which are valid, and how each access changes that.
//! Nothing here calls an engine: calls are returned ([`Step::Transfer`]) or deferred ([`Buffers::later`]).

mod exports;
mod lifetime;
mod spaces;
mod state;
mod versions;

use crate::buffer::{Buffers, NONE};
use crate::loans::{Lent, Loans};
use bh_bytecode::Base;
use bh_core::abi::{HOST_SPACE, Loan, access, status};
use bh_core::component::{Counter, Host};
use bh_core::error::Error;
use bh_core::error::Result;
pub use spaces::Detached;
use state::{Alias, Bases, Source, State, state_of, unknown};
pub use state::{Leak, SpaceCopy, Step, Transfer};
pub use versions::Aliased;

/// All bases and their data.
pub struct Arrays {
    bases: Bases,
    pub buffers: Buffers,
    loans: Loans,
    spaces: u32,
    /// The last dropped alias, for reuse: a loop that creates one per iteration allocates nothing.
    spare_alias: Option<Box<Alias>>,
    to_host: Counter,
    alias_copies: Counter,
    alias_clones: Counter,
    transferred_bytes: Counter,
    detached: Counter,
    renames: Counter,
    wrong_releases: Counter,
}

impl Arrays {
    /// Without bases.
    pub fn new(host: Host) -> Arrays {
        Arrays {
            bases: Bases::default(),
            buffers: Buffers::new(host),
            loans: Loans::default(),
            spaces: HOST_SPACE,
            spare_alias: None,
            to_host: host.counter("node.to_host"),
            alias_copies: host.counter("node.alias_copies"),
            alias_clones: host.counter("node.alias_clones"),
            transferred_bytes: host.counter("node.to_host_bytes"),
            detached: host.counter("node.detached"),
            renames: host.counter("node.renames"),
            wrong_releases: host.counter("node.wrong_releases"),
        }
    }

    /// A copy for a rehearsal that may allocate `left` bytes: all rules apply, and no data is touched.
    pub fn rehearsal(&self, left: u64) -> Arrays {
        let settled = |(&id, state): (&u64, &State)| (id, State { transferring: false, ..state.clone() });
        Arrays {
            bases: self.bases.iter().map(settled).collect(),
            buffers: self.buffers.rehearsal(left),
            loans: self.loans.clone(),
            spaces: self.spaces,
            spare_alias: None,
            to_host: Counter::unseen(),
            alias_copies: Counter::unseen(),
            alias_clones: Counter::unseen(),
            transferred_bytes: Counter::unseen(),
            detached: Counter::unseen(),
            renames: Counter::unseen(),
            wrong_releases: Counter::unseen(),
        }
    }

    /// A number for a new memory space of an engine.
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
            return if state.transferring { Ok(Step::Wait) } else { self.acquire_elsewhere(base.id, space, mode) };
        }
        // The hot path: valid on the host, without copies or aliases to maintain.
        if state.host_valid && (mode == access::READ || state.attachments.is_empty() && mode & access::STABLE == 0) {
            let index = state.buffer;
            let buffer = self.buffers.get(index);
            if mode == access::READ || buffer.aliases.is_empty() && buffer.guards == 0 {
                buffer.refs += 1;
                state.version = state.version.wrapping_add(u32::from(mode != access::READ));
                let (data, bytes) = (buffer.data.cast(), buffer.bytes);
                return Ok(Step::Ready(Loan { data, bytes, token: self.loans.begin(Lent::Buffer(index)) }));
            }
        }
        self.acquire_slowly(base.id, mode)
    }

    /// Updates the host buffer and lends it.
    fn acquire_slowly(&mut self, id: u64, mode: u32) -> Result<Step> {
        let discard = mode & access::DISCARD != 0;
        let Some(state) = self.bases.get(&id) else { return Err(unknown(id)) };
        if state.transferring {
            return Ok(Step::Wait);
        }
        if discard {
            self.drop_alias(id);
        } else if let Some(alias) = &state.alias {
            match alias.source {
                Source::Buffer(_) => self.materialise(id)?,
                Source::Attachment(..) => return self.begin_alias_transfer(id).map(Step::Transfer),
            }
        } else if !state.host_valid && !state.attachments.is_empty() {
            return self.begin_transfer(id).map(Step::Transfer);
        }
        if mode & (access::WRITE | access::DISCARD) != 0 {
            self.before_change(id, discard)?;
            self.drop_attachments(id, None);
        }
        let Some(state) = self.bases.get_mut(&id) else { return Err(unknown(id)) };
        if state.buffer == NONE {
            // A base without a write reads as zeros, so that every engine gives the same results.
            state.buffer = self.buffers.allocate(state.bytes(), !discard)?;
        }
        state.host_valid = true;
        let (index, fixed) = (state.buffer, state.is_fixed());
        if mode & access::STABLE != 0 {
            return self.guarded(index, fixed).map(Step::Ready);
        }
        let buffer = self.buffers.get(index);
        buffer.refs += 1;
        let (data, bytes) = (buffer.data.cast(), buffer.bytes);
        Ok(Step::Ready(Loan { data, bytes, token: self.loans.begin(Lent::Buffer(index)) }))
    }

    /// Ends a loan.
    #[inline]
    pub fn release(&mut self, token: u64) {
        match self.loans.get(token) {
            Some(Lent::Buffer(index)) => self.buffers.unref(index),
            Some(Lent::Guarded(index)) => {
                self.buffers.get(index).guards -= 1;
                self.buffers.unref(index);
            }
            Some(Lent::Attachment(index)) => self.buffers.unref_attachment(index),
            _ if token == 0 => return,
            Some(Lent::Fresh(_) | Lent::Shared(..)) | None => return self.wrong_releases.add(1),
        }
        self.loans.end(token);
    }

    /// Prepares a change of the host buffer. Aliases of it get copies, or keep it if all of it will be overwritten and
    /// the base can take a new one. Guarded buffers are always kept for their readers.
    fn before_change(&mut self, id: u64, discard: bool) -> Result<()> {
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        state.version = state.version.wrapping_add(1);
        let (index, fixed) = (state.buffer, state.is_fixed());
        if index == NONE {
            return Ok(());
        }
        if self.buffers.get(index).guards > 0 {
            return self.leave_guarded(id, discard);
        }
        if self.buffers.get(index).aliases.is_empty() {
            return Ok(());
        }
        if discard && !fixed && !self.buffers.is_lent(index) {
            if let Some(state) = self.bases.get_mut(&id) {
                (state.buffer, state.host_valid) = (NONE, false);
            }
            self.buffers.unref(index);
            return Ok(());
        }
        self.copy_out_aliases(index)
    }

    /// Gives a base another buffer, because others rely on the content of the present one.
    fn leave_guarded(&mut self, id: u64, discard: bool) -> Result<()> {
        let Some(state) = self.bases.get(&id) else { return Ok(()) };
        let (index, bytes) = (state.buffer, state.bytes());
        if state.maps > 0 {
            let text = format!("base {id} is mapped, and its content is lent to others that rely on it");
            return Err(Error::new(status::ARGUMENT, text));
        }
        let next = if discard { NONE } else { self.copy_of(index, bytes)? };
        if let Some(state) = self.bases.get_mut(&id) {
            (state.buffer, state.host_valid) = (next, !discard);
        }
        self.buffers.unref(index);
        Ok(())
    }

    /// Allocates a copy of a buffer.
    fn copy_of(&mut self, index: u32, bytes: usize) -> Result<u32> {
        let copy = self.buffers.allocate(bytes, false)?;
        self.buffers.copy(index, copy);
        Ok(copy)
    }
}

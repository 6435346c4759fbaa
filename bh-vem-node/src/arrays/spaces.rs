//! Copies of bases in engines' spaces: attachments, loans, transfers to host memory, eviction.

use super::Arrays;
use super::state::{Source, Step, Transfer, state_of, unknown};
use crate::buffer::NONE;
use crate::loans::Lent;
use bh_bytecode::Base;
use bh_core::abi::{AttachmentOps, HOST_SPACE, Loan, Residency, access, status};
use bh_core::error::{Error, Result};
use std::ffi::c_void;
use std::ptr;

/// The next step in taking a base out of a space.
pub enum Detached {
    /// It has left the space.
    Done,
    /// The only copy of this base must move to host memory first.
    NeedsHost(Base),
}

impl Arrays {
    /// Lends the copy in an engine's space, if there is a valid one.
    pub(super) fn acquire_elsewhere(&mut self, id: u64, space: u32, mode: u32) -> Result<Step> {
        let none = Step::Ready(Loan { data: ptr::null_mut(), bytes: 0, token: 0 });
        let Some(state) = self.bases.get(&id) else { return Err(unknown(id)) };
        if let Some(alias) = &state.alias {
            match alias.source {
                Source::Attachment(at, _) if at == space && mode & access::DISCARD == 0 => return self.begin_clone(id),
                _ => return Ok(none),
            }
        }
        let Some(&(_, index)) = state.attachments.iter().find(|(at, _)| *at == space) else { return Ok(none) };
        let bytes = state.bytes();
        if mode & (access::WRITE | access::DISCARD) != 0 {
            if let Some(&alias) = self.buffers.attachment_aliases(index).first() {
                if mode & access::DISCARD != 0 && !self.buffers.is_attachment_lent(index) {
                    // The aliases keep the attachment; the engine creates another one.
                    self.drop_attachments(id, None);
                    self.make_host_stale(id)?;
                    return Ok(none);
                }
                return self.begin_clone(alias);
            }
            self.drop_attachments(id, Some(space));
            self.make_host_stale(id)?;
        }
        let (handle, _) = self.buffers.ref_attachment(index);
        Ok(Step::Ready(Loan { data: handle, bytes, token: self.loans.begin(Lent::Attachment(index)) }))
    }

    /// Drops the copies in engines' spaces, except for one space.
    pub(super) fn drop_attachments(&mut self, id: u64, keep: Option<u32>) {
        let Some(state) = self.bases.get_mut(&id) else { return };
        let buffers = &mut self.buffers;
        state.attachments.retain(|&(space, index)| {
            let kept = keep == Some(space);
            if !kept {
                buffers.unref_attachment(index);
            }
            kept
        });
    }

    /// Marks the host buffer as outdated, and releases it unless it must stay in place.
    pub(super) fn make_host_stale(&mut self, id: u64) -> Result<()> {
        self.drop_alias(id);
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        state.version = state.version.wrapping_add(1);
        let (index, fixed, was_valid) = (state.buffer, state.is_fixed(), state.host_valid);
        if index == NONE {
            return Ok(());
        }
        if fixed {
            // A later transfer writes to this buffer.
            if was_valid {
                self.copy_out_aliases(index)?;
            }
        } else {
            self.buffers.unref(index);
        }
        if let Some(state) = self.bases.get_mut(&id) {
            state.host_valid = false;
            if !fixed {
                state.buffer = NONE;
            }
        }
        Ok(())
    }

    /// Prepares a transfer from an engine's space to the host.
    pub(super) fn begin_transfer(&mut self, id: u64) -> Result<Transfer> {
        let Some(state) = self.bases.get_mut(&id) else { return Err(unknown(id)) };
        let Some(&(_, attachment)) = state.attachments.first() else { return Err(unknown(id)) };
        if state.buffer == NONE {
            state.buffer = self.buffers.allocate(state.bytes(), false)?;
        }
        state.transferring = true;
        let (version, index) = (state.version, state.buffer);
        let (handle, operations) = self.buffers.ref_attachment(attachment);
        let buffer = self.buffers.get(index);
        buffer.refs += 1;
        let (data, bytes) = (buffer.data, buffer.bytes);
        Ok(Transfer { id, version, buffer: index, attachment, handle, operations, data, bytes, part: None })
    }

    /// Ends a transfer. The host buffer becomes valid unless the transfer failed or the base has changed. With `lost`,
    /// a current base is poisoned after a failure.
    pub fn end_transfer(&mut self, transfer: &Transfer, success: bool, lost: Option<&Error>) {
        let (mut was_alias, mut gone) = (false, None);
        if let Some(state) = self.bases.get_mut(&transfer.id) {
            state.transferring = false;
            let current = state.buffer == transfer.buffer && state.version == transfer.version;
            if success && current {
                state.host_valid = true;
                was_alias = transfer.part.is_some();
            } else if current {
                gone = lost.map(|error| (Base::new(transfer.id, state.dtype, state.len), error.clone()));
            }
        }
        if let Some((base, error)) = gone {
            self.poison(&base, error);
        }
        if was_alias {
            self.drop_alias(transfer.id);
            self.alias_copies.add(1);
        }
        self.to_host.add(1);
        self.transferred_bytes.add(transfer.bytes as u64);
        self.buffers.unref(transfer.buffer);
        self.buffers.unref_attachment(transfer.attachment);
    }

    /// Registers a copy in an engine's space.
    pub fn attach(
        &mut self,
        base: &Base,
        space: u32,
        handle: *mut c_void,
        exclusive: bool,
        operations: AttachmentOps,
    ) -> Result<()> {
        if space == HOST_SPACE || space > self.spaces {
            return Err(Error::new(status::ARGUMENT, format!("attach: there is no memory space {space}")));
        }
        if handle.is_null() {
            return Err(Error::new(status::ARGUMENT, "attach: the handle is null"));
        }
        let state = state_of(&mut self.bases, base)?;
        if exclusive {
            state.poison = None;
            // Before the registry takes the handle, because this may fail.
            self.make_host_stale(base.id)?;
            self.drop_attachments(base.id, Some(space));
        }
        let state = state_of(&mut self.bases, base)?;
        let held = state.attachments.iter_mut().find(|(at, _)| *at == space);
        match held {
            Some((_, index)) if self.buffers.handle(*index) == handle => {}
            Some((_, index)) => {
                let old = std::mem::replace(index, self.buffers.attach(handle, operations));
                self.buffers.unref_attachment(old);
            }
            None => state.attachments.push((space, self.buffers.attach(handle, operations))),
        }
        Ok(())
    }

    /// One step of taking a base out of a space. Its only copy must be elsewhere first.
    pub fn detach(&mut self, base: &Base, space: u32) -> Result<Detached> {
        let Some(state) = self.bases.get_mut(&base.id) else { return Ok(Detached::Done) };
        if let Some(alias) = &state.alias
            && matches!(alias.source, Source::Attachment(at, _) if at == space)
        {
            return Ok(Detached::NeedsHost(*base));
        }
        let Some(place) = state.attachments.iter().position(|(at, _)| *at == space) else { return Ok(Detached::Done) };
        let index = state.attachments[place].1;
        if self.buffers.is_attachment_lent(index) {
            return Err(Error::new(status::DEVICE, format!("detach: the copy of base {} is lent", base.id)));
        }
        if let Some(&alias) = self.buffers.attachment_aliases(index).first()
            && let Some(state) = self.bases.get(&alias)
        {
            return Ok(Detached::NeedsHost(Base::new(alias, state.dtype, state.len)));
        }
        let Some(state) = self.bases.get_mut(&base.id) else { return Ok(Detached::Done) };
        if !state.host_valid && state.attachments.len() == 1 {
            return Ok(Detached::NeedsHost(*base));
        }
        state.attachments.swap_remove(place);
        self.buffers.unref_attachment(index);
        self.detached.add(1);
        Ok(Detached::Done)
    }

    /// The spaces that hold a base.
    pub fn spaces_of(&self, base: &Base) -> Vec<u32> {
        self.bases.get(&base.id).map_or(Vec::new(), |state| {
            let alias = state.alias.as_ref().and_then(|alias| match alias.source {
                Source::Attachment(space, _) => Some(space),
                Source::Buffer(_) => None,
            });
            state.attachments.iter().map(|&(space, _)| space).chain(alias).collect()
        })
    }

    /// Where a base's data is.
    pub fn residency(&self, base: &Base) -> Residency {
        let Some(state) = self.bases.get(&base.id) else { return Residency::default() };
        let space = match state.alias.as_ref().map(|alias| alias.source) {
            Some(Source::Attachment(space, _)) => space,
            Some(Source::Buffer(_)) => HOST_SPACE,
            None => state.attachments.first().map_or(HOST_SPACE, |&(space, _)| space),
        };
        let host_alias = matches!(state.alias.as_ref().map(|alias| alias.source), Some(Source::Buffer(_)));
        Residency {
            host: u32::from(state.host_valid || host_alias),
            spaces: state.attachments.len() as u32,
            space,
            alias: u32::from(state.alias.is_some()),
            lost: u32::from(state.poison.is_some()),
            ..Residency::default()
        }
    }
}

/// Reads, writes and prefetches of parts.
impl Arrays {
    /// Lends the attachment of a base without a valid host copy.
    pub fn lend_attachment(&mut self, base: &Base) -> Option<(Loan, AttachmentOps)> {
        let state = self.bases.get(&base.id)?;
        if state.host_valid || state.poison.is_some() || state.alias.is_some() {
            return None;
        }
        let &(_, index) = state.attachments.first()?;
        let bytes = state.bytes();
        let (data, operations) = self.buffers.ref_attachment(index);
        Some((Loan { data, bytes, token: self.loans.begin(Lent::Attachment(index)) }, operations))
    }

    /// The space of the only valid copy of a base, if it supports writes to parts.
    pub fn writable_space(&self, base: &Base) -> Option<u32> {
        let state = self.bases.get(&base.id)?;
        let &(space, index) = state.attachments.first()?;
        let writable = !state.host_valid && self.buffers.operations(index).write.is_some();
        writable.then_some(space)
    }

    /// The operations of a lent attachment.
    pub fn operations_of(&self, loan: &Loan) -> Option<AttachmentOps> {
        match self.loans.get(loan.token) {
            Some(Lent::Attachment(index)) => Some(*self.buffers.operations(index)),
            _ => None,
        }
    }
}

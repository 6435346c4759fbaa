//! Versions and copies of a base: renames, lazy copies of parts (aliases), and copies in engines' spaces.

use super::Arrays;
use super::state::{Alias, Transfer, state_of, unknown};
use crate::buffer::NONE;
use crate::copy::gather;
use crate::loans::Lent;
use bh_bytecode::{Base, View};
use bh_core::abi::{AttachmentOps, Fresh, HOST_SPACE, status};
use bh_core::error::{Error, Result};
use std::ffi::c_void;
use std::ptr;

impl Arrays {
    /// Gives every alias of a buffer its own memory.
    pub(super) fn copy_out_aliases(&mut self, index: u32) -> Result<()> {
        while let Some(&alias) = self.buffers.get(index).aliases.last() {
            self.materialise(alias)?;
        }
        Ok(())
    }

    /// Turns an alias into an array of its own.
    pub(super) fn materialise(&mut self, id: u64) -> Result<()> {
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        let Some(alias) = &state.alias else { return Ok(()) };
        let target = self.buffers.allocate(state.bytes(), false)?;
        let source = self.buffers.get(alias.source).data;
        let data = self.buffers.get(target).data;
        // SAFETY: the view was checked against the source buffer, which the alias keeps alive; the target has the
        // alias's size, which equals the view's.
        unsafe { gather(&alias.view, state.dtype.size(), source, data) };
        self.drop_alias(id);
        self.alias_copies.add(1);
        if let Some(state) = self.bases.get_mut(&id) {
            (state.buffer, state.host_valid) = (target, true);
        }
        Ok(())
    }

    /// Forgets that a base is an alias.
    pub(super) fn drop_alias(&mut self, id: u64) {
        let Some(alias) = self.bases.get_mut(&id).and_then(|state| state.alias.take()) else { return };
        self.buffers.get(alias.source).aliases.retain(|&other| other != id);
        self.buffers.unref(alias.source);
        self.spare_alias = Some(alias);
    }

    /// Drops the copies in engines' spaces, but for one space.
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

    /// The host buffer no longer holds the current values: it goes, unless it must stay where it is.
    pub(super) fn make_host_stale(&mut self, id: u64) -> Result<()> {
        self.drop_alias(id);
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        state.version = state.version.wrapping_add(1);
        let (index, fixed, was_valid) = (state.buffer, state.is_fixed(), state.host_valid);
        if index == NONE {
            return Ok(());
        }
        if fixed {
            // A later transfer will write here.
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

    /// Prepares the copy of a device's data to the host.
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
        Ok(Transfer { id, version, buffer: index, attachment, handle, operations, data, bytes })
    }

    /// Ends a transfer; the host buffer is valid unless the base changed meanwhile or the transfer failed.
    pub fn end_transfer(&mut self, transfer: &Transfer, success: bool) {
        if let Some(state) = self.bases.get_mut(&transfer.id) {
            state.transferring = false;
            if success && state.buffer == transfer.buffer && state.version == transfer.version {
                state.host_valid = true;
            }
        }
        self.to_host.add(1);
        self.buffers.unref(transfer.buffer);
        self.buffers.unref_attachment(transfer.attachment);
    }

    /// A second buffer for a base.
    pub fn fresh(&mut self, base: &Base) -> Result<Fresh> {
        let bytes = state_of(&mut self.bases, base)?.bytes();
        let index = self.buffers.allocate(bytes, false)?;
        let data = self.buffers.get(index).data.cast();
        Ok(Fresh { data, bytes, token: self.loans.begin(Lent::Fresh(index)) })
    }

    /// Gives up a second buffer.
    pub fn drop_fresh(&mut self, token: u64) {
        match self.loans.get(token) {
            Some(Lent::Fresh(index)) => {
                self.loans.end(token);
                self.buffers.unref(index);
            }
            _ => self.wrong_releases.add(1),
        }
    }

    /// Replaces a base's buffer by a fresh one, whose loan ends. A buffer that must stay gets the content instead.
    pub fn commit_rename(&mut self, base: &Base, token: u64) -> Result<()> {
        let Some(Lent::Fresh(index)) = self.loans.get(token) else {
            return Err(Error::new(status::HANDLE, format!("rename of base {}: no buffer of `fresh`", base.id)));
        };
        self.loans.end(token);
        let outcome = self.replace_buffer(base, index);
        if outcome.is_err() {
            self.buffers.unref(index);
        }
        outcome
    }

    /// Makes a buffer that of a base; the reference to it is the base's then, unless this fails.
    fn replace_buffer(&mut self, base: &Base, index: u32) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        if self.buffers.get(index).bytes != state.bytes() {
            return Err(Error::new(status::ARGUMENT, format!("rename of base {}: the buffer's size differs", base.id)));
        }
        state.version = state.version.wrapping_add(1);
        state.poison = None;
        self.renames.add(1);
        self.drop_alias(base.id);
        self.drop_attachments(base.id, None);
        let Some(state) = self.bases.get_mut(&base.id) else { return Ok(()) };
        let (old, fixed, bytes) = (state.buffer, state.is_fixed(), state.bytes());
        if fixed && old != NONE {
            state.host_valid = true;
            self.copy_out_aliases(old)?;
            let (from, to) = (self.buffers.get(index).data, self.buffers.get(old).data);
            // SAFETY: two live buffers of this size.
            unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
            self.buffers.unref(index);
        } else {
            (state.buffer, state.host_valid) = (index, true);
            self.buffers.unref(old);
        }
        Ok(())
    }

    /// Makes a base a lazy copy of a view of another one, which must be valid on the host.
    pub fn alias(&mut self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        let refuse = |text: &str| Err(Error::new(status::ARGUMENT, format!("alias of base {}: {text}", base.id)));
        if alias.id == base.id {
            return refuse("it cannot be its own alias");
        }
        if alias.dtype != base.dtype || view.len() != alias.len || !view.fits(base.len) {
            return refuse("type, length or view do not fit");
        }
        let source = state_of(&mut self.bases, base)?;
        let (index, valid, is_alias) = (source.buffer, source.host_valid, source.alias.is_some());
        if is_alias || !valid || index == NONE {
            return refuse("its data is not in host memory");
        }
        self.drop_data(alias, false)?;
        let state = state_of(&mut self.bases, alias)?;
        state.poison = None;
        state.version = state.version.wrapping_add(1);
        if state.buffer != NONE {
            // The alias must stay where it is: copy now.
            let (target, size) = (state.buffer, state.dtype.size());
            state.host_valid = true;
            self.copy_out_aliases(target)?;
            let (from, to) = (self.buffers.get(index).data, self.buffers.get(target).data);
            // SAFETY: the view fits the source buffer, and the target has as many elements.
            unsafe { gather(view, size, from, to) };
            return Ok(());
        }
        let made = Alias { source: index, view: *view };
        state.alias = Some(match self.spare_alias.take() {
            Some(mut spare) => {
                *spare = made;
                spare
            }
            None => Box::new(made),
        });
        let buffer = self.buffers.get(index);
        buffer.refs += 1;
        buffer.aliases.push(alias.id);
        Ok(())
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
        let state = state_of(&mut self.bases, base)?;
        if exclusive {
            state.poison = None;
            // This may fail, so it comes before the registry takes the handle.
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
}

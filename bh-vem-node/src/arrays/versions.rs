//! Versions of a base: renames and lazy copies of parts (aliases), in host memory and in engines' spaces.

use super::Arrays;
use super::state::{Alias, Source, SpaceCopy, Step, Transfer, state_of, unknown};
use crate::buffer::NONE;
use crate::loans::Lent;
use bh_bytecode::{Base, View};
use bh_core::abi::{Fresh, status};
use bh_core::error::{Error, Result};
use std::ffi::c_void;

/// The result of a request for an alias.
pub enum Aliased {
    /// The alias exists.
    Done,
    /// The source must be in host memory first.
    NeedsHost,
}

impl Arrays {
    /// Gives every alias of a buffer its own memory.
    pub(super) fn copy_out_aliases(&mut self, index: u32) -> Result<()> {
        while let Some(&alias) = self.buffers.get(index).aliases.last() {
            self.materialise(alias)?;
        }
        Ok(())
    }

    /// Turns an alias of a host buffer into an independent array.
    pub(super) fn materialise(&mut self, id: u64) -> Result<()> {
        let Some(state) = self.bases.get_mut(&id) else { return Ok(()) };
        let Some(alias) = &state.alias else { return Ok(()) };
        let Source::Buffer(source) = alias.source else { return Ok(()) };
        let target = self.buffers.allocate(state.bytes(), false)?;
        // SAFETY: `alias` checked the view against the source buffer, which the alias keeps alive; the target has the
        // bytes of the view's elements.
        unsafe { self.buffers.gather(&alias.view, state.dtype.size(), source, target) };
        self.drop_alias(id);
        self.alias_copies.add(1);
        if let Some(state) = self.bases.get_mut(&id) {
            (state.buffer, state.host_valid) = (target, true);
        }
        Ok(())
    }

    /// Ends an alias.
    pub(super) fn drop_alias(&mut self, id: u64) {
        let Some(alias) = self.bases.get_mut(&id).and_then(|state| state.alias.take()) else { return };
        match alias.source {
            Source::Buffer(index) => {
                self.buffers.get(index).aliases.retain(|&other| other != id);
                self.buffers.unref(index);
            }
            Source::Attachment(_, index) => {
                self.buffers.attachment_aliases(index).retain(|&other| other != id);
                self.buffers.unref_attachment(index);
            }
        }
        self.spare_alias = Some(alias);
    }

    /// Prepares the transfer of an alias of an attachment to host memory, where it becomes an independent array.
    pub(super) fn begin_alias_transfer(&mut self, id: u64) -> Result<Transfer> {
        let Some(state) = self.bases.get_mut(&id) else { return Err(unknown(id)) };
        let Some(alias) = &state.alias else { return Err(unknown(id)) };
        let Source::Attachment(_, attachment) = alias.source else { return Err(unknown(id)) };
        let part = Some((alias.of, alias.view));
        if state.buffer == NONE {
            state.buffer = self.buffers.allocate(state.bytes(), false)?;
        }
        state.transferring = true;
        let (version, index) = (state.version, state.buffer);
        let (handle, operations) = self.buffers.ref_attachment(attachment);
        let buffer = self.buffers.get(index);
        buffer.refs += 1;
        let (data, bytes) = (buffer.data, buffer.bytes);
        Ok(Transfer { id, version, buffer: index, attachment, handle, operations, data, bytes, part })
    }

    /// Turns an alias of an attachment into an independent array: in its space, or in host memory if the engine cannot
    /// copy there.
    pub(super) fn begin_clone(&mut self, id: u64) -> Result<Step> {
        let Some(state) = self.bases.get_mut(&id) else { return Err(unknown(id)) };
        let Some(alias) = &state.alias else { return Err(unknown(id)) };
        let Source::Attachment(space, attachment) = alias.source else { return Err(unknown(id)) };
        if state.transferring {
            return Ok(Step::Wait);
        }
        if self.buffers.operations(attachment).clone.is_none() {
            return self.begin_alias_transfer(id).map(Step::Transfer);
        }
        let part = (alias.of, alias.view);
        state.transferring = true;
        let version = state.version;
        let (handle, operations) = self.buffers.ref_attachment(attachment);
        Ok(Step::Clone(SpaceCopy { id, version, space, attachment, handle, operations, part }))
    }

    /// Ends a clone; gives its handle to the alias, unless that has changed.
    pub fn end_clone(&mut self, clone: &SpaceCopy, handle: Option<*mut c_void>) {
        let mut current = false;
        if let Some(state) = self.bases.get_mut(&clone.id) {
            state.transferring = false;
            current = state.version == clone.version && state.alias.is_some();
        }
        if let Some(handle) = handle {
            self.alias_clones.add(1);
            let index = self.buffers.attach(handle, clone.operations);
            if current {
                self.drop_alias(clone.id);
                if let Some(state) = self.bases.get_mut(&clone.id) {
                    state.attachments.push((clone.space, index));
                }
            } else {
                self.buffers.unref_attachment(index);
            }
        }
        self.buffers.unref_attachment(clone.attachment);
    }

    /// Lends a buffer for a base's next version.
    pub fn fresh(&mut self, base: &Base) -> Result<Fresh> {
        let bytes = state_of(&mut self.bases, base)?.bytes();
        let index = self.buffers.allocate(bytes, false)?;
        let data = self.buffers.get(index).data.cast();
        Ok(Fresh { data, bytes, token: self.loans.begin(Lent::Fresh(index)) })
    }

    /// Releases a buffer for a next version.
    pub fn drop_fresh(&mut self, token: u64) {
        match self.loans.get(token) {
            Some(Lent::Fresh(index)) => {
                self.loans.end(token);
                self.buffers.unref(index);
            }
            _ => self.wrong_releases.add(1),
        }
    }

    /// Makes a fresh buffer the base's data, and ends its loan. If the base's memory must stay in place, copies the
    /// content there.
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

    /// Makes a buffer the base's data; the base takes over the reference, unless this fails.
    fn replace_buffer(&mut self, base: &Base, index: u32) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        if self.buffers.get(index).bytes != state.bytes() {
            return Err(Error::new(status::ARGUMENT, format!("rename of base {}: the buffer's size differs", base.id)));
        }
        let (old, fixed) = (state.buffer, state.is_fixed());
        if fixed && old != NONE {
            // Before any change, because this may fail.
            self.copy_out_aliases(old)?;
        }
        let state = state_of(&mut self.bases, base)?;
        state.version = state.version.wrapping_add(1);
        state.poison = None;
        self.renames.add(1);
        self.drop_alias(base.id);
        self.drop_attachments(base.id, None);
        let Some(state) = self.bases.get_mut(&base.id) else { return Ok(()) };
        if fixed && old != NONE {
            state.host_valid = true;
            self.buffers.copy(index, old);
            self.buffers.unref(index);
        } else {
            (state.buffer, state.host_valid) = (index, true);
            self.buffers.unref(old);
        }
        Ok(())
    }

    /// Makes a base a lazy copy of a view of another one, in the space of that one's data.
    pub fn alias(&mut self, alias: &Base, base: &Base, view: &View) -> Result<Aliased> {
        let refuse = |text: &str| Err(Error::new(status::ARGUMENT, format!("alias of base {}: {text}", base.id)));
        if alias.id == base.id {
            return refuse("it cannot be its own alias");
        }
        if alias.dtype != base.dtype || view.len() != alias.len || !view.fits(base.len) {
            return refuse("type, length or view do not fit");
        }
        let source = state_of(&mut self.bases, base)?;
        if let Some(error) = &source.poison {
            return Err((**error).clone());
        }
        if source.alias.is_some() {
            return Ok(Aliased::NeedsHost);
        }
        let found = if source.host_valid && source.buffer != NONE {
            Source::Buffer(source.buffer)
        } else if let Some(&(space, index)) = source.attachments.first() {
            let operations = self.buffers.operations(index);
            if operations.clone.is_none() && operations.read.is_none() {
                return Ok(Aliased::NeedsHost);
            }
            Source::Attachment(space, index)
        } else {
            return Ok(Aliased::NeedsHost);
        };
        let target = state_of(&mut self.bases, alias)?;
        if target.is_fixed() && !matches!(found, Source::Buffer(_)) {
            return Ok(Aliased::NeedsHost);
        }
        self.drop_data(alias, false)?;
        let state = state_of(&mut self.bases, alias)?;
        state.poison = None;
        state.version = state.version.wrapping_add(1);
        if let (Source::Buffer(index), true) = (found, state.buffer != NONE) {
            // The alias must stay in place: copy immediately.
            let (target, size) = (state.buffer, state.dtype.size());
            state.host_valid = true;
            self.copy_out_aliases(target)?;
            // SAFETY: the view fits the source buffer, and the target has space for its elements.
            unsafe { self.buffers.gather(view, size, index, target) };
            return Ok(Aliased::Done);
        }
        let made = Alias { source: found, of: *base, view: *view };
        state.alias = Some(match self.spare_alias.take() {
            Some(mut spare) => {
                *spare = made;
                spare
            }
            None => Box::new(made),
        });
        match found {
            Source::Buffer(index) => {
                let buffer = self.buffers.get(index);
                buffer.refs += 1;
                buffer.aliases.push(alias.id);
            }
            Source::Attachment(_, index) => {
                self.buffers.ref_attachment(index);
                self.buffers.attachment_aliases(index).push(alias.id);
            }
        }
        Ok(Aliased::Done)
    }
}

//! The lifetime of a base's data: poison, adoption, pins and maps, FREE and DISCARD, leaks.

use super::Arrays;
use super::state::{Leak, State, state_of};
use crate::buffer::NONE;
use bh_bytecode::Base;
use bh_core::abi::{Adoption, Loan, adopt, status};
use bh_core::error::{Error, Result};

impl Arrays {
    /// Marks a base as lost; keeps its first error.
    pub fn poison(&mut self, base: &Base, error: Error) {
        // The batch's indices have no meaning for later readers of the base; file and line do.
        let error = Error { block: None, instr: None, ..error };
        if self.drop_data(base, false).is_err() {
            return;
        }
        if let Ok(state) = state_of(&mut self.bases, base)
            && state.poison.is_none()
        {
            state.poison = Some(Box::new(error));
        }
    }

    /// Adopts the user's memory as a base's data.
    pub fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()> {
        let data = adoption.data().cast::<u8>();
        let (release, argument) = adoption.release();
        if adoption.mode() > adopt::IMMUTABLE {
            return Err(Error::new(status::ARGUMENT, format!("adopt: there is no mode {}", adoption.mode())));
        }
        if data.is_null() && base.len > 0 {
            return Err(Error::new(status::ARGUMENT, "adopt: the data pointer is null"));
        }
        let state = state_of(&mut self.bases, base)?;
        if state.is_fixed() {
            return Err(Error::new(status::ARGUMENT, format!("adopt: the data of base {} may not move", base.id)));
        }
        self.drop_data(base, false)?;
        let state = state_of(&mut self.bases, base)?;
        state.poison = None;
        state.adopted = adoption.mode() == adopt::SHARED;
        state.host_valid = true;
        state.version = state.version.wrapping_add(1);
        state.buffer = self.buffers.adopt(data, state.bytes(), release, argument);
        // Immutable memory is guarded for ever.
        self.buffers.get(state.buffer).guards = u32::from(adoption.mode() == adopt::IMMUTABLE);
        Ok(())
    }

    /// Pins a base's memory, or ends a pin.
    pub fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        let index = state.buffer;
        if pinned && !state.is_fixed() && index != NONE && self.buffers.get(index).guards > 0 {
            // Writes to pinned memory are possible at any time, so others must not rely on its content.
            self.leave_guarded(base.id, false)?;
        }
        let state = state_of(&mut self.bases, base)?;
        match (pinned, state.pins) {
            (true, _) => state.pins += 1,
            (false, 0) => return Err(Error::new(status::ARGUMENT, format!("unpin: base {} is not pinned", base.id))),
            (false, _) => state.pins -= 1,
        }
        self.finish_discard(base.id);
        Ok(())
    }

    /// Turns a loan of the host buffer into a map, until `unmap`.
    pub fn mapped(&mut self, id: u64, loan: &Loan) {
        // `unmap` ends the reference to the buffer.
        self.loans.end(loan.token);
        if let Some(state) = self.bases.get_mut(&id) {
            state.maps += 1;
        }
    }

    /// Ends a map.
    pub fn unmap(&mut self, base: &Base) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        if state.maps == 0 {
            return Err(Error::new(status::ARGUMENT, format!("unmap: base {} is not mapped", base.id)));
        }
        state.maps -= 1;
        self.buffers.unref(state.buffer);
        self.finish_discard(base.id);
        Ok(())
    }

    /// Drops a base's data. Pinned and mapped memory stays in place, and so does adopted memory unless
    /// `give_back_adopted`.
    pub(super) fn drop_data(&mut self, base: &Base, give_back_adopted: bool) -> Result<()> {
        let state = state_of(&mut self.bases, base)?;
        state.version = state.version.wrapping_add(1);
        let stays = state.pins > 0 || state.maps > 0 || (state.adopted && !give_back_adopted);
        if !stays {
            let index = state.buffer;
            (state.buffer, state.host_valid, state.adopted) = (NONE, false, false);
            self.buffers.unref(index);
        }
        self.drop_alias(base.id);
        self.drop_attachments(base.id, None);
        Ok(())
    }

    /// FREE: drops the data; the base stays.
    pub fn free(&mut self, base: &Base) -> Result<()> {
        // Contracted bases have no state, and must not get one.
        if !self.bases.contains_key(&base.id) {
            return Ok(());
        }
        self.drop_data(base, true)?;
        state_of(&mut self.bases, base)?.poison = None;
        Ok(())
    }

    /// DISCARD: drops the base. Its memory stays until maps and pins end.
    pub fn discard(&mut self, base: &Base) -> Result<()> {
        self.free(base)?;
        if let Some(state) = self.bases.get_mut(&base.id) {
            state.discarded = true;
        }
        self.finish_discard(base.id);
        Ok(())
    }

    fn finish_discard(&mut self, id: u64) {
        if let Some(state) = self.bases.get_mut(&id)
            && state.discarded
            && state.pins == 0
            && state.maps == 0
        {
            let index = std::mem::replace(&mut state.buffer, NONE);
            self.buffers.unref(index);
            self.bases.remove(&id);
        }
    }

    /// Must the base's host memory stay where it is?
    pub fn stays_in_place(&self, base: &Base) -> bool {
        self.bases.get(&base.id).is_some_and(State::is_fixed)
    }

    /// Is the base's data lost, absent or already on the host, so that SYNC has nothing to do?
    pub fn is_synced(&self, base: &Base) -> bool {
        self.bases.get(&base.id).is_none_or(|state| {
            state.poison.is_some() || state.host_valid || (state.attachments.is_empty() && state.alias.is_none())
        })
    }

    /// The bases that still have data, sorted by id.
    pub fn leaks(&self) -> Vec<Leak> {
        let has_data = |state: &State| state.buffer != NONE || !state.attachments.is_empty() || state.alias.is_some();
        let mut leaks: Vec<Leak> = self
            .bases
            .iter()
            .filter(|(_, state)| has_data(state))
            .map(|(&id, state)| Leak { id, dtype: state.dtype, len: state.len })
            .collect();
        leaks.sort_by_key(|leak| leak.id);
        leaks
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        let ids: Vec<u64> = self.bases.keys().copied().collect();
        for id in ids {
            self.drop_alias(id);
            self.drop_attachments(id, None);
            if let Some(state) = self.bases.remove(&id) {
                // Also releases the references of maps.
                for _ in 0..=state.maps {
                    self.buffers.unref(state.buffer);
                }
            }
        }
    }
}

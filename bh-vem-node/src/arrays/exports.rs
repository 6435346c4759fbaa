//! Stable loans and exports: buffers lent for reading while the program continues.

use super::Arrays;
use super::state::state_of;
use crate::loans::Lent;
use bh_bytecode::Base;
use bh_core::abi::{Export, Loan, export, status};
use bh_core::error::{Error, Result};

impl Arrays {
    /// Lends a buffer whose content does not change. If others may write to it, lends a copy.
    pub(super) fn guarded(&mut self, index: u32, fixed: bool) -> Result<Loan> {
        let (index, lent) = if fixed {
            let bytes = self.buffers.get(index).bytes;
            let copy = self.copy_of(index, bytes)?;
            (copy, Lent::Buffer(copy))
        } else {
            let buffer = self.buffers.get(index);
            buffer.refs += 1;
            buffer.guards += 1;
            (index, Lent::Guarded(index))
        };
        let buffer = self.buffers.get(index);
        let (data, bytes) = (buffer.data.cast(), buffer.bytes);
        Ok(Loan { data, bytes, token: self.loans.begin(lent) })
    }

    /// Exports the host buffer of a base, which must be up to date, to the application.
    pub fn export(&mut self, base: &Base, mode: u32) -> Result<Export> {
        let state = state_of(&mut self.bases, base)?;
        let (index, fixed) = (state.buffer, state.is_fixed());
        let (index, lent) = match mode {
            export::READ_ONLY => {
                let Loan { data, bytes, token } = self.guarded(index, fixed)?;
                return Ok(Export { data, bytes, token });
            }
            export::SNAPSHOT => {
                let bytes = self.buffers.get(index).bytes;
                let copy = self.copy_of(index, bytes)?;
                (copy, Lent::Buffer(copy))
            }
            export::SHARED => {
                self.pin(base, true)?;
                let index = state_of(&mut self.bases, base)?.buffer;
                self.buffers.get(index).refs += 1;
                (index, Lent::Shared(index, base.id))
            }
            _ => return Err(Error::new(status::ARGUMENT, format!("export: there is no mode {mode}"))),
        };
        let buffer = self.buffers.get(index);
        let (data, bytes) = (buffer.data.cast(), buffer.bytes);
        Ok(Export { data, bytes, token: self.loans.begin(lent) })
    }

    /// Ends an export.
    pub fn end_export(&mut self, base: &Base, token: u64) -> Result<()> {
        match self.loans.get(token) {
            Some(Lent::Shared(index, id)) if id == base.id => {
                self.loans.end(token);
                self.buffers.unref(index);
                self.pin(base, false)
            }
            Some(Lent::Buffer(_) | Lent::Guarded(_)) => {
                self.release(token);
                Ok(())
            }
            _ => Err(Error::new(status::HANDLE, format!("base {} has no such export, or it has ended", base.id))),
        }
    }
}

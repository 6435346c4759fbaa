//! The registry as engines see it: [`Arrays`] behind a lock, transfers from devices, and the C table.

use crate::arrays::{Arrays, Step};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::{AttachmentOps, ErrorRecord, Fresh, HOST_SPACE, Loan, access, status};
use bh_core::component::{Host, RegistryService};
use bh_core::error::{Error, Result};
use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The array registry of one address space. May be used from any thread. Engines' callbacks are made with the lock
/// open, so that they may come back.
pub struct ArrayRegistry {
    arrays: Mutex<Arrays>,
    transferred: Condvar,
}

impl ArrayRegistry {
    /// Without bases.
    pub fn new(host: Host) -> ArrayRegistry {
        ArrayRegistry { arrays: Mutex::new(Arrays::new(host)), transferred: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Arrays> {
        // The registry must go on serving after a panic elsewhere; its rules leave no half-made states behind.
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the lock and makes the calls that were put off.
    #[inline]
    fn unlock(&self, mut arrays: MutexGuard<'_, Arrays>) {
        if arrays.buffers.later.is_empty() {
            return;
        }
        let later = std::mem::take(&mut arrays.buffers.later);
        drop(arrays);
        later.run();
    }

    /// Works on the arrays under the lock.
    pub fn with<T>(&self, work: impl FnOnce(&mut Arrays) -> T) -> T {
        let mut arrays = self.lock();
        let result = work(&mut arrays);
        self.unlock(arrays);
        result
    }

    /// Lends a base's buffer in a space; see [`RegistryTable::acquire`].
    pub fn lend(&self, base: &Base, space: u32, mode: u32) -> Result<Loan> {
        let mut arrays = self.lock();
        loop {
            match arrays.acquire(base, space, mode) {
                Ok(Step::Ready(buffer)) => {
                    self.unlock(arrays);
                    return Ok(buffer);
                }
                Ok(Step::Wait) => {
                    arrays = self.transferred.wait(arrays).unwrap_or_else(PoisonError::into_inner);
                }
                Ok(Step::Transfer(transfer)) => {
                    drop(arrays);
                    let mut record = ErrorRecord::empty();
                    // SAFETY: the attachment is referenced, so its functions work, and the buffer has these bytes.
                    let code = unsafe {
                        (transfer.operations.to_host)(
                            transfer.operations.context,
                            transfer.handle,
                            transfer.data.cast(),
                            transfer.bytes,
                            &mut record,
                        )
                    };
                    arrays = self.lock();
                    arrays.end_transfer(&transfer, code == status::OK);
                    self.transferred.notify_all();
                    if code != status::OK {
                        self.unlock(arrays);
                        return Err(Error::read(code, &record));
                    }
                }
                Err(error) => {
                    self.unlock(arrays);
                    return Err(error);
                }
            }
        }
    }

    /// Makes the host copy of a base valid; a failure is the base's, which is lost.
    fn sync(&self, base: &Base) {
        if self.with(|arrays| arrays.is_synced(base)) {
            return;
        }
        match self.lend(base, HOST_SPACE, access::READ) {
            Ok(loan) => self.with(|arrays| arrays.release(loan.token)),
            Err(error) => self.with(|arrays| arrays.poison(base, error)),
        }
    }

    /// Carries out the data management of a finished block.
    pub fn finish_block(&self, batch: &BatchRef<'_>, block: u32) {
        let Some(block) = batch.blocks.get(block as usize) else { return };
        for &index in batch.block_instrs(block) {
            let instr = &batch.instrs[index as usize];
            if !instr.opcode.is_system() {
                continue;
            }
            let view = instr.operands().first().and_then(|operand| operand.as_view());
            let Some(base) = view.and_then(|view| batch.base_of(view)) else { continue };
            // The only failure is a base that is known under another type, which has no data to manage.
            let _ = match instr.opcode {
                Opcode::Sync => {
                    self.sync(base);
                    Ok(())
                }
                Opcode::Free => self.with(|arrays| arrays.free(base)),
                Opcode::Discard => self.with(|arrays| arrays.discard(base)),
                _ => Ok(()),
            };
        }
    }
}

impl RegistryService for ArrayRegistry {
    fn new_space(&self) -> u32 {
        self.with(Arrays::new_space)
    }

    fn acquire(&self, base: &Base, space: u32, access: u32) -> Result<Loan> {
        self.lend(base, space, access)
    }

    fn release(&self, token: u64) {
        self.with(|arrays| arrays.release(token));
    }

    fn fresh(&self, base: &Base) -> Result<Fresh> {
        self.with(|arrays| arrays.fresh(base))
    }

    fn drop_fresh(&self, token: u64) {
        self.with(|arrays| arrays.drop_fresh(token));
    }

    fn commit_rename(&self, base: &Base, token: u64) -> Result<()> {
        self.with(|arrays| arrays.commit_rename(base, token))
    }

    fn alias(&self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        // The base is brought to host memory first, unless it is lost.
        let loan = self.lend(base, HOST_SPACE, access::READ)?;
        self.with(|arrays| {
            let outcome = arrays.alias(alias, base, view);
            arrays.release(loan.token);
            outcome
        })
    }

    fn attach(
        &self,
        base: &Base,
        space: u32,
        handle: *mut c_void,
        exclusive: bool,
        operations: AttachmentOps,
    ) -> Result<()> {
        self.with(|arrays| arrays.attach(base, space, handle, exclusive, operations))
    }

    fn poison(&self, base: &Base, error: Error) {
        self.with(|arrays| arrays.poison(base, error));
    }

    fn block_done(&self, batch: &BatchRef<'_>, block: u32) {
        self.finish_block(batch, block);
    }
}

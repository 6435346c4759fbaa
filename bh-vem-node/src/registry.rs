//! The registry as engines see it: [`Arrays`] behind a lock, transfers from devices, and the C table.

use crate::arrays::{Arrays, Step};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::{
    AttachmentOps, BatchTables, Buffer, ErrorRecord, HOST_SPACE, RegistryTable, Status, ViewSpec, access, status,
};
use bh_core::component::Host;
use bh_core::error::{Error, Result};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    pub fn acquire(&self, base: &Base, space: u32, mode: u32) -> Result<Buffer> {
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
        match self.acquire(base, HOST_SPACE, access::READ) {
            Ok(buffer) => self.with(|arrays| arrays.release(&buffer)),
            Err(error) => self.with(|arrays| arrays.poison(base, error)),
        }
    }

    /// Carries out the data management of a finished block.
    pub fn block_done(&self, batch: &BatchRef<'_>, block: u32) {
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

    /// The C table of this registry, which must stay where it is as long as the table is used.
    pub fn table(&self) -> RegistryTable {
        RegistryTable {
            struct_size: size_of::<RegistryTable>(),
            context: ptr_of(self),
            new_space,
            acquire,
            release,
            fresh,
            commit_rename,
            alias,
            attach,
            poison,
            block_done,
        }
    }
}

fn ptr_of(registry: &ArrayRegistry) -> *mut c_void {
    std::ptr::from_ref(registry).cast_mut().cast()
}

/// Runs the body of a service: nothing unwinds, and failures fill the record.
///
/// # Safety
/// `context` must come from [`ArrayRegistry::table`]; `error` must be writable or null.
unsafe fn serve(
    context: *mut c_void,
    error: *mut ErrorRecord,
    work: impl FnOnce(&ArrayRegistry) -> Result<()>,
) -> Status {
    // SAFETY: promised by the caller.
    let registry = unsafe { &*context.cast::<ArrayRegistry>() };
    let outcome = catch_unwind(AssertUnwindSafe(|| work(registry)))
        .unwrap_or_else(|_| Err(Error::new(status::PANIC, "the array registry panicked")));
    match outcome {
        Ok(()) => status::OK,
        Err(failure) if error.is_null() => failure.status,
        // SAFETY: writable as promised; a plain record of bytes and numbers is filled as a whole.
        Err(failure) => unsafe {
            error.write(ErrorRecord::empty());
            failure.write(&mut *error)
        },
    }
}

unsafe extern "C" fn new_space(context: *mut c_void) -> u32 {
    let mut space = HOST_SPACE;
    let error = std::ptr::null_mut();
    // SAFETY: the context is this registry's.
    unsafe {
        serve(context, error, |registry| {
            space = registry.with(Arrays::new_space);
            Ok(())
        })
    };
    space
}

unsafe extern "C" fn acquire(
    context: *mut c_void,
    base: *const Base,
    space: u32,
    access: u32,
    buffer: *mut Buffer,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is this registry's, and the caller's pointers live through the call.
    unsafe {
        serve(context, error, |registry| {
            buffer.write(registry.acquire(&*base, space, access)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn release(context: *mut c_void, buffer: *const Buffer) {
    let error = std::ptr::null_mut();
    // SAFETY: as above.
    unsafe {
        serve(context, error, |registry| {
            registry.with(|arrays| arrays.release(&*buffer));
            Ok(())
        })
    };
}

unsafe extern "C" fn fresh(
    context: *mut c_void,
    base: *const Base,
    buffer: *mut Buffer,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: as above.
    unsafe {
        serve(context, error, |registry| {
            buffer.write(registry.with(|arrays| arrays.fresh(&*base))?);
            Ok(())
        })
    }
}

unsafe extern "C" fn commit_rename(
    context: *mut c_void,
    base: *const Base,
    buffer: *const Buffer,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: as above.
    unsafe { serve(context, error, |registry| registry.with(|arrays| arrays.commit_rename(&*base, &*buffer))) }
}

unsafe extern "C" fn alias(
    context: *mut c_void,
    alias: *const Base,
    base: *const Base,
    view: *const ViewSpec,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: as above.
    unsafe {
        serve(context, error, |registry| {
            let spec = &*view;
            let rank = spec.rank as usize;
            let (shape, stride) = if rank == 0 {
                (&[][..], &[][..])
            } else {
                (std::slice::from_raw_parts(spec.shape, rank), std::slice::from_raw_parts(spec.stride, rank))
            };
            let view = View::new(spec.start, shape, stride).map_err(|why| Error::new(status::ARGUMENT, why.0))?;
            // The base is brought to host memory first, unless it is lost.
            let (alias, base) = (&*alias, &*base);
            let loan = registry.acquire(base, HOST_SPACE, access::READ)?;
            registry.with(|arrays| {
                let outcome = arrays.alias(alias, base, &view);
                arrays.release(&loan);
                outcome
            })
        })
    }
}

unsafe extern "C" fn attach(
    context: *mut c_void,
    base: *const Base,
    space: u32,
    handle: *mut c_void,
    exclusive: i32,
    operations: *const AttachmentOps,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: as above.
    unsafe {
        serve(context, error, |registry| {
            registry.with(|arrays| arrays.attach(&*base, space, handle, exclusive != 0, *operations))
        })
    }
}

unsafe extern "C" fn poison(context: *mut c_void, base: *const Base, error: *const ErrorRecord) {
    let ignored = std::ptr::null_mut();
    // SAFETY: as above.
    unsafe {
        serve(context, ignored, |registry| {
            let error = Error::read((*error).status, &*error);
            registry.with(|arrays| arrays.poison(&*base, error));
            Ok(())
        })
    };
}

unsafe extern "C" fn block_done(context: *mut c_void, batch: *const BatchTables, block: u32) {
    let error = std::ptr::null_mut();
    // SAFETY: as above; the tables live through the call.
    unsafe {
        serve(context, error, |registry| {
            registry.block_done(&(*batch).as_ref(), block);
            Ok(())
        })
    };
}

//! The registry's interface for engines: [`Arrays`] behind a lock, and calls that run with the lock open.

use crate::arrays::{Aliased, Arrays, Detached, SpaceCopy, Step, Transfer};
use crate::copy::{self, gather};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::{
    AttachmentOps, ErrorRecord, Export, ExportRequest, Fresh, HOST_SPACE, HostMemory, Loan, Residency, Status,
    ViewSpec, access, retire, status,
};
use bh_core::component::{Counter, Host, RegistryService, SharedChild};
use bh_core::error::{Error, Result};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// The array registry of one address space, for any thread. Callbacks of engines run with the lock open, so that they
/// may call the registry.
pub struct ArrayRegistry {
    arrays: Mutex<Arrays>,
    transferred: Condvar,
    /// The arrays that rehearsals change.
    pub(crate) rehearsed: Mutex<Arrays>,
    /// The rehearsing thread, from [`this_thread`]; 0 if there is none.
    pub(crate) rehearsing: AtomicUsize,
    /// The first engine below with its own memory.
    engine: OnceLock<SharedChild>,
    region_reads: Counter,
    region_read_bytes: Counter,
    region_writes: Counter,
    region_write_bytes: Counter,
    progress: Progress,
}

/// The progress of the running batch, for observers: its blocks, and the finished ones. Both are 0 without a batch.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    blocks: Counter,
    done: Counter,
}

impl Progress {
    fn new(host: Host) -> Progress {
        Progress { blocks: host.counter("node.batch_blocks"), done: host.counter("node.batch_blocks_done") }
    }

    /// Begins a batch of `blocks` blocks; 0 ends it.
    pub(crate) fn begin(self, blocks: usize) {
        self.done.set(0);
        self.blocks.set(blocks as u64);
    }
}

impl ArrayRegistry {
    /// Without bases.
    pub fn new(host: Host) -> ArrayRegistry {
        ArrayRegistry {
            arrays: Mutex::new(Arrays::new(host)),
            transferred: Condvar::new(),
            rehearsed: Mutex::new(Arrays::new(host)),
            rehearsing: AtomicUsize::new(0),
            engine: OnceLock::new(),
            region_reads: host.counter("node.region_reads"),
            region_read_bytes: host.counter("node.region_read_bytes"),
            region_writes: host.counter("node.region_writes"),
            region_write_bytes: host.counter("node.region_write_bytes"),
            progress: Progress::new(host),
        }
    }

    /// Sets the engine below with its own memory.
    pub fn set_engine(&self, engine: SharedChild) {
        // Only the first call has an effect.
        let _ = self.engine.set(engine);
    }

    /// The progress of the running batch.
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// The engine with its own memory.
    pub fn engine(&self) -> Option<&SharedChild> {
        self.engine.get()
    }

    fn lock(&self) -> MutexGuard<'_, Arrays> {
        let arrays = if self.rehearses() { &self.rehearsed } else { &self.arrays };
        // The registry must continue after a panic: its rules never leave a state half changed.
        arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the lock and makes the deferred calls.
    #[inline]
    fn unlock(&self, mut arrays: MutexGuard<'_, Arrays>) {
        if arrays.buffers.later.is_empty() {
            return;
        }
        let later = std::mem::take(&mut arrays.buffers.later);
        drop(arrays);
        later.run();
    }

    /// Runs `work` under the lock.
    pub fn with<T>(&self, work: impl FnOnce(&mut Arrays) -> T) -> T {
        let mut arrays = self.lock();
        let result = work(&mut arrays);
        self.unlock(arrays);
        result
    }

    /// Lends a base's buffer in a space; see [`RegistryService::acquire`]. A base that cannot be copied there is lost.
    pub fn lend(&self, base: &Base, space: u32, mode: u32) -> Result<Loan> {
        self.lend_or(base, space, mode, Failed::Lost)
    }

    fn lend_or(&self, base: &Base, space: u32, mode: u32, failed: Failed) -> Result<Loan> {
        let mut arrays = self.lock();
        loop {
            match arrays.acquire(base, space, mode) {
                Ok(Step::Ready(loan)) => {
                    self.unlock(arrays);
                    return Ok(loan);
                }
                Ok(Step::Wait) => {
                    arrays = self.transferred.wait(arrays).unwrap_or_else(PoisonError::into_inner);
                }
                Ok(Step::Transfer(transfer)) => {
                    drop(arrays);
                    let copied = if self.rehearses() { Ok(()) } else { run_transfer(&transfer) };
                    let outcome = copied.map_err(|error| unreachable(base, error));
                    arrays = self.lock();
                    let is_lost = |error: &&Error| failed == Failed::Lost && error.status != status::MEMORY;
                    let lost = outcome.as_ref().err().filter(is_lost);
                    arrays.end_transfer(&transfer, outcome.is_ok(), lost);
                    self.transferred.notify_all();
                    if let Err(error) = outcome {
                        self.unlock(arrays);
                        return Err(error);
                    }
                }
                Ok(Step::Clone(clone)) => {
                    drop(arrays);
                    let nowhere = ptr::NonNull::dangling().as_ptr();
                    let outcome = if self.rehearses() { Ok(nowhere) } else { run_clone(&clone) };
                    arrays = self.lock();
                    arrays.end_clone(&clone, outcome.as_ref().ok().copied());
                    self.transferred.notify_all();
                    if let Err(error) = outcome {
                        self.unlock(arrays);
                        return Err(error);
                    }
                }
                Err(error) => {
                    self.unlock(arrays);
                    return Err(error);
                }
            }
        }
    }

    /// Makes the host copy of a base valid, or poisons the base.
    fn sync(&self, base: &Base) {
        if self.with(|arrays| arrays.is_synced(base)) {
            return;
        }
        match self.lend(base, HOST_SPACE, access::READ) {
            Ok(loan) => self.with(|arrays| arrays.release(loan.token)),
            Err(error) => self.with(|arrays| arrays.poison(base, error)),
        }
    }

    /// Starts an asynchronous copy of a view to host memory. False if the engine does not support this.
    pub fn begin_sync(&self, base: &Base, view: Option<&View>) -> bool {
        let found = self.with(|arrays| arrays.lend_attachment(base));
        let Some((loan, operations)) = found else { return self.with(|arrays| arrays.is_synced(base)) };
        if operations.prefetch.is_some() && !self.rehearses() {
            let spec = view.map(view_spec);
            let spec = spec.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: the loan keeps the attachment alive, so its functions work; the pointers live through the call.
            unsafe { operations.call_prefetch(loan.data, base, spec) };
        }
        self.with(|arrays| arrays.release(loan.token));
        operations.prefetch.is_some()
    }

    /// Performs the data management of a finished block.
    pub fn finish_block(&self, batch: &BatchRef<'_>, block: u32) {
        let Some(block) = batch.blocks.get(block as usize) else { return };
        for &index in batch.block_instrs(block) {
            let Some(instr) = batch.instrs.get(index as usize).filter(|instr| instr.opcode.is_system()) else {
                continue;
            };
            let view = instr.operands().first().and_then(|operand| operand.as_view());
            let Some(base) = view.and_then(|view| batch.base_of(view)) else { continue };
            let action = match instr.opcode {
                Opcode::Sync => retire::SYNC,
                Opcode::Free => retire::FREE,
                Opcode::Discard => retire::DISCARD,
                _ => continue,
            };
            // The only failure is a base that is known under another type, which has no data to manage.
            let _ = self.retire_base(base, action);
        }
    }

    /// Performs SYNC, FREE or DISCARD on a base.
    pub fn retire_base(&self, base: &Base, action: u32) -> Result<()> {
        match action {
            retire::SYNC => {
                // Programs read memory that stays in place without a call.
                let stays = self.with(|arrays| arrays.stays_in_place(base));
                if stays || !self.begin_sync(base, None) {
                    self.sync(base);
                }
                Ok(())
            }
            retire::FREE => self.with(|arrays| arrays.free(base)),
            retire::DISCARD => self.with(|arrays| arrays.discard(base)),
            _ => Err(Error::new(status::ARGUMENT, format!("retire: there is no action {action}"))),
        }
    }

    /// Takes a base out of all spaces.
    pub fn detach_everywhere(&self, base: &Base) -> Result<()> {
        for space in self.with(|arrays| arrays.spaces_of(base)) {
            self.detach(base, space)?;
        }
        Ok(())
    }

    /// Exports a base's data to the application.
    pub fn export(&self, base: &Base, request: &ExportRequest) -> Result<Export> {
        loop {
            let loan = self.lend(base, HOST_SPACE, access::READ)?;
            let exported = self.with(|arrays| {
                // A device may have written to the base in the meantime.
                let valid = arrays.residency(base).host == 1;
                let exported = valid.then(|| arrays.export(base, request.mode));
                arrays.release(loan.token);
                exported
            });
            if let Some(exported) = exported {
                return exported;
            }
        }
    }
}

/// The error for an array whose newest copy cannot be read.
fn unreachable(base: &Base, error: Error) -> Error {
    let (id, dtype, len) = (base.id, base.dtype(), base.len);
    let text = format!("the newest copy of base {id}, {dtype}[{len}], cannot be read: {}", error.text);
    Error { text, ..error }
}

/// The treatment of an array whose only copy cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failed {
    /// It is poisoned.
    Lost,
    /// It stays in its space.
    Kept,
}

/// A view in the form of the ABI.
fn view_spec(view: &View) -> ViewSpec {
    let (shape, stride) = (view.shape().as_ptr(), view.stride().as_ptr());
    ViewSpec { start: view.start(), shape, stride, rank: view.rank() as u32 }
}

/// The result of a call of an engine.
fn checked(code: Status, record: &ErrorRecord) -> Result<()> {
    if code == status::OK { Ok(()) } else { Err(Error::read(code, record)) }
}

/// Copies from an engine's space to host memory.
fn run_transfer(transfer: &Transfer) -> Result<()> {
    let operations = &transfer.operations;
    let mut record = ErrorRecord::empty();
    let Some((base, view)) = &transfer.part else {
        // SAFETY: the attachment is referenced, so its functions work, and the buffer has `bytes` bytes.
        let code =
            unsafe { operations.call_to_host(transfer.handle, transfer.data.cast(), transfer.bytes, &mut record) };
        return checked(code, &record);
    };
    if operations.read.is_some() {
        let (stride, rank) = dense(view, base.dtype().size() as i64);
        // SAFETY: the buffer has space for the view's elements, packed.
        let memory = unsafe { HostMemory::new(transfer.data, &stride[..rank]) };
        // SAFETY: the attachment is referenced, so its functions work; the pointers live through the call.
        let code = unsafe { operations.call_read(transfer.handle, base, &view_spec(view), &memory, &mut record) };
        return checked(code.unwrap_or(status::OK), &record);
    }
    let bytes = base.bytes() as usize;
    let mut whole: Vec<u8> = Vec::new();
    let short = |_| Error::new(status::MEMORY, format!("out of memory: {bytes} bytes for a copy of base {}", base.id));
    whole.try_reserve_exact(bytes).map_err(short)?;
    // SAFETY: the vector has capacity for the whole base, which `call_to_host` writes; `alias` checked the view against
    // the base.
    unsafe {
        let data = whole.as_mut_ptr();
        let code = operations.call_to_host(transfer.handle, data.cast(), bytes, &mut record);
        checked(code, &record)?;
        gather(view, base.dtype().size(), data, transfer.data);
    }
    Ok(())
}

/// Byte strides in C order, and the number of dimensions.
fn dense(view: &View, size: i64) -> ([i64; bh_bytecode::MAX_RANK], usize) {
    let mut stride = [0; bh_bytecode::MAX_RANK];
    let mut step = size;
    for dim in (0..view.rank()).rev() {
        stride[dim] = step;
        step *= view.shape()[dim].max(1);
    }
    (stride, view.rank())
}

/// Copies a part of an attachment within its space; returns the copy's handle.
fn run_clone(clone: &SpaceCopy) -> Result<*mut c_void> {
    let (base, view) = &clone.part;
    let mut record = ErrorRecord::empty();
    let mut copy = ptr::null_mut();
    // SAFETY: the attachment is referenced, so its functions work; the pointers live through the call.
    let code = unsafe { clone.operations.call_clone(clone.handle, base, &view_spec(view), &mut copy, &mut record) };
    let Some(code) = code else {
        return Err(Error::new(status::UNSUPPORTED, "the engine cannot copy within its memory"));
    };
    checked(code, &record)?;
    if copy.is_null() {
        return Err(Error::new(status::DEVICE, "an engine made a copy without a handle"));
    }
    Ok(copy)
}

/// Checks a view against its base and against a place in host memory.
fn check_region(base: &Base, view: &View, memory: &HostMemory, what: &str) -> Result<()> {
    if !view.fits(base.len) {
        return Err(Error::new(status::BOUNDS, format!("{what}: the view leaves base {}", base.id)));
    }
    if memory.stride().len() != view.rank() {
        let (found, wanted) = (memory.stride().len(), view.rank());
        return Err(Error::new(status::ARGUMENT, format!("{what}: {found} strides for {wanted} dimensions")));
    }
    Ok(())
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
        loop {
            match self.with(|arrays| arrays.alias(alias, base, view))? {
                Aliased::Done => return Ok(()),
                Aliased::NeedsHost => {
                    let loan = self.lend(base, HOST_SPACE, access::READ)?;
                    self.with(|arrays| arrays.release(loan.token));
                }
            }
        }
    }

    unsafe fn attach(
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
        if !self.rehearses() {
            self.progress.done.add(1);
        }
    }

    fn retire(&self, base: &Base, action: u32) -> Result<()> {
        self.retire_base(base, action)
    }

    fn detach(&self, base: &Base, space: u32) -> Result<()> {
        loop {
            match self.with(|arrays| arrays.detach(base, space))? {
                Detached::Done => return Ok(()),
                Detached::NeedsHost(only) => {
                    let loan = self.lend_or(&only, HOST_SPACE, access::READ, Failed::Kept)?;
                    self.with(|arrays| arrays.release(loan.token));
                }
            }
        }
    }

    fn residency(&self, base: &Base) -> Residency {
        self.with(|arrays| arrays.residency(base))
    }

    fn read(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        check_region(base, view, memory, "read")?;
        if let Some((loan, operations)) = self.with(|arrays| arrays.lend_attachment(base)) {
            let mut record = ErrorRecord::empty();
            // SAFETY: the loan keeps the attachment alive, so its functions work; the pointers live through the call.
            let code = unsafe { operations.call_read(loan.data, base, &view_spec(view), memory, &mut record) };
            let outcome = code.map(|code| checked(code, &record));
            self.with(|arrays| arrays.release(loan.token));
            if let Some(outcome) = outcome {
                self.region_reads.add(1);
                self.region_read_bytes.add(view.len() as u64 * base.dtype().size() as u64);
                return outcome;
            }
        }
        let loan = self.lend(base, HOST_SPACE, access::READ)?;
        // SAFETY: the loan holds the whole base, `check_region` checked the view, and `memory` is writable for its
        // elements without overlaps, as [`HostMemory::new`] requires.
        unsafe { copy::load(base.dtype(), view, loan.data.cast(), memory) };
        self.with(|arrays| arrays.release(loan.token));
        Ok(())
    }

    fn write(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        check_region(base, view, memory, "write")?;
        let whole = view.len() == base.len;
        if !whole && let Some(space) = self.with(|arrays| arrays.writable_space(base)) {
            let loan = self.lend(base, space, access::WRITE)?;
            if !loan.data.is_null() {
                let operations = self.with(|arrays| arrays.operations_of(&loan));
                let mut record = ErrorRecord::empty();
                let code = operations.and_then(|operations| {
                    // SAFETY: the loan keeps the attachment alive, so its functions work; the pointers live through the
                    // call.
                    unsafe { operations.call_write(loan.data, base, &view_spec(view), memory, &mut record) }
                });
                self.with(|arrays| arrays.release(loan.token));
                // Engines may refuse to write to memory that others rely on.
                if let Some(code) = code.filter(|&code| code != status::UNSUPPORTED) {
                    self.region_writes.add(1);
                    self.region_write_bytes.add(view.len() as u64 * base.dtype().size() as u64);
                    return checked(code, &record);
                }
            }
        }
        let mode = if whole { access::WRITE | access::DISCARD } else { access::WRITE };
        let loan = self.lend(base, HOST_SPACE, mode)?;
        // SAFETY: the loan holds the whole base, `check_region` checked the view, and `memory` is readable for its
        // elements without overlaps, as [`HostMemory::new`] requires.
        unsafe { copy::store(base.dtype(), view, loan.data.cast(), memory) };
        self.with(|arrays| arrays.release(loan.token));
        Ok(())
    }
}

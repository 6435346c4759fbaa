//! Device memory: buffers that are kept for reuse, within a limit.

use crate::code::Target;
use crate::device::Class;
use crate::driver::{Buffer, Event, Region};
use crate::gpu::Gpu;
use crate::programs::Programs;
use crate::settings::Settings;
use crate::staging::Staging;
use bh_core::abi::{ReleaseFn, status};
use bh_core::{Counter, Error, Host, Result};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of a device, and what moves data in it.
pub(crate) struct Pool {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) programs: Programs,
    pub(crate) target: Target,
    state: Mutex<State>,
    pub(crate) limit: u64,
    /// Bytes of a piece of pinned memory, 0 for none; transfers of more than that go through it.
    piece: usize,
    staging: Mutex<Option<Staging>>,
    allocations: Counter,
    peak: Counter,
}

/// Bytes of the largest pattern that drivers fill memory with.
const PATTERN: usize = 16;

/// Bytes of a piece of pinned memory, unless a key says otherwise.
const PIECE: usize = 16 << 20;

#[derive(Default)]
struct State {
    /// Free buffers by their bytes.
    free: BTreeMap<usize, Vec<Box<dyn Buffer>>>,
    free_bytes: u64,
    used_bytes: u64,
}

/// The bytes that another device's copy reads, and the event of its end.
type Copied = (Range<usize>, Arc<dyn Event>);

/// A buffer of the device; it goes back to the pool when nobody has it any more. Commands in the queue that use it come
/// before those of its next user, as the queue is in order.
pub(crate) struct Memory {
    buffer: Option<Box<dyn Buffer>>,
    capacity: usize,
    pub(crate) pool: Arc<Pool>,
    /// Whose it is, if it is the program's.
    owner: Option<Owner>,
    /// How many rely on its content: while there are any, nobody writes to it.
    readers: AtomicU32,
    /// Does the program use it, too?
    shared: AtomicBool,
    /// Copies by other devices of these bytes, and when they are done.
    copied: Mutex<Vec<Copied>>,
}

/// Copies by other devices that are remembered before those that are done are forgotten.
const COPIED: usize = 8;

/// The program, which gets its buffer back.
struct Owner {
    release: Option<ReleaseFn>,
    argument: *mut c_void,
    handle: *mut c_void,
}

// SAFETY: the program's function may be called on any thread.
unsafe impl Send for Owner {}
// SAFETY: nothing is changed through a shared reference.
unsafe impl Sync for Owner {}

impl Pool {
    pub(crate) fn new(
        gpu: Arc<Gpu>,
        programs: Programs,
        target: Target,
        settings: &Settings,
        host: &Host,
    ) -> Arc<Pool> {
        let limit = settings.memory.unwrap_or(gpu.facts.global_bytes / 10 * 9);
        let (allocations, peak) = (host.counter("device allocations"), host.counter("device peak_bytes"));
        let own = if gpu.facts.class == Class::Cpu { 0 } else { PIECE };
        let (piece, staging) = (settings.staging.unwrap_or(own), Mutex::default());
        Arc::new(Pool { gpu, programs, target, state: Mutex::default(), limit, piece, staging, allocations, peak })
    }

    /// Runs `staged` with pinned memory if a transfer of this many bytes goes through it and there is some, else `direct`.
    fn transfer(
        &self,
        bytes: usize,
        staged: impl FnOnce(&mut Staging) -> Result<()>,
        direct: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.piece == 0 || bytes < self.piece {
            return direct();
        }
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if staging.is_none() {
            *staging = Staging::new(&*self.gpu.driver, self.piece);
        }
        staging.as_mut().map_or_else(direct, staged)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in use and bytes kept for reuse.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let state = self.lock();
        (state.used_bytes, state.free_bytes)
    }

    /// A buffer of at least this many bytes. Fails if the limit would be passed or the device has none.
    pub(crate) fn take(self: &Arc<Pool>, bytes: usize) -> Result<Memory> {
        let capacity = capacity(bytes);
        let mut state = self.lock();
        let found = state.free.get_mut(&capacity).and_then(Vec::pop);
        let buffer = match found {
            Some(buffer) => {
                state.free_bytes -= capacity as u64;
                buffer
            }
            None => self.allocate(&mut state, capacity)?,
        };
        state.used_bytes += capacity as u64;
        self.peak.raise(state.used_bytes);
        Ok(Memory {
            buffer: Some(buffer),
            capacity,
            pool: self.clone(),
            owner: None,
            readers: AtomicU32::new(0),
            shared: AtomicBool::new(false),
            copied: Mutex::default(),
        })
    }

    fn allocate(&self, state: &mut State, capacity: usize) -> Result<Box<dyn Buffer>> {
        if state.used_bytes + state.free_bytes + capacity as u64 > self.limit {
            state.free.clear();
            state.free_bytes = 0;
        }
        let full = |why: String| {
            Error::new(status::MEMORY, format!("out of device memory: cannot allocate {capacity} bytes: {why}"))
        };
        if state.used_bytes + capacity as u64 > self.limit {
            return Err(full(format!("{} of {} are in use", state.used_bytes, self.limit)));
        }
        if capacity as u64 > self.gpu.facts.largest_bytes {
            return Err(full(format!("one buffer has at most {}", self.gpu.facts.largest_bytes)));
        }
        self.allocations.add(1);
        let create = || self.gpu.driver.allocate(capacity);
        create().or_else(|_| {
            // The driver may lack just the memory that is kept for reuse.
            state.free.clear();
            state.free_bytes = 0;
            self.gpu.finish()?;
            create().map_err(|why| full(why.text))
        })
    }
}

impl Region {
    pub(crate) fn bytes(&self) -> u64 {
        self.len as u64 * self.rows as u64
    }

    /// Brings the region of host memory to the same place of the device's.
    pub(crate) fn upload(&self, memory: &Memory, bytes: &[u8]) -> Result<()> {
        if self.rows == 1 {
            return memory.upload_at(self.first, bytes.get(self.first..self.first + self.len).ok_or_else(failed_copy)?);
        }
        memory.upload_rows(self, bytes)
    }
}

/// Bytes are rounded up, so that similar sizes share buffers: to an eighth of a power of two.
pub(crate) fn capacity(bytes: usize) -> usize {
    let step = (bytes.max(256).next_power_of_two() / 16).max(256);
    bytes.max(1).next_multiple_of(step)
}

impl Memory {
    /// A buffer of the program, to which `release` is called with these arguments when it is no longer used.
    pub(crate) fn adopted(
        buffer: Box<dyn Buffer>,
        pool: Arc<Pool>,
        release: Option<ReleaseFn>,
        argument: *mut c_void,
        handle: *mut c_void,
    ) -> Memory {
        let owner = Some(Owner { release, argument, handle });
        Memory {
            buffer: Some(buffer),
            capacity: 0,
            pool,
            owner,
            readers: AtomicU32::new(0),
            shared: AtomicBool::new(false),
            copied: Mutex::default(),
        }
    }

    /// Somebody relies on the content, until [`Memory::end_reading`].
    pub(crate) fn begin_reading(&self) {
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    /// One user of the content no longer relies on it.
    pub(crate) fn end_reading(&self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }

    /// From now on, the program uses it, too.
    pub(crate) fn share(&self) {
        self.shared.store(true, Ordering::Relaxed);
    }

    /// Waits for what the program has asked of it, if it is the program's, too.
    pub(crate) fn settle(&self) -> Result<()> {
        if self.shared.load(Ordering::Relaxed) { self.pool.gpu.driver.settle() } else { Ok(()) }
    }

    /// Is it the pool's, so that nobody but the engine writes to it?
    pub(crate) fn is_own(&self) -> bool {
        self.owner.is_none() && !self.shared.load(Ordering::Relaxed)
    }

    /// Another device copies these bytes, until an event.
    pub(crate) fn read_until(&self, place: Range<usize>, done: Arc<dyn Event>) {
        let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        if copied.len() >= COPIED {
            copied.retain(|(_, event)| !event.is_done());
        }
        copied.push((place, done));
    }

    /// Delays later commands until no other device copies these bytes.
    pub(crate) fn before_writing(&self, place: Range<usize>) -> Result<()> {
        let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        let mut outcome = Ok(());
        copied.retain(|(other, event)| {
            let apart = other.end <= place.start || place.end <= other.start;
            if !apart && outcome.is_ok() {
                outcome = self.wait_for(&**event);
            }
            apart
        });
        outcome
    }

    /// Lets the queue wait for an event of another device, or waits for it where it cannot.
    fn wait_for(&self, event: &dyn Event) -> Result<()> {
        let begun = self.pool.gpu.driver.peers().map(|peers| peers.wait_for(event));
        begun.filter(Result::is_ok).unwrap_or_else(|| event.wait("waiting for another device"))
    }

    /// Does anybody rely on the content, so that who writes takes other memory?
    pub(crate) fn is_read_only(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// Leaves the program its buffer, as if it had never been adopted.
    pub(crate) fn refused(mut self) {
        if let Some(owner) = &mut self.owner {
            owner.release = None;
        }
    }

    /// Copies the first bytes to other memory, in the queue's order.
    pub(crate) fn copy_to(&self, other: &Memory, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.pool.gpu.usable()?;
        // SAFETY: both buffers have these bytes.
        unsafe { self.pool.gpu.driver.copy(self.buffer(), other.buffer(), bytes) }
    }

    /// Bytes that it takes of the pool.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    /// The driver's buffer.
    pub(crate) fn buffer(&self) -> &dyn Buffer {
        self.buffer.as_deref().expect("a buffer is there until it is dropped")
    }

    /// Copies bytes to the begin of the buffer, and returns when they may change.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<()> {
        self.upload_at(0, bytes)
    }

    /// Copies bytes to the buffer from `offset` on, and returns when they may change.
    pub(crate) fn upload_at(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let gpu = &self.pool.gpu;
        gpu.usable()?;
        // SAFETY: the buffer has at least these bytes.
        let direct = || unsafe { gpu.driver.upload(self.buffer(), offset, bytes) };
        self.pool.transfer(bytes.len(), |staging| staging.upload(&*gpu.driver, self.buffer(), offset, bytes), direct)
    }

    /// Copies rows of host memory to the same places of the buffer, and returns when they may change.
    pub(crate) fn upload_rows(&self, region: &Region, bytes: &[u8]) -> Result<()> {
        let &Region { first, len, rows, pitch } = region;
        if first + (rows - 1) * pitch + len > bytes.len() || bytes.len() > self.capacity {
            return Err(failed_copy());
        }
        let gpu = &self.pool.gpu;
        gpu.usable()?;
        // SAFETY: host memory and the buffer have all rows, as was looked at.
        unsafe { gpu.driver.upload_rows(self.buffer(), region, bytes) }
    }

    /// Copies bytes of the buffer from `offset` on to host memory, after everything that is in the queue.
    pub(crate) fn download_at(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let gpu = &self.pool.gpu;
        gpu.usable()?;
        let len = bytes.len();
        let bytes = std::cell::RefCell::new(bytes);
        // SAFETY: the buffer has these bytes.
        let direct = || unsafe { gpu.driver.download(self.buffer(), offset, &mut bytes.borrow_mut()) };
        let staged =
            |staging: &mut Staging| staging.download(&*gpu.driver, self.buffer(), offset, &mut bytes.borrow_mut());
        self.pool.transfer(len, staged, direct)
    }

    /// Begins to copy bytes of the buffer from `offset` on to pinned memory, or from there if it `writes`; the event says when that is
    /// done.
    ///
    /// # Safety
    /// `data` must lead to `len` bytes, which stay where they are until the event has come, and nobody else use them meanwhile:
    /// not write them where `writes` is true, and not read them either where it is false.
    pub(crate) unsafe fn begin_move(
        &self,
        offset: usize,
        (data, len): (*mut u8, usize),
        writes: bool,
    ) -> Result<Arc<dyn Event>> {
        let gpu = &self.pool.gpu;
        gpu.usable()?;
        if self.capacity > 0 && offset + len > self.capacity {
            return Err(failed_copy());
        }
        // SAFETY: the buffer has these bytes, and the others stay where they are, for this alone as far as it writes to them,
        // until the event has come, as `# Safety` asks.
        unsafe {
            match writes {
                true => gpu.driver.begin_upload(self.buffer(), offset, data, len),
                false => gpu.driver.begin_download(self.buffer(), offset, data, len),
            }
        }
    }

    /// Fills the first bytes, a multiple of four, with zeros.
    pub(crate) fn clear(&self, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.pool.gpu.usable()?;
        // Drivers fill whole patterns several times as fast, which buffers of the pool have.
        let bytes = if self.capacity > 0 { bytes.next_multiple_of(PATTERN) } else { bytes };
        // SAFETY: the buffer has at least these bytes.
        unsafe { self.pool.gpu.driver.clear(self.buffer(), bytes) }
    }
}

/// The error of a copy that leaves its memory.
pub(crate) fn failed_copy() -> Error {
    Error::new(status::DEVICE, "a copy to the device leaves its memory")
}

impl Drop for Memory {
    fn drop(&mut self) {
        // The buffer's next user writes to it.
        let _ = self.before_writing(0..usize::MAX);
        let Some(buffer) = self.buffer.take() else { return };
        if let Some(Owner { release, argument, handle }) = self.owner.take() {
            // The queue's work on it comes before the program's.
            let _ = if self.pool.gpu.driver.shares_queue() { Ok(()) } else { self.pool.gpu.finish() };
            drop(buffer);
            if let Some(release) = release {
                // SAFETY: the program's function, with its own arguments, once.
                unsafe { release(argument, handle) };
            }
            return;
        }
        let mut state = self.pool.lock();
        state.used_bytes -= self.capacity as u64;
        state.free_bytes += self.capacity as u64;
        state.free.entry(self.capacity).or_default().push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::capacity;

    #[test]
    fn similar_sizes_share_buffers() {
        assert_eq!([0, 1, 256, 257].map(capacity), [256, 256, 256, 512]);
        assert_eq!(capacity((1 << 20) + 1), (1 << 20) + (1 << 17));
        assert!((1..5000).all(|bytes| capacity(bytes) >= bytes));
    }
}

//! The slots of the private heap: copies of bases that only queued tasks and the registry's callbacks use.

use crate::bytes::Bytes;
use crate::heap::{Heap, Task};
use bh_bytecode::{DType, View};
use bh_core::abi::{HostMemory, status};
use bh_core::component::Attachment;
use bh_core::error::{Error, Result};
use bh_core::strided;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The content of a slot.
pub struct Content {
    pub bytes: Arc<Bytes>,
    /// Queued tasks that will change it.
    pub writers: u32,
    /// Queued tasks that will read it.
    pub readers: u32,
    /// The error that lost its content.
    pub error: Option<Error>,
}

/// A copy of a base. The registry's attachment holds one reference, every queued task another.
pub struct Slot {
    content: Mutex<Content>,
    settled: Condvar,
}

impl Slot {
    /// A slot for `bytes` bytes that a task will fill.
    pub fn new(bytes: usize) -> Arc<Slot> {
        Slot::holding(Bytes::Own(vec![0; bytes]))
    }

    /// A slot with content.
    pub fn holding(bytes: Bytes) -> Arc<Slot> {
        let content = Content { bytes: Arc::new(bytes), writers: 0, readers: 0, error: None };
        Arc::new(Slot { content: Mutex::new(content), settled: Condvar::new() })
    }

    /// A slot whose content was lost before it arrived.
    pub fn lost(bytes: usize, error: Error) -> Arc<Slot> {
        let slot = Slot::new(bytes);
        slot.lock().error = Some(error);
        slot
    }

    /// The content, even if tasks will change it.
    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content after all changes by queued tasks, unless it is lost.
    fn settled(&self) -> Result<MutexGuard<'_, Content>> {
        let content = self.lock();
        let waited = self.settled.wait_while(content, |content| content.writers > 0);
        let content = waited.unwrap_or_else(PoisonError::into_inner);
        match &content.error {
            Some(error) => Err(error.clone()),
            None => Ok(content),
        }
    }

    /// The same after all queued reads, so that it can be changed.
    fn idle(&self) -> Result<MutexGuard<'_, Content>> {
        let content = self.lock();
        let busy = |content: &mut Content| content.writers + content.readers > 0;
        let waited = self.settled.wait_while(content, busy);
        let content = waited.unwrap_or_else(PoisonError::into_inner);
        match &content.error {
            Some(error) => Err(error.clone()),
            None => Ok(content),
        }
    }

    /// Ends a task's claim to change it, with the result.
    pub fn settle(&self, outcome: Result<Vec<u8>>) {
        let mut content = self.lock();
        content.writers -= 1;
        let mut old = None;
        match outcome {
            Ok(bytes) => {
                old = Some(std::mem::replace(&mut content.bytes, Arc::new(Bytes::Own(bytes))));
                content.error = None;
            }
            Err(error) => content.error = Some(error),
        }
        drop(content);
        self.settled.notify_all();
        // Dropped without a lock, because this may call the application.
        drop(old);
    }

    /// The bytes after all changes by queued tasks; later changes go to a copy.
    pub fn hold(&self) -> Result<Arc<Bytes>> {
        Ok(self.settled()?.bytes.clone())
    }

    /// Ends a task's claim to read it.
    pub fn end_read(&self) {
        self.lock().readers -= 1;
        self.settled.notify_all();
    }
}

impl Attachment for Slot {
    type Shared = Heap;

    fn to_host(self: &Arc<Self>, heap: &Heap, target: &mut [u8]) -> Result<()> {
        let content = self.settled()?;
        if content.bytes.len() != target.len() {
            let text = format!("a copy of {} bytes was asked for {}", content.bytes.len(), target.len());
            return Err(Error::new(status::DEVICE, text));
        }
        heap.counters.downloads.add(1);
        target.copy_from_slice(&content.bytes);
        Ok(())
    }

    unsafe fn read(self: &Arc<Self>, heap: &Heap, dtype: DType, view: &View, memory: &HostMemory) -> Result<()> {
        let content = self.settled()?;
        heap.counters.region_reads.add(1);
        // SAFETY: the view is within the base, whose bytes the content has, and `memory` is writable for it, as
        // [`Attachment::read`] requires.
        unsafe { strided::load(dtype, view, content.bytes.as_ptr(), memory) };
        Ok(())
    }

    unsafe fn write(self: &Arc<Self>, heap: &Heap, dtype: DType, view: &View, memory: &HostMemory) -> Result<()> {
        let mut content = self.idle()?;
        heap.counters.region_writes.add(1);
        // SAFETY: the view is within the base, whose bytes the content has, and `memory` is readable for it, as
        // [`Attachment::write`] requires.
        let store = |bytes: &mut [u8]| unsafe { strided::store(dtype, view, bytes.as_mut_ptr(), memory) };
        let old = Bytes::change(&mut content.bytes, store);
        drop(content);
        drop(old);
        Ok(())
    }

    /// There is nothing to prefetch to; the call is counted.
    fn prefetch(self: &Arc<Self>, heap: &Heap) {
        heap.counters.prefetches.add(1);
    }

    fn duplicate(self: &Arc<Self>, heap: &Heap, dtype: DType, view: &View) -> Result<Arc<Self>> {
        let bytes = view.len() as usize * dtype.size();
        let to = Slot::new(bytes);
        self.lock().readers += 1;
        to.lock().writers += 1;
        heap.push(Task::Clone { from: self.clone(), to: to.clone(), dtype, view: Box::new(*view) });
        heap.counters.clones.add(1);
        heap.attached(bytes);
        Ok(to)
    }

    fn detached(self: Arc<Self>, heap: &Heap) {
        heap.detached(self.lock().bytes.len());
    }
}

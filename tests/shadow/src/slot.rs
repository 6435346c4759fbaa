//! The private heap: copies of bases that only tasks of the queue and the registry's callbacks touch.

use crate::bytes::Bytes;
use crate::heap::{Heap, Task};
use bh_bytecode::{DType, View};
use bh_core::abi::{HostMemory, status};
use bh_core::component::Attachment;
use bh_core::error::{Error, Result};
use bh_core::strided;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a slot holds.
pub struct Content {
    pub bytes: Arc<Bytes>,
    /// Tasks in the queue that will change it.
    pub writers: u32,
    /// Tasks in the queue that will read it.
    pub readers: u32,
    /// What it should hold was lost.
    pub error: Option<Error>,
}

/// A copy of a base. The registry holds one reference through the attachment, every task in the queue another.
pub struct Slot {
    content: Mutex<Content>,
    settled: Condvar,
}

impl Slot {
    /// Room for `bytes` bytes, which a task is going to fill.
    pub fn new(bytes: usize) -> Arc<Slot> {
        Slot::holding(Bytes::Own(vec![0; bytes]))
    }

    /// A copy that is there.
    pub fn holding(bytes: Bytes) -> Arc<Slot> {
        let content = Content { bytes: Arc::new(bytes), writers: 0, readers: 0, error: None };
        Arc::new(Slot { content: Mutex::new(content), settled: Condvar::new() })
    }

    /// A copy that was lost before it came here.
    pub fn lost(bytes: usize, error: Error) -> Arc<Slot> {
        let slot = Slot::new(bytes);
        slot.lock().error = Some(error);
        slot
    }

    /// The content, whatever is still to come.
    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content once no task will change it any more, unless it is lost.
    fn settled(&self) -> Result<MutexGuard<'_, Content>> {
        let content = self.lock();
        let waited = self.settled.wait_while(content, |content| content.writers > 0);
        let content = waited.unwrap_or_else(PoisonError::into_inner);
        match &content.error {
            Some(error) => Err(error.clone()),
            None => Ok(content),
        }
    }

    /// The same once no task reads it either, so that it can be changed.
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

    /// Ends a task's claim to change it.
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
        // The application hears of the end of its memory with no lock held.
        drop(old);
    }

    /// The bytes that it has once no task will change it any more; they stay as they are.
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
        // SAFETY: the view lies in the base, whose bytes the content has, and `memory` is writable for it, as
        // [`Attachment::read`] asks.
        unsafe { strided::load(dtype, view, content.bytes.as_ptr(), memory) };
        Ok(())
    }

    unsafe fn write(self: &Arc<Self>, heap: &Heap, dtype: DType, view: &View, memory: &HostMemory) -> Result<()> {
        let mut content = self.idle()?;
        heap.counters.region_writes.add(1);
        // SAFETY: the view lies in the base, whose bytes the content has, and `memory` is readable for it, as
        // [`Attachment::write`] asks.
        let store = |bytes: &mut [u8]| unsafe { strided::store(dtype, view, bytes.as_mut_ptr(), memory) };
        let old = Bytes::change(&mut content.bytes, store);
        drop(content);
        drop(old);
        Ok(())
    }

    /// The heap is as near to the host as it gets; that the wish arrived is counted.
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

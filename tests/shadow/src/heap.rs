//! The device: a private heap of limited size, and one thread that runs tasks in order.

use crate::job::Job;
use crate::slot::Slot;
use bh_bytecode::{DType, View};
use bh_core::abi::{HostMemory, status};
use bh_core::component::{Counter, Host, Loan};
use bh_core::error::{Error, Result};
use bh_core::strided;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A task of the thread.
pub enum Task {
    /// Runs a block.
    Block(Job),
    /// Copies a base from host memory, whose content does not change until then.
    Upload {
        /// The whole base.
        from: Loan,
        to: Arc<Slot>,
    },
    /// Copies the elements of a view within the heap.
    Clone { from: Arc<Slot>, to: Arc<Slot>, dtype: DType, view: Box<View> },
}

/// The engine's counters.
pub struct Counters {
    pub uploads: Counter,
    pub downloads: Counter,
    pub region_reads: Counter,
    pub region_writes: Counter,
    pub prefetches: Counter,
    pub clones: Counter,
    pub evictions: Counter,
    pub adoptions: Counter,
    pub lendings: Counter,
    /// The most tickets open at the same time.
    pub most_tickets: Counter,
}

/// The heap and its thread.
pub struct Heap {
    /// Bytes that the registry knows on the heap.
    bytes: AtomicUsize,
    sender: Mutex<Option<Sender<Task>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pub counters: Counters,
}

impl Heap {
    /// An empty heap, with its thread.
    pub fn start(host: &Host) -> Result<Arc<Heap>> {
        let (sender, receiver) = channel::<Task>();
        let thread = std::thread::Builder::new()
            .name("bh-shadow".into())
            .spawn(move || receiver.iter().for_each(carry_out))
            .map_err(|error| Error::new(status::INIT, format!("the shadow engine's thread did not start: {error}")))?;
        let counters = Counters {
            uploads: host.counter("uploads"),
            downloads: host.counter("downloads"),
            region_reads: host.counter("region reads"),
            region_writes: host.counter("region writes"),
            prefetches: host.counter("prefetches"),
            clones: host.counter("clones"),
            evictions: host.counter("evictions"),
            adoptions: host.counter("adoptions"),
            lendings: host.counter("lendings"),
            most_tickets: host.counter("most tickets"),
        };
        let (sender, thread) = (Mutex::new(Some(sender)), Mutex::new(Some(thread)));
        Ok(Arc::new(Heap { bytes: AtomicUsize::new(0), sender, thread, counters }))
    }

    /// Bytes that the registry knows on the heap.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Records that the registry has taken a copy.
    pub fn attached(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records that the registry has dropped a copy.
    pub fn detached(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Appends a task. Without a thread it fails immediately.
    pub fn push(&self, task: Task) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let returned = match &*sender {
            Some(sender) => sender.send(task).err().map(|unsent| unsent.0),
            None => Some(task),
        };
        if let Some(task) = returned {
            let error = Error::new(status::DEVICE, "the shadow engine's thread has ended");
            match task {
                Task::Block(job) => job.fail(&error),
                Task::Upload { to, .. } | Task::Clone { to, .. } => to.settle(Err(error)),
            }
        }
    }

    /// Ends the thread after its tasks.
    pub fn stop(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The runtime has printed the thread's panic; nothing is left to do.
            let _ = thread.join();
        }
    }
}

fn carry_out(task: Task) {
    match task {
        Task::Block(job) => job.run(),
        Task::Upload { from, to } => {
            let mut bytes = vec![0u8; from.bytes()];
            // SAFETY: the loan holds the whole base, which does not change during the loan.
            unsafe { std::ptr::copy_nonoverlapping(from.data().cast_const().cast(), bytes.as_mut_ptr(), bytes.len()) };
            drop(from);
            to.settle(Ok(bytes));
        }
        Task::Clone { from, to, dtype, view } => {
            let content = from.lock();
            let copied = match &content.error {
                Some(error) => Err(error.clone()),
                None => Ok(dense(&content.bytes, dtype, &view)),
            };
            drop(content);
            to.settle(copied);
            from.end_read();
        }
    }
}

/// The elements of a view in C order.
fn dense(bytes: &[u8], dtype: DType, view: &View) -> Vec<u8> {
    let mut copy = vec![0u8; view.len() as usize * dtype.size()];
    let mut stride = vec![0i64; view.rank()];
    let mut step = dtype.size() as i64;
    for (stride, extent) in stride.iter_mut().zip(view.shape()).rev() {
        *stride = step;
        step *= extent.max(&1);
    }
    // SAFETY: the copy has space for the view's elements in C order, and the registry only gives views that fit their
    // base.
    unsafe { strided::load(dtype, view, bytes.as_ptr(), &HostMemory::new(copy.as_mut_ptr(), &stride)) };
    copy
}

/// The state of a ticket.
#[derive(Default)]
pub struct Work {
    state: Mutex<WorkState>,
    finished: Condvar,
}

#[derive(Default)]
struct WorkState {
    open: usize,
    first_error: Option<Error>,
}

impl Work {
    /// Adds a job.
    pub fn open(&self) {
        self.lock().open += 1;
    }

    /// Keeps the first error.
    pub fn fail(&self, error: &Error) {
        self.lock().first_error.get_or_insert_with(|| error.clone());
    }

    /// Ends a job.
    pub fn close(&self) {
        self.lock().open -= 1;
        self.finished.notify_all();
    }

    /// Have all jobs ended?
    pub fn is_done(&self) -> bool {
        self.lock().open == 0
    }

    /// Waits for all jobs; returns the first error.
    pub fn wait(&self) -> Result<()> {
        let state = self.finished.wait_while(self.lock(), |state| state.open > 0);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.first_error.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The queue: one thread that runs jobs in order, and the tickets that wait for them.

use crate::slot::Slot;
use bh_bytecode::Batch;
use bh_bytecode::interp::Memory;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A base as a job sees it.
pub struct JobBase {
    /// Index in the batch.
    pub base: u32,
    pub slot: Arc<Slot>,
    pub writes: bool,
}

/// One block to run.
pub struct Job {
    pub batch: Arc<Batch>,
    pub block: u32,
    pub bases: Vec<JobBase>,
    pub delay: Duration,
    /// The instruction that fails by script.
    pub failing: Option<u32>,
    pub ticket: Arc<Work>,
}

/// What a ticket stands for.
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
    /// Keeps the first error.
    pub fn fail(&self, error: &Error) {
        self.lock().first_error.get_or_insert_with(|| error.clone());
    }

    fn close(&self) {
        self.lock().open -= 1;
        self.finished.notify_all();
    }

    /// Waits for all jobs; the first error.
    pub fn wait(&self) -> Result<()> {
        let state = self.finished.wait_while(self.lock(), |state| state.open > 0);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.first_error.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread and the way to it.
pub struct Queue {
    sender: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    tickets: HashMap<u64, Arc<Work>>,
    last_ticket: u64,
}

impl Queue {
    /// Starts the thread.
    pub fn start() -> Result<Queue> {
        let (sender, receiver) = channel::<Job>();
        let thread = std::thread::Builder::new()
            .name("bh-shadow".into())
            .spawn(move || receiver.iter().for_each(run))
            .map_err(|error| Error::new(status::INIT, format!("the shadow engine's thread did not start: {error}")))?;
        Ok(Queue { sender: Some(sender), thread: Some(thread), tickets: HashMap::new(), last_ticket: 0 })
    }

    /// A new ticket.
    pub fn ticket(&mut self) -> (u64, Arc<Work>) {
        self.last_ticket += 1;
        let work = Arc::new(Work::default());
        self.tickets.insert(self.last_ticket, work.clone());
        (self.last_ticket, work)
    }

    /// Appends a job. Without a thread the job fails at once.
    pub fn push(&self, job: Job) {
        job.ticket.lock().open += 1;
        let returned = match &self.sender {
            Some(sender) => sender.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        if let Some(job) = returned {
            finish(&job, Err(Error::new(status::DEVICE, "the shadow engine's thread has ended")));
        }
    }

    /// Waits for a ticket, once.
    pub fn wait(&mut self, ticket: u64) -> Result<()> {
        match self.tickets.remove(&ticket) {
            Some(work) => work.wait(),
            None => Err(Error::new(status::HANDLE, format!("there is no ticket {ticket}"))),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported on standard error by the runtime; nothing is left to save.
            let _ = thread.join();
        }
    }
}

/// Runs one job: inputs from their slots, the interpreter, outputs to their slots.
fn run(job: Job) {
    if !job.delay.is_zero() {
        std::thread::sleep(job.delay);
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| compute(&job)))
        .unwrap_or_else(|_| Err(Error::new(status::PANIC, "the shadow engine's thread panicked")));
    finish(&job, outcome);
}

/// Settles what the job writes and its place in the ticket.
fn finish(job: &Job, mut outcome: Result<Memory>) {
    if let Err(error) = &outcome {
        job.ticket.fail(error);
    }
    for wanted in job.bases.iter().filter(|wanted| wanted.writes) {
        let id = job.batch.bases[wanted.base as usize].id;
        wanted.slot.settle(match &mut outcome {
            Ok(memory) => Ok(memory.remove(id).unwrap_or_default()),
            Err(error) => Err(error.clone()),
        });
    }
    job.ticket.close();
}

fn compute(job: &Job) -> Result<Memory> {
    let batch = Batch::as_ref(&job.batch);
    let mut memory = Memory::new();
    for wanted in &job.bases {
        let content = wanted.slot.lock();
        if let Some(error) = &content.error {
            return Err(error.clone());
        }
        memory.insert(batch.bases[wanted.base as usize].id, content.bytes.clone());
    }
    if let Some(instr) = job.failing {
        let name = batch.instrs[instr as usize].opcode.name();
        return Err(Error::new(status::EXECUTION, format!("scripted failure of {name}")).at_instr(&batch, instr));
    }
    bh_ve_interp::interpret(&batch, job.block, &mut memory)?;
    Ok(memory)
}

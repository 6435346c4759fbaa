//! Runs batches in order: on the executor thread, or on the thread of a caller that finds the executor idle.

use super::backend::Backend;
use super::floating::DefaultFloatState;
use super::handoff::handoff;
use super::lock;
use super::{Checks, checked};
use bh_bytecode::Batch;
use bh_core::abi::{capability, status};
use bh_core::component::Ticket;
use bh_core::error::{Error, Result};
use bh_core::services::Services;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Batches submitted and not yet completed, at most.
const IN_FLIGHT: u64 = 2;

/// Work handed to the executor thread that is no batch.
type Call<'a> = Box<dyn FnOnce(Option<&mut (dyn Backend + 'static)>) + Send + 'a>;

/// The executor of one context.
pub(super) struct Executor {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Where times are counted, if they are wanted.
    profile: OnceLock<Arc<Services>>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// The executor thread waits here for work.
    work: Condvar,
    /// Everybody else waits here for progress.
    progress: Condvar,
    /// The execution lock: whoever calls into the stack holds it.
    engine: Mutex<Engine>,
    checks: Checks,
    dump: Option<PathBuf>,
}

/// The stack and the work that it has not finished.
pub(super) struct Engine {
    pub(super) backend: Option<Box<dyn Backend>>,
    outstanding: VecDeque<(Ticket, u64)>,
}

struct Queue {
    jobs: VecDeque<Job>,
    calls: VecDeque<Call<'static>>,
    /// Somebody runs a job.
    running: bool,
    /// Batches whose tickets have not been waited for.
    outstanding: usize,
    submitted: u64,
    completed: u64,
    /// Threads that wait for progress.
    waiting: usize,
    /// The executor thread sleeps.
    sleeping: bool,
    stop: bool,
    /// All calls must come from the executor thread.
    affine: bool,
    /// The first failure since it was last reported.
    error: Option<Error>,
    /// Emptied batches for reuse.
    spare: Vec<Batch>,
    statistics: ExecutorStatistics,
}

struct Job {
    batch: Batch,
    epoch: u64,
}

/// Who is to run a batch, if the executor is idle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    /// The executor thread.
    Thread,
    /// The submitting thread, at once.
    Here,
    /// The submitting thread, which calls `complete` next.
    Waiter,
}

/// How batches were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExecutorStatistics {
    pub(super) batches: u64,
    pub(super) instructions: u64,
    pub(super) on_caller: u64,
}

impl Executor {
    /// Starts the thread, which makes the stack.
    pub(super) fn start<F>(make: F, checks: Checks, dump: Option<PathBuf>) -> Result<Executor>
    where
        F: FnOnce() -> Result<Box<dyn Backend>> + Send + 'static,
    {
        let queue = Queue {
            jobs: VecDeque::new(),
            calls: VecDeque::new(),
            running: false,
            outstanding: 0,
            submitted: 0,
            completed: 0,
            waiting: 0,
            sleeping: false,
            stop: false,
            affine: false,
            error: None,
            spare: Vec::new(),
            statistics: ExecutorStatistics::default(),
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            work: Condvar::new(),
            progress: Condvar::new(),
            engine: Mutex::new(Engine { backend: None, outstanding: VecDeque::new() }),
            checks,
            dump,
        });
        let executor = Executor { shared: shared.clone(), thread: Mutex::new(None), profile: OnceLock::new() };
        let (giver, taker) = handoff();
        executor.spawn(move || {
            let _state = DefaultFloatState::enter();
            let made = catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| Err(panic_error(&*panic)));
            let made = made.map(|mut backend| {
                let affine = backend.capabilities().flags & capability::THREAD_AFFINE != 0;
                lock(&shared.queue).affine = affine;
                lock(&shared.engine).backend = Some(backend);
            });
            let failed = made.is_err();
            giver.give(made);
            if !failed {
                shared.serve();
            }
        })?;
        let stopped = || Error::new(status::INIT, "the executor thread ended while the stack was made");
        taker.take().unwrap_or_else(|| Err(stopped()))?;
        let services =
            executor.with_backend(|backend| Ok(backend.stack().map(|stack| Arc::clone(stack.services()))))?;
        if let Some(services) = services.filter(|services| services.timing()) {
            // The cell is empty, as the executor is new.
            let _ = executor.profile.set(services);
        }
        Ok(executor)
    }

    /// Now, if times are wanted.
    #[inline]
    pub(super) fn clock(&self) -> Option<Instant> {
        self.profile.get().map(|_| Instant::now())
    }

    /// Adds the time since `begin` to a counter of the profile.
    #[inline]
    pub(super) fn count(&self, counter: &str, begin: Option<Instant>) {
        if let (Some(begin), Some(services)) = (begin, self.profile.get()) {
            services.stats().counter(counter).fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    fn spawn(&self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new()
            .name("bh-executor".into())
            .spawn(run)
            .map_err(|error| Error::new(status::INIT, format!("cannot start the executor thread: {error}")))?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    /// Appends a batch. Waits, helping, while too many are in flight.
    pub(super) fn submit(&self, batch: Batch, epoch: u64, runner: Runner) {
        let mut queue = lock(&self.shared.queue);
        while queue.submitted - queue.completed >= IN_FLIGHT {
            queue = self.shared.advance(queue);
        }
        // Epochs are consecutive, so they count the submitted batches.
        queue.submitted = epoch;
        queue.jobs.push_back(Job { batch, epoch });
        let idle = !queue.running && queue.jobs.len() == 1 && queue.outstanding == 0;
        match runner {
            Runner::Here if idle && !queue.affine => drop(self.shared.run_next(queue, true)),
            Runner::Waiter if idle && !queue.affine => {}
            _ if queue.sleeping => self.shared.work.notify_one(),
            _ => {}
        }
    }

    /// An emptied batch to fill.
    pub(super) fn spare(&self) -> Batch {
        lock(&self.shared.queue).spare.pop().unwrap_or_default()
    }

    /// Returns when all batches up to `epoch` are done.
    pub(super) fn complete(&self, epoch: u64) {
        let begin = self.clock();
        let mut queue = lock(&self.shared.queue);
        while queue.completed < epoch {
            queue = self.shared.advance(queue);
        }
        drop(queue);
        self.count("recorder.sync_ns", begin);
    }

    /// Takes the failure that was not reported yet.
    pub(super) fn take_error(&self) -> Option<Error> {
        lock(&self.shared.queue).error.take()
    }

    pub(super) fn statistics(&self) -> ExecutorStatistics {
        lock(&self.shared.queue).statistics
    }

    /// Calls into the stack under the execution lock, on the thread that the stack asks for.
    pub(super) fn with_backend<R: Send>(&self, f: impl FnOnce(&mut dyn Backend) -> Result<R> + Send) -> Result<R> {
        let ended = || Error::new(status::SHUTDOWN, "the context was shut down");
        let guarded = move |backend: &mut (dyn Backend + 'static)| {
            let _state = DefaultFloatState::enter();
            catch_unwind(AssertUnwindSafe(|| f(backend))).unwrap_or_else(|panic| Err(panic_error(&*panic)))
        };
        if !lock(&self.shared.queue).affine {
            let mut engine = lock(&self.shared.engine);
            return engine.backend.as_deref_mut().map_or_else(|| Err(ended()), guarded);
        }
        let (giver, taker) = handoff();
        let call = move |backend: Option<&mut (dyn Backend + 'static)>| {
            giver.give(backend.map_or_else(|| Err(ended()), guarded));
        };
        let call: Call<'_> = Box::new(call);
        // SAFETY: the call borrows from this frame, which does not end before `take` returns, and that happens only once
        // the call has run or was dropped.
        let call: Call<'static> = unsafe { std::mem::transmute(call) };
        let mut queue = lock(&self.shared.queue);
        if queue.stop {
            // The thread may be gone already, and nobody would serve the call.
            drop(queue);
            drop(call);
        } else {
            queue.calls.push_back(call);
            self.shared.work.notify_one();
            drop(queue);
        }
        taker.take().unwrap_or_else(|| Err(ended()))
    }

    /// Finishes all work, ends the stack on its thread, and joins the thread.
    pub(super) fn stop(&self) {
        let mut queue = lock(&self.shared.queue);
        queue.stop = true;
        self.shared.work.notify_one();
        drop(queue);
        if let Some(thread) = lock(&self.thread).take() {
            // A panic there has been reported as an error already.
            let _ = thread.join();
        }
    }

    /// Waits until nothing is queued or running and returns with all locks held, for `fork`.
    pub(super) fn freeze(&self) -> Frozen<'_> {
        let mut queue = lock(&self.shared.queue);
        while queue.completed < queue.submitted || queue.running || !queue.calls.is_empty() {
            queue = self.shared.advance(queue);
        }
        let engine = lock(&self.shared.engine);
        Frozen { queue, engine, thread: lock(&self.thread) }
    }

    /// After `fork`, in the child: starts a new executor thread, and tells the stack that its threads are gone. A stack
    /// that cannot live on is dropped from view, not destroyed: its resources belong to the parent.
    pub(super) fn restart_in_child(&self) -> Result<()> {
        {
            let mut queue = lock(&self.shared.queue);
            queue.waiting = 0;
            queue.sleeping = false;
        }
        {
            // The parent's thread does not exist here; its handle must be neither joined nor dropped.
            std::mem::forget(lock(&self.thread).take());
            let mut engine = lock(&self.shared.engine);
            let flags = engine.backend.as_mut().map_or(0, |backend| backend.capabilities().flags);
            if flags & (capability::NO_FORK | capability::THREAD_AFFINE) != 0 {
                std::mem::forget(engine.backend.take());
                return Err(Error::new(status::SHUTDOWN, "this stack cannot be used in a forked child"));
            }
            if let Some(backend) = &mut engine.backend {
                backend.message("forked")?;
            }
        }
        let shared = self.shared.clone();
        self.spawn(move || {
            let _state = DefaultFloatState::enter();
            shared.serve();
        })
    }
}

/// The locks of an executor at rest.
pub(super) struct Frozen<'a> {
    #[expect(dead_code, reason = "held, not looked at")]
    queue: MutexGuard<'a, Queue>,
    #[expect(dead_code, reason = "held, not looked at")]
    engine: MutexGuard<'a, Engine>,
    #[expect(dead_code, reason = "held, not looked at")]
    thread: MutexGuard<'a, Option<JoinHandle<()>>>,
}

impl Shared {
    /// The executor thread's life.
    fn serve(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if !queue.running && queue.has_work() {
                queue = self.run_next(queue, false);
            } else if let Some(call) = queue.calls.pop_front() {
                drop(queue);
                call(lock(&self.engine).backend.as_deref_mut());
                queue = lock(&self.queue);
                self.report_progress(&queue);
            } else if queue.stop && !queue.running {
                break;
            } else {
                queue.sleeping = true;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.sleeping = false;
            }
        }
        drop(queue);
        let backend = lock(&self.engine).backend.take();
        // A panicking destructor must not take the process down.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(backend)));
    }

    /// Runs something if this thread may, else waits for the one that does.
    fn advance<'a>(&'a self, mut queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        if !queue.running && !queue.affine && queue.has_work() {
            return self.run_next(queue, true);
        }
        if queue.sleeping {
            self.work.notify_one();
        }
        queue.waiting += 1;
        let mut queue = self.progress.wait(queue).unwrap_or_else(PoisonError::into_inner);
        queue.waiting -= 1;
        queue
    }

    /// Runs the next batch, or waits for the oldest ticket if no batch is queued.
    fn run_next<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, on_caller: bool) -> MutexGuard<'a, Queue> {
        queue.running = true;
        let job = queue.jobs.pop_front();
        drop(queue);
        let mut completed = 0;
        let (failure, outstanding) = {
            let mut engine = lock(&self.engine);
            let _state = DefaultFloatState::enter();
            let work = || engine.step(job.as_ref(), self.checks, self.dump.as_deref(), &mut completed);
            let failure = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(result) => result.err(),
                Err(panic) => {
                    completed = job.as_ref().map_or(completed, |job| job.epoch);
                    engine.outstanding.clear();
                    Some(panic_error(&*panic))
                }
            };
            (failure, engine.outstanding.len())
        };
        let mut queue = lock(&self.queue);
        queue.running = false;
        queue.completed = queue.completed.max(completed);
        queue.outstanding = outstanding;
        if queue.error.is_none() {
            queue.error = failure;
        }
        if let Some(mut job) = job {
            queue.statistics.batches += 1;
            queue.statistics.instructions += job.batch.instrs.len() as u64;
            queue.statistics.on_caller += u64::from(on_caller);
            job.batch.clear();
            queue.spare.push(job.batch);
        }
        self.report_progress(&queue);
        queue
    }

    fn report_progress(&self, queue: &Queue) {
        if queue.waiting > 0 {
            self.progress.notify_all();
        }
        if queue.sleeping && (queue.has_work() || queue.stop) {
            self.work.notify_one();
        }
    }
}

impl Queue {
    fn has_work(&self) -> bool {
        !self.jobs.is_empty() || self.outstanding > 0
    }
}

impl Engine {
    /// Runs a batch, or waits for the oldest ticket. Keeps at most one ticket open behind a batch.
    fn step(&mut self, job: Option<&Job>, checks: Checks, dump: Option<&Path>, completed: &mut u64) -> Result<()> {
        let Some(backend) = self.backend.as_deref_mut() else {
            *completed = job.map_or(*completed, |job| job.epoch);
            return Ok(());
        };
        let mut first = Ok(());
        let mut keep = |result: Result<()>| {
            if first.is_ok() {
                first = result;
            }
        };
        let mut open = 0;
        if let Some(job) = job {
            let batch = job.batch.as_ref();
            if let Some(directory) = dump {
                keep(super::dump::write(directory, backend, &batch));
            }
            let ran = match checks.any() {
                true => checked::run(backend, &batch, checks).map(|()| Ticket::DONE),
                false => backend.execute(&batch, &[]),
            };
            match ran {
                Ok(ticket) => {
                    self.outstanding.push_back((ticket, job.epoch));
                    open = usize::from(ticket != Ticket::DONE);
                }
                Err(error) => {
                    self.outstanding.push_back((Ticket::DONE, job.epoch));
                    keep(Err(error));
                }
            }
        }
        while self.outstanding.len() > open {
            let Some((ticket, epoch)) = self.outstanding.pop_front() else { break };
            if ticket != Ticket::DONE {
                keep(backend.wait(ticket));
            }
            *completed = epoch;
        }
        first
    }
}

/// The error that a panic below the recorder becomes.
fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown panic".into());
    Error::new(status::PANIC, format!("panic in the stack: {text}"))
}

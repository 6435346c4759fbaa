//! Runs batches in order: on the executor thread, or on the thread of a caller that finds the executor idle.
//!
//! Batches are handed over under the lock of the recorder, which is short; the thread that runs them, waits for tickets or
//! gets at data holds no lock but the one that the stack itself asks for.

mod access;
pub(super) mod frozen;
pub(super) mod handoff;
mod queue;
mod serve;

use super::sync::{Builder, Condvar, JoinHandle, Mutex, current, lock};
use crate::Checks;
use crate::data::refresh;
use crate::process::floating::DefaultFloatState;
use crate::process::inside::Inside;
use crate::process::patience::Patience;
use crate::process::waits::program_wait;
use crate::stack::backend::Backend;
use crate::stack::checked;
use crate::stack::checked::guard::{Guard, execute};
use crate::stack::digits::{Digits, LineDigits};
use crate::stack::narrowed::{Lines, narrowed};
use crate::state::settled::Own;
use bh_bytecode::{Base, Batch, base_flags};
use bh_core::abi::{adopt, capability, status};
use bh_core::component::Ticket;
use bh_core::error::{Error, Result};
use bh_core::services::Services;
use bh_core::threads::without_signals;
use handoff::handoff;
use queue::Queue;
use std::any::Any;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

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
    /// A thread that calls into the stack holds it, except for calls that the stack takes from any thread.
    engine: Mutex<Engine>,
    dump: Option<PathBuf>,
}

/// The stack.
pub(crate) struct Engine {
    backend: Option<Box<dyn Backend>>,
    checks: Checks,
    guard: Guard,
    /// Shadows of the arrays, while their digits are counted.
    digits: Option<Digits>,
    /// Lines whose results are in single precision.
    narrowed: Lines,
}

/// A batch that is handed over.
pub(super) struct Job {
    pub(super) batch: Batch,
    pub(super) epoch: u64,
    /// Exported bases that the user may have changed.
    pub(super) exported: Vec<Base>,
    /// Maps that nobody can end any more.
    pub(super) unmaps: Vec<(Base, u32)>,
    /// Data of bases, which the stack adopts before the batch.
    pub(super) given: Vec<(Base, Option<Own>)>,
    /// Bytes that its instructions write: a measure of the work.
    pub(super) work: u64,
}

/// The thread that is to run a batch, if the executor is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    /// The executor thread.
    Thread,
    /// The calling thread, at once.
    Here,
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
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::new()),
            work: Condvar::new(),
            progress: Condvar::new(),
            engine: Mutex::new(Engine {
                backend: None,
                checks,
                guard: Guard::default(),
                digits: None,
                narrowed: Lines::new(),
            }),
            dump,
        });
        lock(&shared.queue).notes_changes = checks.fused();
        let executor = Executor { shared: shared.clone(), thread: Mutex::new(None), profile: OnceLock::new() };
        let (giver, taker) = handoff();
        executor.spawn(move || {
            let _state = DefaultFloatState::enter();
            let made = catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| Err(panic_error(&*panic)));
            let made = made.map(|mut backend| {
                let affine = backend.capabilities().flags & capability::THREAD_AFFINE != 0;
                let mut queue = lock(&shared.queue);
                queue.affine = affine;
                if affine {
                    // The stack must not keep the executor alive.
                    let weak = Arc::downgrade(&shared);
                    let between = move || {
                        if let Some(shared) = weak.upgrade() {
                            Executor::serve_between(&shared);
                        }
                    };
                    let data = backend.data_between(Box::new(between));
                    queue.between = data.map(|data| (data, current().id()));
                } else {
                    queue.shared = backend.shared_data();
                }
                drop(queue);
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
        let builder = Builder::new().name("bh-executor".into());
        let thread = without_signals(|| builder.spawn(run))
            .map_err(|error| Error::new(status::INIT, format!("cannot start the executor thread: {error}")))?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    /// Takes a batch, and an emptied one in exchange, without waiting for anything. [`Executor::drive`] or
    /// [`Executor::complete`] have to follow, with no lock held.
    pub(super) fn hand_over(&self, job: Job) -> Batch {
        let mut queue = lock(&self.shared.queue);
        // Epochs are consecutive, so they count the submitted batches.
        queue.submitted = job.epoch;
        queue.jobs.push_back(job);
        queue.spare.pop().unwrap_or_default()
    }

    /// Sees to it that what was handed over is run; with `waits`, waits, helping, while too much is under way.
    pub(super) fn drive(&self, runner: Runner, waits: bool) -> Result<()> {
        let _inside = Inside::enter();
        let mut queue = lock(&self.shared.queue);
        let alone = queue.jobs.len() == 1 && queue.can_run();
        if runner == Runner::Here && alone && !queue.affine {
            queue = self.shared.run_next(queue, true);
        } else if queue.sleeping {
            self.shared.work.notify_one();
        }
        if !waits || queue.has_room() {
            return Ok(());
        }
        drop(queue);
        self.wait_until(&mut Patience::endless(), &|queue| queue.has_room())
    }

    /// Waits, helping, until it is so, or `patience` ends. A thread of the program that cannot help waits in the way of its
    /// language.
    fn wait_until(&self, patience: &mut Patience<'_>, is_so: &(dyn Fn(&mut Queue) -> bool + Sync)) -> Result<()> {
        let (mut result, mut asked) = (Ok(()), patience.is_limited());
        let mut queue = lock(&self.shared.queue);
        while !is_so(&mut queue) && result.is_ok() {
            if !asked && !queue.has_light_work() {
                asked = true;
                drop(queue);
                if let Some(result) = program_wait(&mut |patience| self.wait_until(patience, is_so)) {
                    return result;
                }
                queue = lock(&self.shared.queue);
                continue;
            }
            (queue, result) = self.shared.advance(queue, patience);
        }
        result
    }

    /// Returns when all batches up to `epoch` are done, or with what `patience` ends in before.
    pub(super) fn complete(&self, epoch: u64, patience: &mut Patience<'_>) -> Result<()> {
        let _inside = Inside::enter();
        let begin = self.clock();
        let result = self.wait_until(patience, &|queue| {
            queue.wanted = queue.wanted.max(epoch);
            queue.completed >= epoch
        });
        self.count("recorder.sync_ns", begin);
        result
    }

    /// Changes the checks of the batches that follow.
    pub(super) fn set_checks(&self, checks: Checks) -> Result<()> {
        lock(&self.shared.queue).notes_changes = checks.fused();
        self.with_engine(|engine| {
            engine.checks = checks;
            engine.backend.as_deref_mut().map_or(Ok(()), |backend| engine.guard.end_log(backend))
        })
    }

    /// Begins to count the digits of results, or ends it.
    pub(super) fn set_digits(&self, on: bool) -> Result<()> {
        lock(&self.shared.queue).notes_changes = on;
        self.with_engine(|engine| {
            let before = std::mem::replace(&mut engine.digits, on.then(Digits::default));
            match (before, engine.backend.as_deref_mut()) {
                (Some(mut digits), Some(backend)) => digits.drop_shadows(backend, |_| true),
                _ => Ok(()),
            }
        })
    }

    /// Changes the lines whose results are in single precision.
    pub(super) fn set_narrowed(&self, lines: Lines) -> Result<()> {
        self.with_engine(|engine| {
            engine.narrowed = lines;
            Ok(())
        })
    }

    /// The digits of each line's results.
    pub(super) fn digits(&self) -> Result<Vec<LineDigits>> {
        self.with_engine(|engine| Ok(engine.digits.as_ref().map_or(Vec::new(), Digits::lines)))
    }

    /// Is nothing under way?
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.shared.queue).is_idle()
    }

    /// Is something under way for which somebody was not willing to wait any longer?
    pub(super) fn is_given_up(&self) -> bool {
        let queue = lock(&self.shared.queue);
        queue.given_up && !queue.is_idle()
    }

    /// Is there a failure that was not reported yet?
    pub(super) fn has_error(&self) -> bool {
        lock(&self.shared.queue).error.is_some()
    }

    /// Takes the failure that was not reported yet.
    pub(super) fn take_error(&self) -> Option<Error> {
        lock(&self.shared.queue).error.take()
    }

    pub(super) fn statistics(&self) -> ExecutorStatistics {
        lock(&self.shared.queue).statistics
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
}

impl Engine {
    /// Gives a batch to the stack. Returns the ticket of its work, and what failed.
    fn run(&mut self, job: &mut Job, changed: &HashSet<u64>, dump: Option<&Path>) -> (Ticket, Result<()>) {
        let Some(backend) = self.backend.as_deref_mut() else { return (Ticket::DONE, Ok(())) };
        let mut first = Ok(());
        for (base, own) in job.given.drain(..) {
            first = first.and(give(backend, &base, own));
        }
        let batch = job.batch.as_ref();
        for (base, count) in &job.unmaps {
            first = first.and((0..*count).try_for_each(|_| backend.unmap(base)));
        }
        for base in &job.exported {
            first = first.and(refresh(backend, base));
        }
        if let Some(directory) = dump {
            first = first.and(crate::stack::dump::write(directory, backend, &batch));
        }
        let is_shared = || !job.exported.is_empty() || batch.bases.iter().any(|base| base.has(base_flags::PINNED));
        let checks = self.checks;
        let ran = if checks.one_by_one() {
            checked::run(backend, &batch, checks).map(|()| Ticket::DONE)
        } else if checks.fused() {
            self.guard.run(backend, &batch, checks, (changed, is_shared(), job.work)).map(|()| Ticket::DONE)
        } else if let Some(digits) = &mut self.digits {
            digits.run(backend, &batch, changed, is_shared()).map(|()| Ticket::DONE)
        } else if let Some(narrowed) = narrowed(&batch, &self.narrowed, &backend.base_ids()) {
            execute(backend, &narrowed.as_ref()).map(|()| Ticket::DONE)
        } else {
            backend.execute(&batch, &[])
        };
        match ran {
            Ok(ticket) => (ticket, first),
            Err(error) => (Ticket::DONE, first.and(Err(error))),
        }
    }
}

/// Gives the stack the data of a base.
fn give(backend: &mut dyn Backend, base: &Base, own: Option<Own>) -> Result<()> {
    let short = || Error::new(status::MEMORY, format!("no memory to hand over an array of {} bytes", base.bytes()));
    // SAFETY: the memory holds the whole base, and its `release` is the stack's to call.
    own.ok_or_else(short)?.give(adopt::DONATED, |adoption| unsafe { backend.adopt(base, adoption) })
}

/// The error that a panic below the recorder becomes.
fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown panic".into());
    Error::new(status::PANIC, format!("panic in the stack: {text}"))
}

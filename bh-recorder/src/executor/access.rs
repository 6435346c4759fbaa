//! Calls into the stack that are no batches.

use super::super::sync::{current, lock};
use super::handoff::handoff;
use super::queue::{Call, Reach, Work};
use super::{Backend, Engine, Executor, Shared, panic_error};
use crate::data::Data;
use crate::process::floating::DefaultFloatState;
use crate::process::inside::Inside;
use crate::process::patience::Patience;
use crate::process::waits::program_wait;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn ended() -> Error {
    Error::new(status::SHUTDOWN, "the context was shut down")
}

/// Makes a call in the floating-point state that components are used to; a panic becomes an error.
fn guarded<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    let _inside = Inside::run();
    let _state = DefaultFloatState::enter();
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(&*panic)))
}

impl Executor {
    /// Calls into the stack, on the thread that the stack asks for, when no batch runs.
    pub(crate) fn with_backend<R: Send>(&self, f: impl FnOnce(&mut dyn Backend) -> Result<R> + Send) -> Result<R> {
        self.with_engine(|engine| match engine.backend.as_deref_mut() {
            Some(backend) => f(backend),
            None => Err(ended()),
        })
    }

    /// As [`Executor::with_backend`], with what else runs batches.
    pub(super) fn with_engine<R: Send>(&self, f: impl FnOnce(&mut Engine) -> Result<R> + Send) -> Result<R> {
        if lock(&self.shared.queue).affine {
            return self.on_thread(0, false, f);
        }
        if lock(&self.shared.queue).running {
            program_wait(&mut |patience| self.wait_until(patience, &|queue| !queue.running)).unwrap_or(Ok(()))?;
        }
        let _inside = Inside::run();
        let mut engine = lock(&self.shared.engine);
        guarded(|| f(&mut engine))
    }

    /// Do data calls have to be made on the executor thread?
    pub(crate) fn is_affine(&self) -> bool {
        lock(&self.shared.queue).affine
    }

    /// Notes that the program is about to change a base's data itself.
    pub(crate) fn note_change(&self, base: u64) {
        let mut queue = lock(&self.shared.queue);
        if queue.notes_changes {
            queue.changed.insert(base);
        }
    }

    /// Notes that a base's data is about to be used, so that no batch with it begins, if all batches up to `epoch` are done.
    pub(crate) fn begin_access(&self, base: u64, epoch: u64) -> bool {
        let mut queue = lock(&self.shared.queue);
        if queue.completed < epoch {
            return false;
        }
        queue.accessed.push(base);
        true
    }

    /// As [`Executor::begin_access`], for calls that need no batch to be done.
    pub(crate) fn note_access(&self, base: u64) {
        lock(&self.shared.queue).accessed.push(base);
    }

    /// Calls data functions of the stack for a base that [`Executor::begin_access`] has noted, and ends that. Does not
    /// wait for a running batch if the stack allows it.
    pub(crate) fn access<R: Send>(&self, base: u64, f: impl FnOnce(&mut dyn Data) -> Result<R> + Send) -> Result<R> {
        let _inside = Inside::enter();
        let shared = lock(&self.shared.queue).shared.clone();
        let result = match shared {
            Some(shared) => guarded(|| {
                let (mut f, mut result) = (Some(f), None);
                shared.with(&mut |data| result = f.take().map(|f| f(data)).or(result.take()));
                // Made only where it is needed: reads in a loop allocate nothing.
                result.unwrap_or_else(|| Err(ended()))
            }),
            None => self.with_backend(|backend| f(backend)),
        };
        let mut queue = lock(&self.shared.queue);
        if let Some(place) = queue.accessed.iter().position(|&other| other == base) {
            queue.accessed.swap_remove(place);
        }
        self.shared.report_progress(&queue);
        result
    }

    /// Has the executor thread call into the stack once all batches up to `after` are done; with `reports`, not if there
    /// is a failure that was not reported yet, which is returned instead.
    pub(crate) fn on_thread<R: Send>(
        &self,
        after: u64,
        reports: bool,
        f: impl FnOnce(&mut Engine) -> Result<R> + Send,
    ) -> Result<R> {
        self.post(after, reports, None, |reach| match reach {
            Reach::Engine(engine) => f(engine),
            Reach::Data(_) => Err(ended()),
        })
    }

    fn post<R: Send>(
        &self,
        after: u64,
        reports: bool,
        base: Option<u64>,
        f: impl FnOnce(Reach<'_>) -> Result<R> + Send,
    ) -> Result<R> {
        let _inside = Inside::enter();
        let (giver, taker) = handoff();
        let work: Work<'_> = Box::new(move |reach: Reach<'_>, error: Option<Error>| {
            giver.give(error.map_or_else(|| guarded(|| f(reach)), Err));
        });
        // SAFETY: the call borrows from this frame, which does not end before `take` returns, and that happens only once
        // the call has run or was dropped.
        let work: Work<'static> = unsafe { std::mem::transmute(work) };
        let mut queue = lock(&self.shared.queue);
        if queue.stop {
            // The thread may be gone already, and nobody would serve the call.
            drop(queue);
            drop(work);
        } else {
            queue.calls.push_back(Call { after, work, base, reports });
            self.shared.work.notify_one();
            drop(queue);
        }
        let (mut taker, mut taken) = (Some(taker), None);
        let mut wait = |_: &mut Patience<'_>| {
            taken = taker.take().and_then(|taker| taker.take());
            Ok(())
        };
        // The call borrows from this frame, so that nothing ends the wait for it.
        if program_wait(&mut wait).is_none() {
            wait(&mut Patience::endless())?;
        }
        taken.unwrap_or_else(|| Err(ended()))
    }

    /// Makes the calls about data that wait, from within a call of the stack on the executor thread.
    pub(super) fn serve_between(shared: &Shared) {
        loop {
            let mut queue = lock(&shared.queue);
            let Some((data, thread)) = queue.between.clone() else { return };
            if thread != current().id() {
                return;
            }
            let Some(call) = queue.take_data_call() else { return };
            let error = if call.reports { queue.error.take() } else { None };
            drop(queue);
            let mut work = Some((call.work, error));
            data.with(&mut |data| {
                if let Some((work, error)) = work.take() {
                    work(Reach::Data(data), error);
                }
            });
        }
    }

    /// Calls data functions of the stack for a base once all batches up to `epoch` are done and, with `reports`, their first failure was
    /// reported, on a stack whose calls come from one thread. If it is to be interrupted, the wait comes first; else all is one call.
    pub(crate) fn access_on_thread<R: Send>(
        &self,
        (base, epoch): (u64, u64),
        reports: bool,
        patience: &mut Patience<'_>,
        f: impl FnOnce(&mut dyn Data) -> Result<R> + Send,
    ) -> Result<R> {
        if patience.is_limited() {
            self.complete(epoch, patience)?;
        }
        self.post(epoch, reports, Some(base), |reach| match reach {
            Reach::Engine(Engine { backend: Some(backend), .. }) => f(backend.as_mut()),
            Reach::Engine(_) => Err(ended()),
            Reach::Data(data) => f(data),
        })
    }
}

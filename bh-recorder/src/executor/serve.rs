//! How work gets done: by the executor thread, and by threads that wait.

use super::super::sync::{MutexGuard, lock, wait_for};
use super::queue::{Queue, Reach};
use super::{Job, Shared, panic_error};
use crate::process::floating::DefaultFloatState;
use crate::process::inside::Inside;
use crate::process::patience::{Patience, longer};
use bh_core::component::Ticket;
use bh_core::error::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::Duration;

/// Between two looks at a ticket, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// The result of a look at a ticket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Done,
    NotYet,
    /// The stack cannot tell, and nobody needs it now.
    Unknown,
}

impl Shared {
    /// The executor thread's life.
    pub(super) fn serve(&self) {
        let _inside = Inside::enter();
        let mut queue = lock(&self.queue);
        let mut pause = PAUSE.0;
        loop {
            if let Some(call) = queue.take_call() {
                let error = if call.reports { queue.error.take() } else { None };
                drop(queue);
                (call.work)(Reach::Engine(&mut lock(&self.engine)), error);
                queue = lock(&self.queue);
                self.report_progress(&queue);
            } else if queue.can_run() {
                queue = self.run_next(queue, false);
            } else if queue.can_wait() {
                let look;
                let wanted = queue.ticket_is_wanted();
                (queue, look) = self.look_at_ticket(queue, wanted);
                pause = if look == Look::Done { PAUSE.0 } else { longer(pause).min(PAUSE.1) };
                // Requests that came during the look found no sleeping thread to wake.
                let wanted = look == Look::Unknown && queue.ticket_is_wanted();
                if look != Look::Done && !wanted && !queue.can_run() && !queue.has_call() {
                    queue.sleeping = true;
                    queue = match look {
                        Look::NotYet => wait_for(&self.work, &self.queue, queue, pause),
                        _ => self.work.wait(queue).unwrap_or_else(PoisonError::into_inner),
                    };
                    queue.sleeping = false;
                }
            } else if queue.stop && queue.is_idle() {
                break;
            } else {
                queue.sleeping = true;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.sleeping = false;
            }
        }
        self.end(queue);
    }

    /// Ends the stack once nobody gets at its data any more.
    fn end(&self, mut queue: MutexGuard<'_, Queue>) {
        (queue.shared, queue.between) = (None, None);
        while !queue.accessed.is_empty() {
            queue.waiting += 1;
            queue = self.progress.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
        }
        drop(queue);
        let mut engine = lock(&self.engine);
        let mut backend = engine.backend.take();
        if let Some(backend) = backend.as_deref_mut() {
            // Arrays of the shadows and the guard have no user when the stack ends.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let shadows = engine.digits.take().map_or(Ok(()), |mut digits| digits.drop_shadows(backend, |_| true));
                engine.guard.end_log(backend).and(shadows)
            }));
        }
        drop(engine);
        // A panicking destructor must not take the process down.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(backend)));
    }

    /// Does something of what is to be done if this thread may, else waits for those that do. Returns early, with the
    /// error, when `patience` ends.
    pub(super) fn advance<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        patience: &mut Patience<'_>,
    ) -> (MutexGuard<'a, Queue>, Result<()>) {
        let mut pause = patience.slice();
        if !queue.affine {
            // Long work goes to the executor thread if this one wants to look up in between.
            if queue.can_run() && queue.jobs.front().is_some_and(|job| patience.may_run(job.work)) {
                return (self.run_next(queue, true), Ok(()));
            }
            if queue.can_wait() && (!queue.can_run()) {
                let look;
                (queue, look) = self.look_at_ticket(queue, !patience.is_limited());
                if look == Look::Done {
                    return (queue, Ok(()));
                }
                let next = patience.next_pause(PAUSE);
                pause = Some(pause.map_or(next, |pause| pause.min(next)));
            }
        }
        if queue.sleeping {
            self.work.notify_one();
        }
        queue.waiting += 1;
        let mut queue = match pause {
            Some(pause) => wait_for(&self.progress, &self.queue, queue, pause),
            None => self.progress.wait(queue).unwrap_or_else(PoisonError::into_inner),
        };
        queue.waiting -= 1;
        if !patience.is_due() {
            return (queue, Ok(()));
        }
        drop(queue);
        let checked = patience.check();
        let mut queue = lock(&self.queue);
        if checked.is_err() {
            queue.given_up = true;
            // Others may have relied on this thread.
            self.report_progress(&queue);
        }
        (queue, checked)
    }

    /// Gives the next batch to the stack.
    pub(super) fn run_next<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, on_caller: bool) -> MutexGuard<'a, Queue> {
        let Some(mut job) = queue.jobs.pop_front() else { return queue };
        queue.running = true;
        if queue.between.is_some() {
            queue.running_bases.clear();
            queue.running_bases.extend(job.batch.bases.iter().map(|base| base.id));
        }
        let changed = std::mem::take(&mut queue.changed);
        drop(queue);
        let (ticket, result) = {
            let _inside = Inside::run();
            let mut engine = lock(&self.engine);
            let _state = DefaultFloatState::enter();
            let work = || engine.run(&mut job, &changed, self.dump.as_deref());
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| (Ticket::DONE, Err(panic_error(&*panic))))
        };
        let mut queue = lock(&self.queue);
        queue.running = false;
        queue.given_up &= !queue.jobs.is_empty();
        if let Err(error) = result {
            queue.keep(error);
        }
        queue.begun(ticket, job.epoch);
        queue.statistics.batches += 1;
        queue.statistics.instructions += job.batch.instrs.len() as u64;
        queue.statistics.on_caller += u64::from(on_caller);
        let Job { mut batch, .. } = job;
        batch.clear();
        queue.spare.push(batch);
        self.report_progress(&queue);
        queue
    }

    /// Looks whether the work behind the oldest ticket is done. If the stack cannot tell, it is waited for if it is
    /// `wanted`; that keeps the next batch from the stack, so it is not done before.
    fn look_at_ticket<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, wanted: bool) -> (MutexGuard<'a, Queue>, Look) {
        let Some(&(ticket, _)) = queue.tickets.front() else { return (queue, Look::Done) };
        queue.waiting_for_ticket = true;
        drop(queue);
        let work = || {
            let _inside = Inside::run();
            let mut engine = lock(&self.engine);
            let _state = DefaultFloatState::enter();
            let Some(backend) = engine.backend.as_deref_mut() else { return (Look::Done, Ok(())) };
            match backend.poll(ticket) {
                Some(false) => (Look::NotYet, Ok(())),
                None if !wanted => (Look::Unknown, Ok(())),
                _ => (Look::Done, backend.wait(ticket)),
            }
        };
        let (look, result) =
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| (Look::Done, Err(panic_error(&*panic))));
        let mut queue = lock(&self.queue);
        queue.waiting_for_ticket = false;
        if look == Look::Done {
            queue.ended(result);
            self.report_progress(&queue);
        }
        (queue, look)
    }

    pub(super) fn report_progress(&self, queue: &Queue) {
        if queue.waiting > 0 {
            self.progress.notify_all();
        }
        if queue.sleeping
            && (!queue.jobs.is_empty() || !queue.calls.is_empty() || !queue.tickets.is_empty() || queue.stop)
        {
            self.work.notify_one();
        }
    }
}

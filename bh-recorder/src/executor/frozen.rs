//! An executor at rest, while the process forks.

use super::super::sync::{JoinHandle, MutexGuard, lock};
use super::queue::Queue;
use super::{Backend, DefaultFloatState, Engine, Executor, Inside, Patience};
use bh_core::abi::{capability, fork, status};
use bh_core::error::{Error, Result};
use bh_core::services::FrozenServices;

/// The locks of an executor at rest. Dropped, it goes on, in the parent.
pub(crate) struct Frozen<'a> {
    executor: &'a Executor,
    // Dropped in this order.
    services: Option<FrozenServices>,
    thread: MutexGuard<'a, Option<JoinHandle<()>>>,
    /// Not that of a stack whose calls come from one thread, which does not live on in a child, and whose work may wait for
    /// the thread that forks.
    engine: Option<MutexGuard<'a, Engine>>,
    queue: MutexGuard<'a, Queue>,
    /// The moment that the stack hears of next.
    next: u32,
}

impl Executor {
    /// Waits until nothing is queued or running, where a child can go on, and returns with the executor's locks held, for `fork`.
    pub(crate) fn freeze(&self) -> Frozen<'_> {
        let mut queue = lock(&self.shared.queue);
        while !queue.affine && (!queue.is_idle() || !queue.accessed.is_empty()) {
            queue.wanted = queue.submitted;
            queue = self.shared.advance(queue, &mut Patience::endless()).0;
        }
        let engine = if queue.affine { None } else { Some(lock(&self.shared.engine)) };
        let thread = lock(&self.thread);
        Frozen { executor: self, services: None, thread, engine, queue, next: fork::PARENT }
    }
}

impl Frozen<'_> {
    /// Tells the stack that the process is about to fork. No context may be at work: a compiler that rests may keep another
    /// context's from its work.
    pub(crate) fn announce(&mut self) {
        // A component that cannot prepare now reports it when it is called.
        let _ = self.inform(fork::BEFORE);
    }

    /// Takes the locks of the stack's services. All contexts share the log, so that none may be at work.
    pub(crate) fn hold_services(&mut self) {
        self.services = self.backend().and_then(|backend| Some(backend.stack()?.services().freeze()));
    }

    fn backend(&mut self) -> Option<&mut Box<dyn Backend>> {
        self.engine.as_mut()?.backend.as_mut()
    }

    /// Tells the stack of a moment.
    fn inform(&mut self, moment: u32) -> Result<()> {
        let (_inside, _state) = (Inside::run(), DefaultFloatState::enter());
        self.backend().map_or(Ok(()), |backend| backend.fork(moment))
    }

    /// In the child: starts a new executor thread, and tells the stack that its threads are gone. Fails if the stack cannot live
    /// on; it must not be destroyed, as its resources belong to the parent.
    pub(crate) fn restart_in_child(mut self) -> Result<()> {
        self.services = None;
        self.next = fork::CHILD;
        self.queue.waiting = 0;
        self.queue.sleeping = false;
        // The parent's thread does not exist here; its handle must be neither joined nor dropped.
        std::mem::forget(self.thread.take());
        if self.backend().is_none_or(|backend| backend.capabilities().flags & capability::NO_FORK != 0) {
            return Err(Error::new(status::SHUTDOWN, "this stack cannot be used in a forked child"));
        }
        self.inform(fork::CHILD)?;
        let executor = self.executor;
        drop(self);
        let shared = executor.shared.clone();
        executor.spawn(move || {
            let _state = DefaultFloatState::enter();
            shared.serve();
        })
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.services = None;
        if self.next == fork::PARENT {
            let _ = self.inform(fork::PARENT);
        }
    }
}

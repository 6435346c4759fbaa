//! Where the compiler's thread stops while the process forks.
//!
//! Outside of LLVM it uses the host's functions and the dynamic loader, which a forked child needs. A fork waits until the thread has
//! left them, and keeps it out. Compiling goes on meanwhile: LLVM's locks are of no use to the child, which has no
//! compiler.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Keeps threads and forks apart.
#[derive(Default)]
pub(super) struct Rest {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The process forks.
    resting: bool,
    /// Threads that are at work outside of LLVM.
    at_work: usize,
}

/// A thread is at work outside of LLVM.
pub(super) struct AtWork<'a>(&'a Rest);

impl Rest {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, on: impl Fn(&State) -> bool) -> MutexGuard<'a, State> {
        self.changed.wait_while(state, |state| on(state)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the process forks.
    pub(super) fn work(&self) -> AtWork<'_> {
        self.begin();
        AtWork(self)
    }

    fn begin(&self) {
        self.wait(self.lock(), |state| state.resting).at_work += 1;
    }

    fn end(&self) {
        self.lock().at_work -= 1;
        self.changed.notify_all();
    }

    /// Waits until nobody is at work, and keeps all from it.
    pub(super) fn begin_fork(&self) {
        let mut state = self.lock();
        state.resting = true;
        drop(self.wait(state, |state| state.at_work > 0));
    }

    /// Lets threads work again.
    pub(super) fn end_fork(&self) {
        self.lock().resting = false;
        self.changed.notify_all();
    }
}

impl AtWork<'_> {
    /// Calls LLVM.
    pub(super) fn away<R>(&self, call: impl FnOnce() -> R) -> R {
        struct Back<'a>(&'a Rest);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.begin();
            }
        }
        self.0.end();
        let _back = Back(self.0);
        call()
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_fork_waits_for_work_and_not_for_llvm() {
        let (rest, (sender, receiver)) = (Rest::default(), channel());
        std::thread::scope(|scope| {
            let (inside, is_inside) = channel();
            let (leave, may_leave) = channel::<()>();
            let rest = &rest;
            scope.spawn(move || {
                let work = rest.work();
                work.away(|| {
                    inside.send(()).unwrap();
                    may_leave.recv().unwrap();
                });
                sender.send("back at work").unwrap();
            });
            is_inside.recv().unwrap();
            rest.begin_fork();
            leave.send(()).unwrap();
            // The thread cannot come back before the fork is over.
            std::thread::yield_now();
            assert!(receiver.try_recv().is_err());
            rest.end_fork();
            assert_eq!(receiver.recv(), Ok("back at work"));
        });
    }
}

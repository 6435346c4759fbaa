//! What the whole process does to contexts: it forks, and it exits without shutting them down.

use super::executor::Frozen;
use super::state::State;
use super::{Recorder, lock};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, Once, Weak};

/// All contexts of the process.
static LIVE: Mutex<Vec<Weak<Recorder>>> = Mutex::new(Vec::new());

/// Notes a context, and installs the fork handlers with the first one.
pub(super) fn enroll(recorder: &Arc<Recorder>) {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // SAFETY: the handlers are functions of this library, which is never unloaded while contexts exist. A failure (out
        // of memory) leaves the process without fork support.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
    });
    let mut live = lock(&LIVE);
    live.retain(|other| other.strong_count() > 0);
    live.push(Arc::downgrade(recorder));
}

/// Has the end of the calling thread, if it is the process's main thread, tell the components of all contexts that the
/// process is `exiting`. The destructors of a thread's variables run before those of static objects, so that a component
/// can stop threads of its own which use libraries with such objects.
pub(super) fn announce_exit() {
    /// The process that the thread belongs to.
    struct Main(u32);

    impl Drop for Main {
        fn drop(&mut self) {
            // SAFETY: no arguments, and it cannot fail.
            let thread = unsafe { libc::gettid() };
            // A forked child has no threads but its own.
            if self.0 != std::process::id() || u32::try_from(thread) != Ok(self.0) {
                return;
            }
            let contexts: Vec<Arc<Recorder>> = lock(&LIVE).iter().filter_map(Weak::upgrade).collect();
            for context in contexts {
                let executor = lock(&context.state).executor();
                // Nobody is left to hear of failures.
                let _ = executor.and_then(|executor| executor.with_backend(|backend| backend.message("exiting")));
            }
        }
    }

    thread_local!(static MAIN: Main = Main(std::process::id()));
    MAIN.with(|_| ());
}

/// Ends all contexts when the process exits normally.
pub(super) fn shut_down_at_exit() {
    // SAFETY: registers a plain function. A failure (out of memory) leaves contexts open at exit, which is legal.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    let contexts: Vec<Arc<Recorder>> = lock(&LIVE).iter().filter_map(Weak::upgrade).collect();
    for context in contexts {
        // Nobody is left to hear of failures.
        let _ = context.shutdown();
    }
}

/// The locks of one context while the process forks.
struct Held {
    // Dropped in this order: the executor's locks, then the state, then what keeps both alive.
    frozen: Option<Frozen<'static>>,
    state: Option<MutexGuard<'static, State>>,
    context: Arc<Recorder>,
}

/// The locks of all contexts, and of their list.
type AllHeld = (Vec<Held>, MutexGuard<'static, Vec<Weak<Recorder>>>);

thread_local! {
    /// What the forking thread holds.
    static HELD: RefCell<Option<AllHeld>> = const { RefCell::new(None) };
}

/// Waits for running work and takes all locks, so that the child finds everything consistent.
unsafe extern "C" fn before_fork() {
    let live = lock(&LIVE);
    let contexts: Vec<Arc<Recorder>> = live.iter().filter_map(Weak::upgrade).collect();
    let held = contexts.into_iter().map(hold).collect();
    HELD.with(|cell| *cell.borrow_mut() = Some((held, live)));
}

fn hold(context: Arc<Recorder>) -> Held {
    // SAFETY: the guards are dropped before `context` (see `Held` and `after_fork_in_child`), so what they borrow outlives
    // them.
    let fixed: &'static Recorder = unsafe { &*Arc::as_ptr(&context) };
    let state = lock(&fixed.state);
    let frozen = state.running.as_ref().map(|running| {
        // SAFETY: the executor lives as long as `state.running`, which nobody changes while `state` is locked.
        let executor: &'static super::executor::Executor = unsafe { &*Arc::as_ptr(&running.executor) };
        executor.freeze()
    });
    Held { frozen, state: Some(state), context }
}

unsafe extern "C" fn after_fork_in_parent() {
    HELD.with(|cell| drop(cell.borrow_mut().take()));
}

unsafe extern "C" fn after_fork_in_child() {
    let Some((held, live)) = HELD.with(|cell| cell.borrow_mut().take()) else { return };
    for Held { frozen, state, context } in held {
        drop(frozen);
        drop(state);
        let mut state = lock(&context.state);
        let Ok(executor) = state.executor() else { continue };
        if let Err(error) = executor.restart_in_child() {
            state.end(error);
        }
    }
    drop(live);
}

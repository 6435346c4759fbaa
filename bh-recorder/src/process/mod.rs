//! Events of the whole process: it forks, and it exits without shutting contexts down.

pub(crate) mod floating;
pub(crate) mod inside;
pub(crate) mod patience;
pub(crate) mod waits;

use crate::executor::frozen::Frozen;
use crate::process::inside::{is_inside, is_running};
use crate::process::patience::Patience;
use crate::state::State;
use crate::sync::lock;
use crate::{ArrayId, Recorder};
use bh_core::abi::status;
use bh_core::error::Error;
use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, TryLockError, Weak};
use std::time::{Duration, Instant};

/// All contexts of the process.
static LIVE: Mutex<Vec<Weak<Recorder>>> = Mutex::new(Vec::new());

/// Notes a context, and installs the fork handlers with the first one.
pub(crate) fn enroll(recorder: &Arc<Recorder>) {
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
pub(crate) fn announce_exit() {
    /// The process that the thread belongs to.
    struct Main(u32);

    impl Drop for Main {
        fn drop(&mut self) {
            // A forked child has no threads but its own. A thread that ends the process while it is inside of a component
            // cannot call it once more, and what holds a lock may be its own interrupted frame.
            if self.0 != std::process::id() || !is_main_thread() || is_inside() {
                return;
            }
            for context in contexts(Deadline::never()) {
                let executor = lock(&context.state).executor();
                // Nobody is left to hear of failures. Work that was given up would be waited for.
                let executor = executor.ok().filter(|executor| !executor.is_given_up());
                let _ = executor.map(|executor| executor.with_backend(|backend| backend.message("exiting")));
            }
        }
    }

    thread_local!(static MAIN: Main = Main(std::process::id()));
    // Fails in a thread that is ending, which has nothing to announce any more.
    let _ = MAIN.try_with(|_| ());
}

#[cfg(target_os = "macos")]
fn is_main_thread() -> bool {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::pthread_main_np() == 1 }
}

#[cfg(not(target_os = "macos"))]
fn is_main_thread() -> bool {
    // SAFETY: no arguments, and it cannot fail.
    let thread = unsafe { libc::gettid() };
    u32::try_from(thread) == Ok(std::process::id())
}

/// Ends all contexts when the process exits normally.
pub(crate) fn shut_down_at_exit() {
    // SAFETY: registers a plain function. A failure (out of memory) leaves contexts open at exit, which is legal.
    unsafe { libc::atexit(at_exit) };
}

/// The longest that the end of a process waits for work which its own thread may have interrupted.
const LONGEST: Duration = Duration::from_millis(600);

/// When the end of the process goes on without an answer.
#[derive(Clone, Copy)]
struct Deadline(Option<Instant>);

impl Deadline {
    fn never() -> Deadline {
        Deadline(None)
    }

    /// This one, or the end of so much time from now.
    fn or(self, longest: Duration) -> Deadline {
        Deadline(self.0.or_else(|| Some(Instant::now() + longest)))
    }

    fn has_passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// A lock, if it can be had in time.
    fn lock<T>(self, mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        if self.0.is_none() {
            return Some(lock(mutex));
        }
        loop {
            match mutex.try_lock() {
                Ok(guard) => return Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if self.has_passed() => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

/// The contexts of the process; none if their list cannot be had in time.
fn contexts(deadline: Deadline) -> Vec<Arc<Recorder>> {
    deadline.lock(&LIVE).map_or_else(Vec::new, |live| live.iter().filter_map(Weak::upgrade).collect())
}

extern "C" fn at_exit() {
    if is_running() {
        // A component below this very frame ended the process, or a signal that came meanwhile: it cannot be called, and
        // what it holds will not be given back.
        return;
    }
    // The main thread that has left bh waits for what runs. Other threads may be an engine's own, whose work would not end.
    let limited = is_inside() || !is_main_thread();
    let deadline = Deadline(limited.then(|| Instant::now() + LONGEST));
    for context in contexts(deadline) {
        let Some(state) = deadline.lock(&context.state) else { continue };
        // Somebody has waited for this work, and has interrupted that.
        let given_up = state.running.as_ref().is_some_and(|running| running.executor.is_given_up());
        let limited = limited || given_up;
        let deadline = if limited { deadline.or(LONGEST) } else { deadline };
        let mut check = || match deadline.has_passed() {
            true => Err(Error::new(status::SHUTDOWN, "the process is ending")),
            false => Ok(()),
        };
        let mut patience = if limited { Patience::until(&mut check) } else { Patience::endless() };
        // Nobody is left to hear of failures.
        let _ = context.end(state, &mut patience);
    }
}

/// A lock of a library above the recorder, taken in time.
type Hold = Box<dyn Fn(Deadline) -> Option<Box<dyn Any>> + Send>;

/// Such locks.
static LOCKS: Mutex<Vec<Hold>> = Mutex::new(Vec::new());

/// Has a lock of a library above the recorder held while the process forks, so that a child finds it open. No call into the
/// recorder may wait while it is held, except for the start of a context.
pub fn hold_at_fork<T: Send>(mutex: &'static Mutex<T>) {
    lock(&LOCKS).push(Box::new(|deadline| deadline.lock(mutex).map(|guard| Box::new(guard) as Box<dyn Any>)));
}

/// How many contexts are starting.
static STARTING: AtomicUsize = AtomicUsize::new(0);

/// A context is starting while this lives.
pub(crate) struct Starting(());

impl Starting {
    /// Waits for a fork that has begun, which does not expect one more.
    pub(crate) fn begin() -> Starting {
        let _live = lock(&LIVE);
        STARTING.fetch_add(1, Ordering::AcqRel);
        Starting(())
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        STARTING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The locks of one context while the process forks.
struct Held {
    // Dropped in this order: the executor's locks, then the recorder's, then what keeps them alive.
    frozen: Option<Frozen<'static>>,
    _later: MutexGuard<'static, Vec<ArrayId>>,
    state: MutexGuard<'static, State>,
    _announcing: MutexGuard<'static, ()>,
    context: Arc<Recorder>,
}

/// The locks of all contexts, of their list, and of libraries above.
type AllHeld = (Vec<Held>, MutexGuard<'static, Vec<Weak<Recorder>>>, Vec<Box<dyn Any>>);

thread_local! {
    /// The locks that the forking thread holds.
    static HELD: RefCell<Option<AllHeld>> = const { RefCell::new(None) };
}

/// How long a fork waits for a lock: what a context starts may fork on a thread of its own, and the context waits for it.
fn while_contexts_start() -> Deadline {
    let starts = STARTING.load(Ordering::Acquire) > 0;
    Deadline(starts.then(|| Instant::now() + LONGEST))
}

/// Waits for running work and takes all locks, so that the child finds everything consistent. A thread that forks in a call
/// of the stack, from a function of the user's say, would wait for itself.
unsafe extern "C" fn before_fork() {
    if is_running() {
        return;
    }
    let locks = lock(&LOCKS).iter().filter_map(|hold| hold(while_contexts_start())).collect();
    let live = lock(&LIVE);
    let contexts: Vec<Arc<Recorder>> = live.iter().filter_map(Weak::upgrade).collect();
    let mut held: Vec<Held> =
        contexts.into_iter().filter_map(|context| hold(context, while_contexts_start())).collect();
    // Only when all contexts are at rest: one at work may need the log, or the compiler, that another's rest keeps from it.
    held.iter_mut().filter_map(|held| held.frozen.as_mut()).for_each(Frozen::announce);
    held.iter_mut().filter_map(|held| held.frozen.as_mut()).for_each(Frozen::hold_services);
    // A thread whose variables are gone has its locks opened again at once.
    let _ = HELD.try_with(|cell| *cell.borrow_mut() = Some((held, live, locks)));
}

fn hold(context: Arc<Recorder>, deadline: Deadline) -> Option<Held> {
    // SAFETY: the guards are dropped before `context` (see `Held` and `after_fork_in_child`), so what they borrow outlives
    // them.
    let fixed: &'static Recorder = unsafe { &*Arc::as_ptr(&context) };
    let announcing = deadline.lock(&fixed.announcing)?;
    let state = deadline.lock(&fixed.state)?;
    let frozen = state.running.as_ref().map(|running| {
        // SAFETY: the executor lives as long as `state.running`, which nobody changes while `state` is locked.
        let executor: &'static crate::executor::Executor = unsafe { &*Arc::as_ptr(&running.executor) };
        executor.freeze()
    });
    Some(Held { frozen, _later: fixed.later.lock(), state, _announcing: announcing, context })
}

unsafe extern "C" fn after_fork_in_parent() {
    let _ = HELD.try_with(|cell| drop(cell.borrow_mut().take()));
}

unsafe extern "C" fn after_fork_in_child() {
    if is_running() {
        return end_all_in_child();
    }
    let Ok(Some((held, mut live, _locks))) = HELD.try_with(|cell| cell.borrow_mut().take()) else { return };
    // One that was starting has no thread here that would give its lock back.
    live.retain(|other| held.iter().any(|held| std::ptr::eq(other.as_ptr(), Arc::as_ptr(&held.context))));
    for mut held in held {
        if let Some(Err(error)) = held.frozen.take().map(Frozen::restart_in_child) {
            held.state.end(error);
        }
        held.state.gate.forget_threads();
    }
    drop(live);
}

/// Ends the contexts of a child whose thread was in the midst of a call: what it was about to do is not done here. Those whose
/// locks other threads of the parent held stay as they are.
fn end_all_in_child() {
    let Ok(live) = LIVE.try_lock() else { return };
    for context in live.iter().filter_map(Weak::upgrade) {
        if let Ok(mut state) = context.state.try_lock() {
            state.end(Error::new(status::SHUTDOWN, "the process was forked in the midst of a call"));
        }
        // Its end would wait for threads that are not there.
        std::mem::forget(context);
    }
}

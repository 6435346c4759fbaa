//! The hand-off of kernels under random schedules: the same file as the engine's, on threads and words of a model.

mod sync {
    use std::time::Duration;

    pub(super) use crate::exec::pool::sync::UnsafeCell;
    pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, fence};
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
    pub(super) use shuttle::thread::{Thread, current, park};
    pub(super) use std::sync::OnceLock;

    /// Looks a few times, as there is no time in a model.
    pub(super) fn look<T>(_: Duration, what: impl Fn() -> Option<T>) -> Option<T> {
        (0..2).find_map(|_| {
            let seen = what();
            if seen.is_none() {
                shuttle::thread::yield_now();
            }
            seen
        })
    }
}

// Loaded a second time on purpose: `sync` means the model here.
#[allow(clippy::duplicate_mod)]
#[path = "handoff.rs"]
mod handoff;

use handoff::{Handoff, MOST_HELPERS};
use shuttle::rand::Rng;
use shuttle::sync::mpsc::{Sender, channel};
use shuttle::thread::JoinHandle;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The number of schedules that are tried of each program.
const SCHEDULES: usize = 3000;

/// A task of a thread of the pool.
enum Call {
    Stint,
    /// Other work of the pool.
    Answer(Sender<()>),
}

/// A pool of the model, whose threads end when there are no calls any more.
struct Pool {
    handoff: Arc<Handoff>,
    calls: Vec<Sender<Call>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    fn new(helpers: usize) -> Pool {
        assert!(helpers <= MOST_HELPERS);
        let handoff = Arc::new(Handoff::new(helpers, Duration::ZERO));
        let mut pool = Pool { handoff, calls: Vec::new(), threads: Vec::new() };
        for number in 0..=helpers {
            let (call, calls) = channel();
            let handoff = pool.handoff.clone();
            pool.calls.push(call);
            let follow = move |call| match call {
                Call::Stint => handoff.stint(number),
                Call::Answer(to) => to.send(()).unwrap(),
            };
            pool.threads.push(shuttle::thread::spawn(move || calls.iter().for_each(follow)));
        }
        pool
    }

    fn run(&mut self, helpers: usize, job: &(dyn Fn(usize) + Sync)) {
        let call = || self.calls.iter().for_each(|thread| thread.send(Call::Stint).unwrap());
        // SAFETY: the exclusive reference lets no calls overlap.
        unsafe { self.handoff.run(helpers, job, call) };
    }

    /// Has every thread do something else.
    fn use_otherwise(&mut self) {
        self.handoff.dismiss();
        let (answer, answers) = channel();
        self.calls.iter().for_each(|thread| thread.send(Call::Answer(answer.clone())).unwrap());
        self.calls.iter().for_each(|_| answers.recv().unwrap());
    }

    /// Ends all threads when they have no call left.
    fn end(mut self) {
        self.handoff.stop();
        self.calls.clear();
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// One kernel after another, each for the helpers of its round: every part runs at most once, the caller's
/// always, and none after the caller has returned. A lost call is a deadlock, which the model reports.
fn kernels(count: usize, rounds: &[usize]) {
    let mut pool = Pool::new(count);
    for (round, &wanted) in rounds.iter().enumerate() {
        let counts: Vec<shuttle::sync::atomic::AtomicUsize> = (0..=count).map(|_| Default::default()).collect();
        let running = shuttle::sync::atomic::AtomicUsize::new(0);
        let part = |number: usize| {
            running.fetch_add(1, Ordering::SeqCst);
            counts[number].fetch_add(1, Ordering::SeqCst);
            running.fetch_sub(1, Ordering::SeqCst);
        };
        pool.run(wanted, &part);
        assert_eq!(running.load(Ordering::SeqCst), 0, "a part runs on");
        for (number, count) in counts.iter().enumerate() {
            let count = count.load(Ordering::SeqCst);
            assert!(count <= usize::from(number <= wanted) && (number > 0 || count == 1), "part {number}: {count}");
        }
        if round % 2 == 1 {
            pool.use_otherwise();
        }
    }
    pool.end();
}

#[test]
fn kernels_follow_each_other() {
    shuttle::check_random(|| kernels(2, &[2, 2, 1, 2]), SCHEDULES);
}

#[test]
fn many_helpers_come_and_go() {
    shuttle::check_pct(|| kernels(6, &[6, 0, 6]), SCHEDULES / 3, 3);
}

#[test]
fn a_kernel_that_needs_its_helper_gets_it() {
    // The caller's part ends when the helper's has begun: a helper that left unseen would be a deadlock.
    let program = || {
        let mut pool = Pool::new(1);
        assert!(!pool.handoff.are_awake(1));
        for _ in 0..3 {
            let met = (shuttle::sync::Mutex::new(false), shuttle::sync::Condvar::new());
            let part = |number: usize| {
                let mut begun = met.0.lock().unwrap();
                if number == 1 {
                    *begun = true;
                    met.1.notify_all();
                }
                while !*begun {
                    begun = met.1.wait(begun).unwrap();
                }
            };
            pool.run(1, &part);
            if shuttle::rand::thread_rng().gen_bool(0.5) {
                pool.handoff.dismiss();
            }
        }
        pool.end();
    };
    shuttle::check_random(program, SCHEDULES);
}

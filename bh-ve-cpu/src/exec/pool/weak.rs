//! The hand-off of kernels in a model of weak memory: the same file as the engine's, on the words of a model that tries every order in
//! which a processor may let other threads see them.

mod sync {
    use std::time::Duration;

    pub(super) use loom::cell::UnsafeCell;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, fence};
    pub(super) use loom::sync::{Mutex, MutexGuard};
    pub(super) use loom::thread::{Thread, current, park};

    use std::sync::atomic::Ordering;

    /// Looks once, as there is no time in a model.
    pub(super) fn look<T>(_: Duration, what: impl Fn() -> Option<T>) -> Option<T> {
        what()
    }

    /// A value that one thread sets once, made of the model's words: the standard library's type would add orderings.
    pub(super) struct OnceLock<T> {
        is_set: AtomicBool,
        value: UnsafeCell<Option<T>>,
    }

    impl<T> Default for OnceLock<T> {
        fn default() -> OnceLock<T> {
            OnceLock { is_set: AtomicBool::new(false), value: UnsafeCell::new(None) }
        }
    }

    impl<T> OnceLock<T> {
        pub(super) fn get(&self) -> Option<&T> {
            // SAFETY: nothing is written once it is set.
            let value = |value: *const Option<T>| unsafe { (*value).as_ref() };
            if self.is_set.load(Ordering::Acquire) { self.value.with(value) } else { None }
        }

        /// Only one thread calls it.
        pub(super) fn get_or_init(&self, make: impl FnOnce() -> T) {
            if self.get().is_none() {
                // SAFETY: nobody reads it before it is set.
                self.value.with_mut(|value| unsafe { *value = Some(make()) });
                self.is_set.store(true, Ordering::Release);
            }
        }
    }
}

// Loaded once more on purpose: `sync` means the model here.
#[allow(clippy::duplicate_mod, dead_code)]
#[path = "handoff.rs"]
mod handoff;

use handoff::Handoff;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicUsize};
use loom::thread::{Thread, current, park};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a thread is interrupted where it could go on, in the schedules that are tried.
const INTERRUPTIONS: usize = 2;

/// The words of a pool. Threads wait for them by parking, as the model wakes a thread for the hand-off whatever it waits for.
struct Words {
    handoff: Handoff,
    /// How many stints the helpers are called for, and whether these were the last.
    stints: AtomicUsize,
    is_over: AtomicBool,
    /// How many threads have ended.
    ended: AtomicUsize,
}

/// A pool of the model.
struct Pool {
    words: Arc<Words>,
    threads: Vec<Thread>,
}

impl Pool {
    fn new(helpers: usize) -> Pool {
        let handoff = Handoff::new(helpers, Duration::ZERO);
        let (stints, is_over, ended) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
        let words = Arc::new(Words { handoff, stints, is_over, ended });
        let caller = current();
        let spawn = |number| {
            let (words, caller) = (Arc::clone(&words), caller.clone());
            let work = move || {
                words.work(number);
                words.ended.fetch_add(1, Ordering::Release);
                caller.unpark();
            };
            loom::thread::spawn(work).thread().clone()
        };
        let threads = (1..=helpers).map(spawn).collect();
        Pool { words, threads }
    }

    fn call(&self, word: impl Fn(&Words)) {
        word(&self.words);
        self.threads.iter().for_each(Thread::unpark);
    }

    fn run(&mut self, helpers: usize, job: &(dyn Fn(usize) + Sync)) {
        let call = || self.call(|words| _ = words.stints.fetch_add(1, Ordering::Release));
        // SAFETY: the exclusive reference lets no calls overlap.
        unsafe { self.words.handoff.run(helpers, job, call) };
    }

    fn end(self) {
        self.words.handoff.stop();
        self.call(|words| words.is_over.store(true, Ordering::Release));
        while self.words.ended.load(Ordering::Acquire) < self.threads.len() {
            park();
        }
    }
}

impl Words {
    /// The loop of a thread of the pool.
    fn work(&self, number: usize) {
        let mut done = 0;
        loop {
            if self.stints.load(Ordering::Acquire) > done {
                done += 1;
                self.handoff.stint(number);
            } else if self.is_over.load(Ordering::Acquire) {
                return;
            } else {
                park();
            }
        }
    }
}

/// How often each part of a kernel has run, in memory that the parts write without a lock: the model finds a caller that reads
/// while a part still writes.
struct Counts(Vec<UnsafeCell<u32>>);

// SAFETY: a part writes its own count, and the caller reads them when the parts have ended.
unsafe impl Sync for Counts {}

impl Counts {
    fn new(parts: usize) -> Counts {
        Counts((0..parts).map(|_| UnsafeCell::new(0)).collect())
    }

    fn add(&self, part: usize) {
        // SAFETY: only this part writes there.
        self.0[part].with_mut(|count| unsafe { *count += 1 });
    }

    fn get(&self, part: usize) -> u32 {
        // SAFETY: the part has ended.
        self.0[part].with(|count| unsafe { *count })
    }
}

/// Tries the orders of a program.
fn check(program: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(INTERRUPTIONS);
    model.max_branches = 10_000;
    model.check(program);
}

/// One kernel after another, each for the helpers of its round; `dismissed` between them.
fn kernels(count: usize, rounds: &[usize], dismissed: bool) {
    let mut pool = Pool::new(count);
    for &wanted in rounds {
        let counts = Counts::new(count + 1);
        pool.run(wanted, &|part| counts.add(part));
        assert_eq!(counts.get(0), 1);
        for part in 1..=count {
            assert!(counts.get(part) <= u32::from(part <= wanted), "part {part}");
        }
        if dismissed {
            pool.words.handoff.dismiss();
        }
    }
    pool.end();
}

#[test]
fn kernels_follow_each_other() {
    check(|| kernels(1, &[1, 1], false));
}

#[test]
fn a_helper_comes_and_goes() {
    check(|| kernels(1, &[1, 1], true));
}

#[test]
fn several_helpers() {
    check(|| kernels(2, &[2], false));
}

#[test]
fn a_kernel_that_needs_its_helper_gets_it() {
    // The caller's part ends when the helper's has begun: a helper that sleeps or leaves unseen would be a deadlock.
    check(|| {
        let mut pool = Pool::new(1);
        for _ in 0..2 {
            let (begun, caller) = (AtomicBool::new(false), current());
            let part = |number: usize| {
                if number == 1 {
                    begun.store(true, Ordering::Release);
                    caller.unpark();
                }
                while !begun.load(Ordering::Acquire) {
                    park();
                }
            };
            pool.run(1, &part);
            pool.words.handoff.dismiss();
        }
        pool.end();
    });
}

//! The hand-off of kernels under random schedules: the same file as the engine's, on threads and words of a model.

mod sync {
    use std::time::Duration;

    pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicU64, fence};
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
    pub(super) use shuttle::thread::{Thread, current, park};

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

#[path = "handoff.rs"]
mod handoff;

use handoff::{Handoff, MOST_HELPERS};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So many schedules are tried of each program.
const SCHEDULES: usize = 3000;

/// Helpers on threads of the model, and their hand-off.
fn helpers(count: usize) -> (Arc<Handoff>, Vec<shuttle::thread::JoinHandle<()>>) {
    assert!(count <= MOST_HELPERS);
    let handoff = Arc::new(Handoff::new(count, Duration::ZERO));
    let threads = (1..=count).map(|number| {
        let shared = handoff.clone();
        let thread = shuttle::thread::spawn(move || shared.help(number));
        handoff.introduce(number, thread.thread().clone());
        thread
    });
    let threads = threads.collect();
    (handoff, threads)
}

/// One kernel after another, each for so many helpers: every part runs at most once, the caller's
/// always, and none after the caller has returned. A lost wake-up is a deadlock, which the model reports.
fn kernels(count: usize, rounds: &[usize]) {
    let (handoff, threads) = helpers(count);
    for &wanted in rounds {
        let counts: Vec<shuttle::sync::atomic::AtomicUsize> = (0..=count).map(|_| Default::default()).collect();
        let running = shuttle::sync::atomic::AtomicUsize::new(0);
        let part = |number: usize| {
            running.fetch_add(1, Ordering::SeqCst);
            counts[number].fetch_add(1, Ordering::SeqCst);
            running.fetch_sub(1, Ordering::SeqCst);
        };
        // SAFETY: one thread makes all such calls.
        unsafe { handoff.run(wanted, &part) };
        assert_eq!(running.load(Ordering::SeqCst), 0, "a part runs on");
        for (number, count) in counts.iter().enumerate() {
            let count = count.load(Ordering::SeqCst);
            assert!(count <= usize::from(number <= wanted) && (number > 0 || count == 1), "part {number}: {count}");
        }
    }
    handoff.stop();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn kernels_follow_each_other() {
    shuttle::check_random(|| kernels(2, &[2, 2, 1, 2]), SCHEDULES);
}

#[test]
fn many_helpers_wake_each_other() {
    shuttle::check_pct(|| kernels(6, &[6, 0, 6]), SCHEDULES / 3, 3);
}

#[test]
fn a_kernel_that_needs_its_helper_gets_it() {
    // The caller's part ends when the helper's has begun: a helper that left unseen would be a deadlock.
    let program = || {
        let (handoff, threads) = helpers(1);
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
            // SAFETY: one thread makes all such calls.
            unsafe { handoff.run(1, &part) };
        }
        handoff.stop();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    };
    shuttle::check_random(program, SCHEDULES);
}

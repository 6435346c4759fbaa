//! The threads that help with kernels. After work they wait awake for a while, as the next kernel usually follows at once
//! and waking a sleeping thread takes longer than many kernels do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a thread without work stays awake: a few times what waking it takes.
const AWAKE: Duration = Duration::from_micros(100);

/// States of a helper.
const IDLE: u32 = 0;
const ASLEEP: u32 = 1;
const WORK: u32 = 2;
const STOP: u32 = 3;

/// What helpers run, with their number from 1 on.
type Job = *const (dyn Fn(usize) + Sync);

/// One helper as the others see it, on cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Seat {
    state: AtomicU32,
    thread: OnceLock<Thread>,
}

struct Shared {
    seats: Vec<Seat>,
    /// The running job and its number of helpers.
    job: Mutex<Option<(SharedJob, usize)>>,
    /// Helpers that have not finished the job.
    left: AtomicUsize,
    panicked: AtomicBool,
    /// The thread that sleeps until all have finished.
    waiting: Mutex<Option<Thread>>,
    awake: Duration,
}

#[derive(Clone, Copy)]
struct SharedJob(Job);

// SAFETY: the function is Sync, and `Pool::run` keeps it alive until no helper uses it.
unsafe impl Send for SharedJob {}

/// Helpers that wait for work.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts `helpers` threads; `start` runs first on each, with its number from 1 on.
    pub(super) fn new(helpers: usize, start: impl Fn(usize) + Send + Sync + 'static) -> std::io::Result<Pool> {
        // More threads than processors must not keep each other from working.
        let enough = thread::available_parallelism().is_ok_and(|processors| helpers < processors.get());
        let shared = Arc::new(Shared {
            seats: (0..helpers).map(|_| Seat::default()).collect(),
            job: Mutex::new(None),
            left: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            waiting: Mutex::new(None),
            awake: if enough { AWAKE } else { Duration::ZERO },
        });
        let start = Arc::new(start);
        let mut pool = Pool { shared, threads: Vec::with_capacity(helpers) };
        for number in 1..=helpers {
            let (shared, start) = (pool.shared.clone(), start.clone());
            let builder = thread::Builder::new().name(format!("bh-ve-cpu-{number}"));
            let thread = builder.spawn(move || {
                start(number);
                shared.help(number);
            })?;
            let _ = pool.shared.seats[number - 1].thread.set(thread.thread().clone());
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Runs `job` with the numbers 0 (on the calling thread) to `helpers`, all at once.
    pub(super) fn run(&mut self, helpers: usize, job: &(dyn Fn(usize) + Sync)) {
        let helpers = helpers.min(self.threads.len());
        // SAFETY: only the lifetime changes; the wait below ends after the last use.
        let kept = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(job) };
        self.shared.panicked.store(false, Ordering::Relaxed);
        self.shared.left.store(helpers, Ordering::Relaxed);
        *lock(&self.shared.job) = Some((SharedJob(kept), helpers));
        self.shared.wake_below(0, helpers);
        {
            let _wait = Wait(&self.shared);
            job(0);
        }
        assert!(!self.shared.panicked.load(Ordering::Relaxed), "a helper of a kernel panicked");
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for number in 1..=self.threads.len() {
            self.shared.tell(number, STOP);
        }
        for thread in self.threads.drain(..) {
            // A helper catches the panics of jobs, so there is nothing to learn.
            let _ = thread.join();
        }
    }
}

/// Waits when dropped, so that a panic of the caller's part leaves no helper with a job that is gone.
struct Wait<'a>(&'a Shared);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.wait();
        *lock(&self.0.job) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks again and again until `ready`, for `limit` at most.
fn look(limit: Duration, ready: impl Fn() -> bool) -> bool {
    if ready() {
        return true;
    }
    let begin = Instant::now();
    loop {
        for _ in 0..32 {
            std::hint::spin_loop();
            if ready() {
                return true;
            }
        }
        if begin.elapsed() >= limit {
            return ready();
        }
    }
}

impl Shared {
    /// Changes a helper's state, and wakes it if it sleeps.
    fn tell(&self, number: usize, state: u32) {
        let seat = &self.seats[number - 1];
        if seat.state.swap(state, Ordering::AcqRel) == ASLEEP
            && let Some(thread) = seat.thread.get()
        {
            thread.unpark();
        }
    }

    /// Each participant wakes two more, so that waking many takes logarithmic time.
    fn wake_below(&self, number: usize, helpers: usize) {
        for below in [2 * number + 1, 2 * number + 2] {
            if below <= helpers {
                self.tell(below, WORK);
            }
        }
    }

    /// What a helper does until it is stopped.
    fn help(&self, number: usize) {
        let state = &self.seats[number - 1].state;
        loop {
            let told = || state.load(Ordering::Acquire) >= WORK;
            if !look(self.awake, told)
                && state.compare_exchange(IDLE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
            {
                while !told() {
                    thread::park();
                }
            }
            if state.load(Ordering::Acquire) == STOP {
                return;
            }
            let job = *lock(&self.job);
            if let Some((SharedJob(job), helpers)) = job {
                self.wake_below(number, helpers);
                // SAFETY: the caller of `run` waits until this helper has finished.
                let job = unsafe { &*job };
                if catch_unwind(AssertUnwindSafe(|| job(number))).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                }
            }
            // STOP only comes when no job runs, so it cannot be lost here.
            state.store(IDLE, Ordering::Release);
            if self.left.fetch_sub(1, Ordering::AcqRel) == 1
                && let Some(thread) = lock(&self.waiting).take()
            {
                thread.unpark();
            }
        }
    }

    /// Waits until all helpers have finished the job.
    fn wait(&self) {
        let finished = || self.left.load(Ordering::Acquire) == 0;
        if look(self.awake, finished) {
            return;
        }
        loop {
            // Again in each turn: a helper that is late with the last job may have taken the entry.
            *lock(&self.waiting) = Some(thread::current());
            if finished() {
                break;
            }
            thread::park();
        }
        *lock(&self.waiting) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_helper_runs_every_job_once() {
        let mut pool = Pool::new(5, |_| {}).unwrap();
        for round in 0..200 {
            let helpers = round % 7;
            let counts: Vec<AtomicUsize> = (0..6).map(|_| AtomicUsize::new(0)).collect();
            pool.run(helpers, &|number| {
                counts[number].fetch_add(1, Ordering::Relaxed);
            });
            for (number, count) in counts.iter().enumerate() {
                let wanted = usize::from(number <= helpers.min(5));
                assert_eq!(count.load(Ordering::Relaxed), wanted, "participant {number} of {helpers} helpers");
            }
            if round % 50 == 0 {
                // Long enough for all to fall asleep.
                thread::sleep(4 * AWAKE);
            }
        }
    }

    #[test]
    fn panics_reach_the_caller_and_leave_the_pool_usable() {
        let mut pool = Pool::new(2, |_| {}).unwrap();
        for guilty in [0, 2] {
            let run = || pool.run(2, &|number| assert_ne!(number, guilty, "wanted by the test"));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
        let sum = AtomicUsize::new(0);
        pool.run(2, &|number| {
            sum.fetch_add(number, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 3);
    }
}

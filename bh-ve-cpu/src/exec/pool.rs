//! The threads that help with kernels. After work they wait awake for a while, as the next kernel usually follows soon and
//! waking a sleeping thread takes longer than many kernels do.
//!
//! A job is told to all at once: its number is a word that all helpers look at. Each helper claims its part of the job
//! before it begins; parts that nobody has claimed when the caller is done are taken back, so that nobody waits for
//! helpers that wake up late. Apart from that word, each helper has cache lines of its own.

use bh_core::threads::without_signals;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a thread without work stays awake: several times what waking all takes, and longer than most programs need
/// from one batch to the next.
const AWAKE: Duration = Duration::from_millis(1);
/// How long it does so without letting others run on its processor, who may be what it waits for.
const ALONE: Duration = Duration::from_micros(100);

/// How many sleeping helpers each participant wakes: asking for it takes a fraction of the time that waking up does.
const WAKES: usize = 4;

// The number of a job: from the lowest bit on two bits for what a helper has done, the number of helpers that the job is
// for, and a count that 46 bits are always enough for.
const BEGUN: u64 = 1;
const OVER: u64 = 2;
const HELPER: u64 = 4;
const JOB: u64 = 1 << 18;
const MOST_HELPERS: usize = (JOB / HELPER - 1) as usize;
/// What ends all helpers.
const STOP: u64 = !(BEGUN | OVER);

/// What helpers run, with their number from 1 on.
type Job = *const (dyn Fn(usize) + Sync);

/// Alone on its cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Apart<T>(T);

/// One helper as the others see it.
#[derive(Default)]
struct Seat {
    /// The last job that the helper had a part in, and either `BEGUN` or `OVER`. Only the helper and, for parts that have
    /// not begun, the caller of [`Pool::run`] change it.
    state: Apart<AtomicU64>,
    /// Changes rarely, so that all can look at it often.
    asleep: Apart<AtomicBool>,
    thread: OnceLock<Thread>,
}

/// What is told to the helpers.
struct Told {
    number: AtomicU64,
    /// The job, and whether some of its helpers are to be woken. The caller of [`Pool::run`] writes it while no helper
    /// has begun a part, and helpers read it while they have.
    job: UnsafeCell<Option<(Job, bool)>>,
}

struct Shared {
    told: Apart<Told>,
    seats: Vec<Seat>,
    panicked: AtomicBool,
    /// Does the caller sleep until all have finished?
    waiting: AtomicBool,
    caller: Mutex<Option<Thread>>,
    awake: Duration,
}

// SAFETY: the jobs are Sync, and `Told::job` says who uses it when.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// Helpers that wait for work.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts `helpers` threads; `start` runs first on each, with its number from 1 on.
    pub(super) fn new(helpers: usize, start: impl Fn(usize) + Send + Sync + 'static) -> std::io::Result<Pool> {
        let helpers = helpers.min(MOST_HELPERS);
        // More threads than processors must not keep each other from working.
        let enough = thread::available_parallelism().is_ok_and(|processors| helpers < processors.get());
        let shared = Arc::new(Shared {
            told: Apart(Told { number: AtomicU64::new(0), job: UnsafeCell::new(None) }),
            seats: (0..helpers).map(|_| Seat::default()).collect(),
            panicked: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            caller: Mutex::new(None),
            awake: if enough { AWAKE } else { Duration::ZERO },
        });
        let start = Arc::new(start);
        let mut pool = Pool { shared, threads: Vec::with_capacity(helpers) };
        for number in 1..=helpers {
            let (shared, start) = (pool.shared.clone(), start.clone());
            let builder = thread::Builder::new().name(format!("bh-ve-cpu-{number}"));
            let run = move || {
                start(number);
                shared.help(number);
            };
            let thread = without_signals(|| builder.spawn(run))?;
            let _ = pool.shared.seats[number - 1].thread.set(thread.thread().clone());
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Are so many helpers awake, so that a job begins at once?
    pub(super) fn is_awake(&self, helpers: usize) -> bool {
        !self.shared.some_sleep(helpers.min(self.threads.len()))
    }

    /// Runs `job` with the number 0 on the calling thread and, at the same time, with the numbers up to `helpers` on
    /// helpers. Those that come when the calling thread has finished have no part in it.
    pub(super) fn run(&mut self, helpers: usize, job: &(dyn Fn(usize) + Sync)) {
        let helpers = helpers.min(self.threads.len());
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes; the wait below ends after the last use.
        let kept = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(job) };
        shared.panicked.store(false, Ordering::Relaxed);
        let number = (shared.told.0.number.load(Ordering::Relaxed) / JOB + 1) * JOB + helpers as u64 * HELPER;
        let wakes = shared.some_sleep(helpers);
        // SAFETY: the wait for the last job left no helper with a part that has begun.
        unsafe { *shared.told.0.job.get() = Some((kept, wakes)) };
        shared.told.0.number.store(number, Ordering::SeqCst);
        let wait = Wait { shared, number, helpers };
        if wakes {
            shared.wake_below(0, helpers);
        } else if shared.some_sleep(helpers) {
            // One that fell asleep just now.
            (1..=helpers).for_each(|helper| shared.wake(helper));
        }
        job(0);
        drop(wait);
        assert!(!shared.panicked.load(Ordering::Relaxed), "a helper of a kernel panicked");
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.told.0.number.store(STOP, Ordering::SeqCst);
        (1..=self.threads.len()).for_each(|helper| self.shared.wake(helper));
        for thread in self.threads.drain(..) {
            // A helper catches the panics of jobs, so there is nothing to learn.
            let _ = thread.join();
        }
    }
}

/// Waits when dropped, so that a panic of the caller's part leaves no helper with a job that is gone.
struct Wait<'a> {
    shared: &'a Shared,
    number: u64,
    helpers: usize,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.shared.wait(self.number, self.helpers);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks again and again until there is something, for `limit` at most.
fn look<T>(limit: Duration, what: impl Fn() -> Option<T>) -> Option<T> {
    if let Some(seen) = what() {
        return Some(seen);
    }
    let begin = Instant::now();
    loop {
        for _ in 0..32 {
            std::hint::spin_loop();
            if let Some(seen) = what() {
                return Some(seen);
            }
        }
        let elapsed = begin.elapsed();
        if elapsed >= limit {
            return what();
        }
        if elapsed >= ALONE {
            thread::yield_now();
        }
    }
}

impl Shared {
    /// Is one of the first helpers asleep?
    fn some_sleep(&self, helpers: usize) -> bool {
        self.seats[..helpers].iter().any(|seat| seat.asleep.0.load(Ordering::SeqCst))
    }

    /// Wakes a helper if it sleeps.
    fn wake(&self, helper: usize) {
        let seat = &self.seats[helper - 1];
        if seat.asleep.0.load(Ordering::SeqCst)
            && seat.asleep.0.swap(false, Ordering::SeqCst)
            && let Some(thread) = seat.thread.get()
        {
            thread.unpark();
        }
    }

    /// Each participant wakes a few more, so that waking many takes logarithmic time.
    fn wake_below(&self, number: usize, helpers: usize) {
        let first = number * WAKES + 1;
        (first..first + WAKES).take_while(|&helper| helper <= helpers).for_each(|helper| self.wake(helper));
    }

    /// What a helper does until it is stopped.
    fn help(&self, helper: usize) {
        let seat = &self.seats[helper - 1];
        let mut last = 0;
        loop {
            let told = self.await_job(seat, helper, last);
            if told == STOP {
                return;
            }
            last = told;
            let state = seat.state.0.load(Ordering::Relaxed);
            // A higher number: this job or a later one has ended without the helper.
            let claim = || seat.state.0.compare_exchange(state, told | BEGUN, Ordering::AcqRel, Ordering::Relaxed);
            if state > told || claim().is_err() {
                continue;
            }
            // SAFETY: the part has begun, so the caller of `run` waits, and the job is the one that was told.
            if let Some((job, wakes)) = unsafe { *self.told.0.job.get() } {
                if wakes {
                    self.wake_below(helper, helpers_of(told));
                }
                // SAFETY: as above; the job is alive until this helper has finished.
                let job = unsafe { &*job };
                if catch_unwind(AssertUnwindSafe(|| job(helper))).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                }
            }
            seat.state.0.store(told | OVER, Ordering::Release);
            // Either the caller sees the end of this part before it sleeps, or this sees that it sleeps.
            fence(Ordering::SeqCst);
            if self.waiting.load(Ordering::Relaxed)
                && let Some(thread) = &*lock(&self.caller)
            {
                thread.unpark();
            }
        }
    }

    /// Waits for a job after `last` that a helper has a part in.
    fn await_job(&self, seat: &Seat, helper: usize, last: u64) -> u64 {
        let news = || {
            let told = self.told.0.number.load(Ordering::SeqCst);
            (told > last && (told == STOP || helpers_of(told) >= helper)).then_some(told)
        };
        if let Some(told) = look(self.awake, news) {
            return told;
        }
        loop {
            // Either this sees the job, or the caller of `run` sees that it sleeps.
            seat.asleep.0.store(true, Ordering::SeqCst);
            if let Some(told) = news() {
                seat.asleep.0.store(false, Ordering::SeqCst);
                return told;
            }
            thread::park();
        }
    }

    /// Waits until all helpers have finished their parts of a job; those that have not begun never will.
    fn wait(&self, number: u64, helpers: usize) {
        let seats = &self.seats[..helpers];
        for seat in seats {
            let state = seat.state.0.load(Ordering::Relaxed);
            if state < number {
                // If it fails, the helper has begun.
                let over = number | OVER;
                let _ = seat.state.0.compare_exchange(state, over, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
        let finished = || seats.iter().all(|seat| seat.state.0.load(Ordering::Acquire) == number | OVER);
        if look(self.awake, || finished().then_some(())).is_some() {
            return;
        }
        *lock(&self.caller) = Some(thread::current());
        self.waiting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !finished() {
            thread::park();
        }
        self.waiting.store(false, Ordering::Relaxed);
    }
}

/// The number of helpers that a job is for.
fn helpers_of(number: u64) -> usize {
    (number % JOB / HELPER) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn helpers_run_every_job_at_most_once_and_only_their_own() {
        let mut pool = Pool::new(5, |_| {}).unwrap();
        let mut helped = 0;
        for round in 0..600 {
            let helpers = round % 7;
            let counts: Vec<AtomicUsize> = (0..6).map(|_| AtomicUsize::new(0)).collect();
            pool.run(helpers, &|number| {
                counts[number].fetch_add(1, Ordering::Relaxed);
                // Long enough for others to come, in some rounds.
                thread::sleep(Duration::from_micros(if round % 3 == 0 { 200 } else { 0 }));
            });
            for (number, count) in counts.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                let most = usize::from(number <= helpers.min(5));
                assert!(count <= most && (number > 0 || count == 1), "participant {number} of {helpers}: {count}");
                helped += if number > 0 { count } else { 0 };
            }
            if round % 50 == 0 {
                // Long enough for all to fall asleep.
                thread::sleep(4 * AWAKE);
            }
        }
        assert!(helped > 100, "helpers had {helped} parts of jobs");
    }

    #[test]
    fn panics_reach_the_caller_and_leave_the_pool_usable() {
        let mut pool = Pool::new(2, |_| {}).unwrap();
        for guilty in [0, 2] {
            let all = AtomicUsize::new(0);
            let run = || {
                pool.run(2, &|number| {
                    // All take part.
                    all.fetch_add(1, Ordering::Relaxed);
                    while all.load(Ordering::Relaxed) < 3 {
                        thread::yield_now();
                    }
                    assert_ne!(number, guilty, "wanted by the test");
                });
            };
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
        let began = AtomicUsize::new(0);
        pool.run(2, &|_| {
            began.fetch_add(1, Ordering::Relaxed);
        });
        assert!(began.into_inner() > 0);
    }
}

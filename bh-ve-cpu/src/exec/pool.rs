//! The threads that help with kernels. After work they wait awake for a while, as the next kernel usually follows soon and
//! waking a sleeping thread takes longer than many kernels do.

mod handoff;
#[cfg(test)]
mod model;
mod sync;

use bh_core::threads::without_signals;
use handoff::{Handoff, MOST_HELPERS};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a thread without work stays awake: several times what waking all takes, and longer than most programs need
/// from one batch to the next.
const AWAKE: Duration = Duration::from_millis(1);

/// Helpers that wait for work.
pub(super) struct Pool {
    handoff: Arc<Handoff>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts `helpers` threads; `start` runs first on each, with its number from 1 on.
    pub(super) fn new(helpers: usize, start: impl Fn(usize) + Send + Sync + 'static) -> std::io::Result<Pool> {
        let helpers = helpers.min(MOST_HELPERS);
        // More threads than processors must not keep each other from working.
        let enough = thread::available_parallelism().is_ok_and(|processors| helpers < processors.get());
        let handoff = Arc::new(Handoff::new(helpers, if enough { AWAKE } else { Duration::ZERO }));
        let start = Arc::new(start);
        let mut pool = Pool { handoff, threads: Vec::with_capacity(helpers) };
        for number in 1..=helpers {
            let (handoff, start) = (pool.handoff.clone(), start.clone());
            let builder = thread::Builder::new().name(format!("bh-ve-cpu-{number}"));
            let run = move || {
                start(number);
                handoff.help(number);
            };
            let thread = without_signals(|| builder.spawn(run))?;
            pool.handoff.introduce(number, thread.thread().clone());
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Are so many helpers awake, so that a job begins at once?
    pub(super) fn is_awake(&self, helpers: usize) -> bool {
        !self.handoff.some_sleep(helpers.min(self.threads.len()))
    }

    /// Runs `job` with the number 0 on the calling thread and, at the same time, with the numbers up to `helpers` on
    /// helpers. Those that come when the calling thread has finished have no part in it.
    pub(super) fn run(&mut self, helpers: usize, job: &(dyn Fn(usize) + Sync)) {
        // SAFETY: the exclusive reference lets no calls overlap.
        unsafe { self.handoff.run(helpers, job) };
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.handoff.stop();
        for thread in self.threads.drain(..) {
            // A helper catches the panics of jobs, so there is nothing to learn.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

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

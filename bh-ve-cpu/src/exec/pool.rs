//! The threads that help with kernels: rayon's, in a pool of the engine's own. After work they wait awake for a while, as
//! the next kernel usually follows soon and waking a sleeping thread takes longer than many kernels do.
//!
//! Methods that are parallel by themselves use the pool through rayon's interface. Only how kernels, and tasks of methods
//! that are like them, reach the helpers is bh's own: on 16 cores a scope of rayon's takes 16 µs, this 3.

mod handoff;
#[cfg(test)]
mod model;
mod sync;
#[cfg(test)]
mod weak;

use bh_core::threads::without_signals;
use handoff::{Handoff, MOST_HELPERS};
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use std::io;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The time that a thread without work stays awake: several times the time of waking all threads, and longer than most programs take
/// from one batch to the next.
const AWAKE: Duration = Duration::from_millis(1);

/// How often the calling thread of other work looks up.
const BETWEEN: Duration = Duration::from_micros(500);

/// As many threads as take part in a kernel. The calling thread has the part of the first, which helps with methods only.
pub(super) struct Pool {
    handoff: Arc<Handoff>,
    threads: ManuallyDrop<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts a thread for each participant; `start` runs first on each, with its number from 0 on.
    pub(super) fn new(participants: usize, start: impl Fn(usize) + Send + Sync + 'static) -> Result<Pool, String> {
        let participants = participants.clamp(1, MOST_HELPERS + 1);
        // More threads than processors must not keep each other from working.
        let enough = thread::available_parallelism().is_ok_and(|processors| participants <= processors.get());
        let handoff = Arc::new(Handoff::new(participants - 1, if enough { AWAKE } else { Duration::ZERO }));
        let handles = Mutex::new(Vec::with_capacity(participants));
        let spawn = |worker: ThreadBuilder| -> io::Result<()> {
            let builder = thread::Builder::new().name(format!("bh-ve-cpu-{}", worker.index()));
            let handle = without_signals(|| builder.spawn(move || worker.run()))?;
            handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
            Ok(())
        };
        let builder = ThreadPoolBuilder::new().num_threads(participants).start_handler(start).spawn_handler(spawn);
        let threads = builder.build().map_err(|error| error.to_string())?;
        let handles = handles.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Pool { handoff, threads: ManuallyDrop::new(threads), handles })
    }

    /// Are `helpers` helpers awake, so that a job begins at once?
    pub(super) fn is_awake(&self, helpers: usize) -> bool {
        self.handoff.are_awake(helpers)
    }

    /// Runs `job` with the number 0 on the calling thread and, at the same time, with the numbers up to `helpers` on
    /// helpers. Those that come when the calling thread has finished have no part in it.
    pub(super) fn run(&mut self, helpers: usize, job: &(dyn Fn(usize) + Sync)) {
        let call = || {
            let handoff = self.handoff.clone();
            self.threads.spawn_broadcast(move |thread| handoff.stint(thread.index()));
        };
        // SAFETY: the exclusive reference lets no calls overlap.
        unsafe { self.handoff.run(helpers, job, call) };
    }

    /// Runs work of rayon's own kinds on the threads, and `between` on the calling thread now and then meanwhile.
    pub(super) fn install(&self, work: &mut (dyn FnMut() + Send), between: &dyn Fn()) {
        self.handoff.dismiss();
        let (caller, done) = (thread::current(), AtomicBool::new(false));
        self.threads.in_place_scope(|scope| {
            scope.spawn(|_| {
                let result = catch_unwind(AssertUnwindSafe(work));
                done.store(true, Ordering::Release);
                caller.unpark();
                result.unwrap_or_else(|panic| resume_unwind(panic));
            });
            while !done.load(Ordering::Acquire) {
                between();
                thread::park_timeout(BETWEEN);
            }
        });
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.handoff.stop();
        // SAFETY: nobody uses it from now on. Its threads end when asked to, and can be joined.
        unsafe { ManuallyDrop::drop(&mut self.threads) };
        for handle in self.handles.drain(..) {
            // A helper catches the panics of jobs, so there is nothing to learn.
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::iter::{IntoParallelIterator, ParallelIterator};
    use std::sync::atomic::AtomicUsize;
    use std::time::Instant;

    #[test]
    fn helpers_run_every_job_at_most_once_and_only_their_own() {
        let mut pool = Pool::new(6, |_| {}).unwrap();
        for round in 0..600 {
            let helpers = round % 7;
            let counts: Vec<AtomicUsize> = (0..6).map(|_| AtomicUsize::new(0)).collect();
            let all = AtomicUsize::new(0);
            let everyone = 1 + helpers.min(5);
            pool.run(helpers, &|number| {
                counts[number].fetch_add(1, Ordering::Relaxed);
                all.fetch_add(1, Ordering::Relaxed);
                // In some rounds until the others have come.
                while round % 3 == 0 && all.load(Ordering::Relaxed) < everyone {
                    thread::yield_now();
                }
            });
            assert!(round % 3 > 0 || all.into_inner() == everyone, "round {round}");
            for (number, count) in counts.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                let most = usize::from(number <= helpers.min(5));
                assert!(count <= most && (number > 0 || count == 1), "participant {number} of {helpers}: {count}");
            }
            if round % 50 == 0 {
                // Some leave.
                thread::sleep(4 * AWAKE);
            }
        }
    }

    #[test]
    fn panics_reach_the_caller_and_leave_the_pool_usable() {
        let mut pool = Pool::new(3, |_| {}).unwrap();
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

    #[test]
    fn kernels_and_other_work_take_turns() {
        let mut pool = Pool::new(3, |_| {}).unwrap();
        for round in 0..300 {
            let (sum, looks) = (AtomicUsize::new(0), AtomicUsize::new(0));
            pool.run(2, &|_| _ = sum.fetch_add(1, Ordering::Relaxed));
            let mut names = Vec::new();
            let mut work = || {
                assert_eq!(rayon::current_num_threads(), 3);
                names = (0..100).into_par_iter().map(|_| thread::current().name().map(str::to_owned)).collect();
                // Long work lasts until the caller has looked up twice.
                let end = Instant::now() + Duration::from_secs(120);
                while round % 10 == 0 && looks.load(Ordering::Relaxed) < 2 && Instant::now() < end {
                    thread::sleep(Duration::from_micros(100));
                }
            };
            pool.install(&mut work, &|| _ = looks.fetch_add(1, Ordering::Relaxed));
            assert!(names.into_iter().all(|name| name.unwrap().starts_with("bh-ve-cpu-")));
            assert!(round % 10 > 0 || looks.into_inner() > 1);
        }
        let fails = || pool.install(&mut || panic!("wanted by the test"), &|| {});
        assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
        pool.run(2, &|_| {});
    }
}

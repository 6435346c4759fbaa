//! The participants of a kernel: the calling thread and the instance's own pool.

use super::pool::Pool;
use super::queue::{Between, Queue, Tasks};
use super::scratch::Scratch;
use bh_core::Host;
use bh_methods::Parallel;
use std::cell::{Cell, UnsafeCell};
use std::time::{Duration, Instant};

/// Work below this many units (about 0.04 ns each) is done by the calling thread alone: waking a sleeping thread costs
/// 30 to 75 µs.
const SERIAL: u64 = 2_000_000;
/// The same where the helpers are awake, or worth waking as such kernels follow each other closely.
const SERIAL_AWAKE: u64 = 400_000;
/// How close that is, and how many kernels show that there will be more.
const CLOSE: Duration = Duration::from_micros(200);
const STREAK: u32 = 4;
/// Units of a task, about: no participant should wait long for the last task of another one.
const TASK: u64 = 400_000;
/// Units of a task of a thread that works alone: about a millisecond.
const LONG: u64 = 25_000_000;
/// The fewest and the most tasks of a participant.
const LEAST_TASKS: u64 = 4;
const MOST_TASKS: u64 = 64;

/// The calling thread and the pool.
pub(crate) struct Workers {
    pool: Option<Pool>,
    threads: usize,
    scratch: Vec<Own>,
    queue: Queue,
    /// When the last kernel came that may be worth sharing, and how many have come closely in a row.
    recent: Cell<Option<(Instant, u32)>>,
    /// A function that the calling thread calls between tasks.
    between: Box<Between>,
    /// Where helpers note when they took part, if there is a trace.
    trace: Option<Host>,
}

struct Own(UnsafeCell<Scratch>);

// SAFETY: each participant uses only its own scratch; `Workers::run` hands numbers out once.
unsafe impl Sync for Own {}

impl Workers {
    /// Makes the pool for `threads` participants. `start` runs first on each of its threads, with its number.
    pub(crate) fn new(threads: usize, start: impl Fn(usize) + Send + Sync + 'static) -> Result<Workers, String> {
        let pool = if threads > 1 { Some(Pool::new(threads, start)?) } else { None };
        let scratch = (0..threads).map(|_| Own(UnsafeCell::new(Scratch::new()))).collect();
        let (queue, recent) = (Queue::new(threads), Cell::new(None));
        Ok(Workers { pool, threads, scratch, queue, recent, between: Box::new(|| {}), trace: None })
    }

    /// Has the calling thread call `between` before each of its tasks.
    pub(crate) fn set_between(&mut self, between: impl Fn() + Send + Sync + 'static) {
        self.between = Box::new(between);
    }

    /// Has helpers note in the host's trace, if there is one, when they took part.
    pub(crate) fn set_trace(&mut self, host: Host) {
        self.trace = (host.trace_clock() != 0).then_some(host);
    }

    /// The number of participants.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// The calling thread's working memory.
    pub(crate) fn own(&mut self) -> &mut Scratch {
        self.scratch[0].0.get_mut()
    }

    /// How many participants should share work of this many units.
    pub(crate) fn participants(&self, units: u64) -> usize {
        let wanted = if units < SERIAL_AWAKE { 1 } else { self.threads.min((units / (SERIAL_AWAKE / 2)) as usize) };
        if wanted > 1 && self.are_at_hand(wanted, units) { wanted } else { 1 }
    }

    /// Are `participants` participants there for work of this many units, or is it worth waking them?
    fn are_at_hand(&self, participants: usize, units: u64) -> bool {
        let now = Instant::now();
        let close =
            |(last, streak): (Instant, u32)| (now.duration_since(last) < CLOSE).then_some(streak.min(STREAK) + 1);
        let streak = self.recent.get().and_then(close).unwrap_or(0);
        self.recent.set(Some((now, streak)));
        let awake = || self.pool.as_ref().is_some_and(|pool| pool.is_awake(participants - 1));
        units >= SERIAL || streak >= STREAK || awake()
    }

    /// Into how many tasks work of `units` units, with `parts` parts that can be done side by side, should be cut.
    pub(crate) fn tasks(&self, participants: usize, units: u64, parts: i64) -> i64 {
        if participants == 1 {
            // One, unless that keeps the calling thread from all else for long.
            return parts.min((units / LONG).max(1) as i64);
        }
        let each = (units / participants as u64 / TASK).clamp(LEAST_TASKS, MOST_TASKS);
        parts.min(participants as i64 * each as i64)
    }

    /// Runs `body` on up to `participants` threads, the calling one among them; each takes tasks until none is left. It
    /// begins with a share of its own, always the same one of the same tasks, as its caches may have their data.
    pub(crate) fn run(&mut self, participants: usize, tasks: usize, body: impl Fn(&mut Scratch, &Tasks<'_>) + Sync) {
        let participants = participants.min(tasks).clamp(1, self.threads);
        let helpers = participants - 1;
        let queue = self.queue.start(tasks, participants);
        let (scratch, between, trace) = (&self.scratch, &*self.between, self.trace);
        let work = |participant: usize| {
            // SAFETY: every participant number is handed out once per call, and calls are exclusive.
            let scratch = unsafe { &mut *scratch[participant].0.get() };
            let trace = trace.filter(|_| participant > 0);
            let begin = trace.map_or(0, |host| host.trace_clock());
            body(scratch, &queue.tasks(participant, (participant == 0).then_some(between)));
            if let Some(host) = trace {
                host.trace("helps", begin, "");
            }
        };
        match &mut self.pool {
            Some(pool) if helpers > 0 => pool.run(helpers, &work),
            _ => work(0),
        }
    }
}

// SAFETY: tasks are taken from one counter, and a call has the engine's threads to itself.
unsafe impl Parallel for Workers {
    fn participants(&self, units: u64) -> usize {
        Workers::participants(self, units)
    }

    fn run(&mut self, participants: usize, tasks: usize, body: &(dyn Fn(&mut dyn Iterator<Item = usize>) + Sync)) {
        Workers::run(self, participants, tasks, |_, tasks| body(&mut std::iter::from_fn(|| tasks.take())));
    }

    fn install(&mut self, work: &mut (dyn FnMut() + Send)) -> bool {
        let Some(pool) = &self.pool else { return false };
        pool.install(work, &self.between);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_task_of_many_small_jobs_runs_once() {
        for threads in [1, 2, 5] {
            let mut workers = Workers::new(threads, |_| {}).unwrap();
            for round in 0..20_000 {
                let (participants, tasks) = (round % threads + 1, round % 23);
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                workers.run(participants, tasks, |_, tasks| {
                    while let Some(task) = tasks.take() {
                        counts[task].fetch_add(1, Ordering::Relaxed);
                    }
                });
                let wrong = counts.iter().position(|count| count.load(Ordering::Relaxed) != 1);
                assert_eq!(wrong, None, "round {round}: {participants} of {threads} participants, {tasks} tasks");
                if round % 4000 == 0 {
                    // Some fall asleep.
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
    }

    #[test]
    fn the_calling_thread_looks_up_between_tasks() {
        for threads in [1, 3] {
            let mut workers = Workers::new(threads, |_| {}).unwrap();
            let caller = std::thread::current().id();
            let looks = std::sync::Arc::new(AtomicUsize::new(0));
            let seen = looks.clone();
            workers.set_between(move || {
                assert_eq!(std::thread::current().id(), caller);
                seen.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(workers.tasks(1, LONG / 2, 100), 1);
            let tasks = workers.tasks(1, 10 * LONG, 100) as usize;
            assert_eq!(tasks, 10);
            workers.run(threads, tasks, |_, tasks| while tasks.take().is_some() {});
            let looks = looks.load(Ordering::Relaxed);
            assert!(looks >= 1 && (threads > 1 || looks == tasks + 1), "{looks}");
        }
    }
}

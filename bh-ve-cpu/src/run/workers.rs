//! The participants of a kernel: the calling thread and the instance's own pool.

use super::pool::Pool;
use super::scratch::Scratch;
use bh_methods::Parallel;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Work below this many units (about 0.04 ns each) is done by the calling thread alone: waking a sleeping thread costs
/// 30 to 75 µs.
const SERIAL: u64 = 2_000_000;
/// The same where the helpers are awake, as they are when such kernels follow each other closely.
const SERIAL_AWAKE: u64 = 400_000;
/// How close that is, and how many kernels show that there will be more.
const CLOSE: Duration = Duration::from_micros(200);
const STREAK: u32 = 4;

/// The calling thread and the pool.
pub(crate) struct Workers {
    pool: Option<Pool>,
    threads: usize,
    scratch: Vec<Own>,
    /// When the last kernel came that may be worth sharing, and how many have come closely in a row.
    recent: Cell<Option<(Instant, u32)>>,
}

struct Own(UnsafeCell<Scratch>);

// SAFETY: each participant uses only its own scratch; `Workers::run` hands numbers out once.
unsafe impl Sync for Own {}

/// The tasks of a kernel: participants take the next one until there is none.
pub(crate) struct Tasks {
    next: AtomicUsize,
    count: usize,
}

impl Tasks {
    /// The next task.
    #[inline]
    pub(crate) fn take(&self) -> Option<usize> {
        let task = self.next.fetch_add(1, Ordering::Relaxed);
        (task < self.count).then_some(task)
    }
}

impl Workers {
    /// Makes the pool: `threads` participants in all. `start` runs first on each thread of the pool, with its number.
    pub(crate) fn new(threads: usize, start: impl Fn(usize) + Send + Sync + 'static) -> Result<Workers, String> {
        let pool =
            if threads > 1 { Some(Pool::new(threads - 1, start).map_err(|error| error.to_string())?) } else { None };
        let scratch = (0..threads).map(|_| Own(UnsafeCell::new(Scratch::new()))).collect();
        Ok(Workers { pool, threads, scratch, recent: Cell::new(None) })
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
        if units < SERIAL_AWAKE || self.threads == 1 {
            return 1;
        }
        let now = Instant::now();
        let close =
            |(last, streak): (Instant, u32)| (now.duration_since(last) < CLOSE).then_some(streak.min(STREAK) + 1);
        let streak = self.recent.get().and_then(close).unwrap_or(0);
        self.recent.set(Some((now, streak)));
        if units < SERIAL && streak < STREAK {
            return 1;
        }
        self.threads.min((units / (SERIAL_AWAKE / 2)) as usize)
    }

    /// Runs `body` on up to `participants` threads, the calling one among them; each takes tasks until none is left.
    pub(crate) fn run(&mut self, participants: usize, tasks: usize, body: impl Fn(&mut Scratch, &Tasks) + Sync) {
        let tasks = Tasks { next: AtomicUsize::new(0), count: tasks };
        let helpers = participants.min(tasks.count).saturating_sub(1);
        let scratch = &self.scratch;
        let work = |participant: usize| {
            // SAFETY: every participant number is handed out once per call, and calls are exclusive.
            let scratch = unsafe { &mut *scratch[participant].0.get() };
            body(scratch, &tasks);
        };
        match &mut self.pool {
            Some(pool) if helpers > 0 => pool.run(helpers, &work),
            _ => work(0),
        }
    }
}

impl Parallel for Workers {
    fn participants(&self, units: u64) -> usize {
        Workers::participants(self, units)
    }

    fn run(&mut self, participants: usize, tasks: usize, body: &(dyn Fn(&mut dyn Iterator<Item = usize>) + Sync)) {
        Workers::run(self, participants, tasks, |_, tasks| body(&mut std::iter::from_fn(|| tasks.take())));
    }
}

//! The participants of a kernel: the calling thread and the instance's own pool.

use super::scratch::Scratch;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Work below this many units (vectorised additions on an element) is done by the calling thread alone: waking a
/// sleeping thread costs about as much.
const SERIAL: u64 = 400_000;

/// The calling thread and the pool.
pub(crate) struct Workers {
    pool: Option<rayon::ThreadPool>,
    threads: usize,
    scratch: Vec<Cell>,
}

struct Cell(UnsafeCell<Scratch>);

// SAFETY: each participant uses only its own scratch; `Workers::run` hands numbers out once.
unsafe impl Sync for Cell {}

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
        let pool = if threads > 1 {
            let builder = rayon::ThreadPoolBuilder::new()
                .num_threads(threads - 1)
                .thread_name(|index| format!("bh-ve-cpu-{}", index + 1))
                .start_handler(move |index| start(index + 1));
            Some(builder.build().map_err(|error| error.to_string())?)
        } else {
            None
        };
        let scratch = (0..threads).map(|_| Cell(UnsafeCell::new(Scratch::new()))).collect();
        Ok(Workers { pool, threads, scratch })
    }

    /// The number of participants.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// How many participants should share work of this many units.
    pub(crate) fn participants(&self, units: u64) -> usize {
        if units < SERIAL { 1 } else { self.threads.min((units / (SERIAL / 4)) as usize) }
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
        match &self.pool {
            Some(pool) if helpers > 0 => pool.in_place_scope(|scope| {
                for participant in 1..=helpers {
                    let work = &work;
                    scope.spawn(move |_| work(participant));
                }
                work(0);
            }),
            _ => work(0),
        }
    }
}

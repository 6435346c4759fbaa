//! The participants of a kernel: the calling thread and the instance's own pool.

use super::scratch::Scratch;
use bh_methods::Parallel;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Work below this many units (about 0.04 ns each) is done by the calling thread alone: waking a sleeping thread costs
/// 30 to 75 µs.
const SERIAL: u64 = 2_000_000;

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
                spawn(scope, 1, helpers, &work);
                work(0);
            }),
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

/// Starts participants `first` to `last`; the first one passes half of the rest on, so that waking many threads takes
/// logarithmic time.
fn spawn<'scope>(scope: &rayon::Scope<'scope>, first: usize, last: usize, work: &'scope (impl Fn(usize) + Sync)) {
    let (mut first, last) = (first, last);
    // The calling thread starts the heads of halves, quarters and so on, and then works itself.
    while first <= last {
        let end = first + (last - first) / 2;
        let head = first;
        scope.spawn(move |scope| {
            spawn(scope, head + 1, end, work);
            work(head);
        });
        first = end + 1;
    }
}

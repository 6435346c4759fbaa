//! How kernels are handed to the helpers: the words that the caller and the helpers look at.
//!
//! A job is announced to all at once: its number is a word that all helpers look at. Each helper claims its part of the job
//! before it begins; parts that nobody has claimed when the caller is done are taken back, so that nobody waits for
//! helpers that come late. Apart from that word, each helper has cache lines of its own.
//!
//! Where a thread writes one word and then reads another one, while the other thread does it the other way round, a sequentially
//! consistent fence lies between the two on both sides: at least one of them sees the other one's write. All other
//! accesses are ordered by release and acquire, as weakly ordered processors need it.
//!
//! A helper is a thread of a pool that has other work too, present for a stint: it comes when it is called, and stays,
//! asleep if there is no job for long, until it is dismissed.

use super::sync::{
    AtomicBool, AtomicU8, AtomicU64, Mutex, MutexGuard, OnceLock, Thread, UnsafeCell, current, fence, look, park,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How many sleeping helpers each participant wakes: asking for it takes a fraction of the time that waking up does.
const WAKES: usize = 4;

// The number of a job: from the lowest bit on two bits for a helper's progress, the number of the job's helpers, and a count, for
// which 46 bits are always enough.
const BEGUN: u64 = 1;
const OVER: u64 = 2;
const HELPER: u64 = 4;
const JOB: u64 = 1 << 18;
/// The most helpers that a job can be for.
pub(super) const MOST_HELPERS: usize = (JOB / HELPER - 1) as usize;
/// The number that ends stints.
const STOP: u64 = !(BEGUN | OVER);

// The state of a helper. The thread that changes it from absent to called makes the call; only the helper changes it further.
const ABSENT: u8 = 0;
const CALLED: u8 = 1;
const PRESENT: u8 = 2;

/// The function that helpers run, with their number from 1 on.
type Job = *const (dyn Fn(usize) + Sync);

/// Alone on its cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Apart<T>(T);

/// One helper as the others see it.
#[derive(Default)]
struct Seat {
    /// The last job that the helper had a part in, and either `BEGUN` or `OVER`. Only the helper and, for parts that have
    /// not begun, the caller of [`Handoff::run`] change it.
    state: Apart<AtomicU64>,
    /// Change rarely, so that all can look at them often.
    presence: Apart<AtomicU8>,
    asleep: Apart<AtomicBool>,
    thread: OnceLock<Thread>,
}

/// The words that the caller writes for the helpers.
struct Told {
    number: AtomicU64,
    /// The job, and whether some of its helpers are to be woken. The caller of [`Handoff::run`] writes it while no helper
    /// has begun a part, and helpers read it while they have.
    job: UnsafeCell<Option<(Job, bool)>>,
}

/// The hand-off between one caller and its helpers.
pub(super) struct Handoff {
    told: Apart<Told>,
    seats: Vec<Seat>,
    /// Are the helpers wanted elsewhere?
    recess: AtomicBool,
    panicked: AtomicBool,
    /// Does the caller sleep until all have finished?
    waiting: AtomicBool,
    caller: Mutex<Option<Thread>>,
    awake: Duration,
}

// SAFETY: the jobs are Sync, and `Told::job` says who uses it when.
unsafe impl Send for Handoff {}
// SAFETY: as above.
unsafe impl Sync for Handoff {}

/// Waits when dropped, so that a panic of the caller's part leaves no helper with a job that is gone.
struct Wait<'a> {
    shared: &'a Handoff,
    number: u64,
    helpers: usize,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.shared.wait(self.number, self.helpers);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handoff {
    /// No job yet; helpers without work look for it for so long before they sleep.
    pub(super) fn new(helpers: usize, awake: Duration) -> Handoff {
        Handoff {
            told: Apart(Told { number: AtomicU64::new(0), job: UnsafeCell::new(None) }),
            seats: (0..helpers).map(|_| Seat::default()).collect(),
            recess: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            caller: Mutex::new(None),
            awake,
        }
    }

    /// Runs `job` with the number 0 on the calling thread and, at the same time, with the numbers up to `helpers` on
    /// helpers. Those that come when the calling thread has finished have no part in it. If some are absent, `call` has
    /// [`Handoff::stint`] run on the thread of each helper.
    ///
    /// # Safety
    /// Calls must not overlap.
    pub(super) unsafe fn run(&self, helpers: usize, job: &(dyn Fn(usize) + Sync), call: impl FnOnce()) {
        let helpers = helpers.min(self.seats.len());
        // SAFETY: only the lifetime changes; the wait below ends after the last use.
        let kept = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(job) };
        self.recess.store(false, Ordering::Relaxed);
        self.panicked.store(false, Ordering::Relaxed);
        let number = (self.told.0.number.load(Ordering::Relaxed) / JOB + 1) * JOB + helpers as u64 * HELPER;
        let wakes = self.some_sleep(helpers);
        // SAFETY: calls do not overlap, and the wait for the last job left no helper with a part that has begun.
        self.told.0.job.with_mut(|job| unsafe { *job = Some((kept, wakes)) });
        self.told.0.number.store(number, Ordering::Release);
        // Helpers that leave or fall asleep see the job, or are seen to do so below.
        fence(Ordering::SeqCst);
        let wait = Wait { shared: self, number, helpers };
        if self.some_absent(helpers) {
            // All of them, so that there is one call until they are dismissed.
            self.seats.iter().for_each(|seat| _ = change(&seat.presence.0, ABSENT, CALLED));
            call();
        }
        if wakes {
            self.wake_below(0, helpers);
        } else if self.some_sleep(helpers) {
            // One that fell asleep just now.
            (1..=helpers).for_each(|helper| self.wake(helper));
        }
        job(0);
        drop(wait);
        assert!(!self.panicked.load(Ordering::Relaxed), "a helper of a kernel panicked");
    }

    /// Sends helpers back to their pool until the next job.
    pub(super) fn dismiss(&self) {
        self.recess.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        (1..=self.seats.len()).for_each(|helper| self.wake(helper));
    }

    /// Ends all stints for good.
    pub(super) fn stop(&self) {
        self.told.0.number.store(STOP, Ordering::Release);
        fence(Ordering::SeqCst);
        (1..=self.seats.len()).for_each(|helper| self.wake(helper));
    }

    /// Are the first helpers there, and awake?
    pub(super) fn are_awake(&self, helpers: usize) -> bool {
        let helpers = helpers.min(self.seats.len());
        !self.some_absent(helpers) && !self.some_sleep(helpers)
    }

    fn some_absent(&self, helpers: usize) -> bool {
        self.seats[..helpers].iter().any(|seat| seat.presence.0.load(Ordering::Relaxed) == ABSENT)
    }

    fn some_sleep(&self, helpers: usize) -> bool {
        self.seats[..helpers].iter().any(|seat| seat.asleep.0.load(Ordering::Relaxed))
    }

    /// Wakes a helper if it sleeps. A fence comes between the news that it is woken for and this.
    fn wake(&self, helper: usize) {
        let seat = &self.seats[helper - 1];
        if seat.asleep.0.load(Ordering::Relaxed)
            && seat.asleep.0.swap(false, Ordering::Acquire)
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

    /// Runs the pool's thread of this number while helpers are called; there is no helper 0.
    pub(super) fn stint(&self, helper: usize) {
        let Some(seat) = helper.checked_sub(1).and_then(|place| self.seats.get(place)) else { return };
        if !change(&seat.presence.0, CALLED, PRESENT) {
            // It was present when others were called.
            return;
        }
        seat.thread.get_or_init(current);
        while let Some(told) = self.await_job(seat, helper) {
            self.take_part(seat, helper, told);
        }
    }

    /// Does a helper's part of a job, unless that has ended without it.
    fn take_part(&self, seat: &Seat, helper: usize, told: u64) {
        let state = seat.state.0.load(Ordering::Relaxed);
        // A higher number: this job or a later one has ended without the helper.
        let claim = || seat.state.0.compare_exchange(state, told | BEGUN, Ordering::AcqRel, Ordering::Relaxed);
        if state > told || claim().is_err() {
            return;
        }
        // SAFETY: the part has begun, so the caller of `run` waits, and the job is the one that was told.
        if let Some((job, wakes)) = self.told.0.job.with(|job| unsafe { *job }) {
            if wakes {
                fence(Ordering::SeqCst);
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

    /// The number of a job that a helper has a part in and has not seen.
    fn news(&self, seat: &Seat, helper: usize) -> Option<u64> {
        let told = self.told.0.number.load(Ordering::Acquire);
        let last = seat.state.0.load(Ordering::Relaxed) & !(BEGUN | OVER);
        (told > last && (told == STOP || helpers_of(told) >= helper)).then_some(told)
    }

    /// Waits for a job; `None` when the helper has left.
    fn await_job(&self, seat: &Seat, helper: usize) -> Option<u64> {
        let dismissed = || self.recess.load(Ordering::Relaxed).then_some(STOP);
        let next = || self.news(seat, helper).or_else(dismissed);
        let told = look(self.awake, next).unwrap_or_else(|| {
            loop {
                // Either the helper sees the job, or the caller sees that it sleeps.
                seat.asleep.0.store(true, Ordering::Release);
                fence(Ordering::SeqCst);
                if let Some(told) = next() {
                    seat.asleep.0.store(false, Ordering::Relaxed);
                    return told;
                }
                park();
            }
        });
        if told == STOP { self.leave(seat, helper) } else { Some(told) }
    }

    /// Leaves, unless there is a job that nobody has called the helper for.
    fn leave(&self, seat: &Seat, helper: usize) -> Option<u64> {
        // Either this sees the job, or the caller of `run` sees that the helper is absent.
        seat.presence.0.store(ABSENT, Ordering::Release);
        fence(Ordering::SeqCst);
        let told = self.news(seat, helper).filter(|&told| told != STOP)?;
        change(&seat.presence.0, ABSENT, PRESENT).then_some(told)
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
        *lock(&self.caller) = Some(current());
        self.waiting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !finished() {
            park();
        }
        self.waiting.store(false, Ordering::Relaxed);
    }
}

/// Does a word become another?
fn change(word: &AtomicU8, from: u8, to: u8) -> bool {
    word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// The number of helpers that a job is for.
fn helpers_of(number: u64) -> usize {
    (number % JOB / HELPER) as usize
}

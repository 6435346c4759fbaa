//! The executor under random schedules: the same files as the recorder's, on threads and locks of a model.

mod sync {
    pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use shuttle::thread::{Builder, JoinHandle, ThreadId, current};

    use std::sync::PoisonError;
    use std::time::Duration;

    pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is no time in a model: the wait ends whenever the thread goes on.
    pub(super) fn wait_for<'a, T>(
        _: &Condvar,
        lock: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        _: Duration,
    ) -> MutexGuard<'a, T> {
        drop(guard);
        shuttle::thread::yield_now();
        self::lock(lock)
    }
}

// Loaded a second time on purpose: `sync` means the model here. Not all of it is called.
#[allow(clippy::duplicate_mod, dead_code)]
#[path = "executor/mod.rs"]
mod executor;
use crate::Checks;
use crate::data::{Data, SharedData};
use crate::process::patience::Patience;
use crate::stack::backend::Backend;
use bh_bytecode::{Base, Batch, BatchRef, DType, Opcode, View};
use bh_core::abi::{Adoption, Capabilities, capability, status};
use bh_core::component::Ticket;
use bh_core::error::{Error, Result};
use executor::{Executor, Job, Runner};
use shuttle::rand::Rng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of schedules that are tried of each program.
const SCHEDULES: usize = 2000;
/// For a thread's stack in the model.
const STACK_BYTES: usize = 1 << 18;

/// The behaviour of a stack of the model.
#[derive(Clone, Copy, Default)]
struct Manners {
    /// Work goes on behind tickets; the stack may be asked whether it is done, or must be waited for.
    tickets: Option<Asked>,
    /// All calls come from one thread, data calls from within batches.
    affine: bool,
    /// The batch with this number fails.
    fails: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Polled,
    Waited,
}

/// The events of a run. Each batch has a base whose identity is the batch's number, and that of the batch before.
#[derive(Default)]
struct Log {
    /// The batches that have run, in order, and those behind tickets that are done.
    run: Mutex<Vec<u64>>,
    done: Mutex<Vec<u64>>,
    /// Bases with data calls under way.
    accessed: Mutex<Vec<u64>>,
    /// A thread is in a call that must be the only one.
    busy: AtomicBool,
    ended: AtomicU64,
    /// Faults that were found: the tested code would catch panics.
    faults: Mutex<Vec<&'static str>>,
}

fn list<T>(list: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Never held where threads change.
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    fn fault(&self, fault: &'static str) {
        list(&self.faults).push(fault);
    }

    /// A call that excludes all others of its kind.
    fn alone<R>(&self, call: impl FnOnce() -> R) -> R {
        if self.busy.swap(true, Ordering::SeqCst) {
            self.fault("two calls into the stack at once");
        }
        shuttle::thread::yield_now();
        let result = call();
        self.busy.store(false, Ordering::SeqCst);
        result
    }

    fn is_done(&self, batch: u64) -> bool {
        list(&self.done).contains(&batch)
    }
}

struct Fake {
    manners: Manners,
    log: Arc<Log>,
    thread: shuttle::thread::ThreadId,
    between: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Fake {
    fn check_thread(&self) {
        if self.manners.affine && shuttle::thread::current().id() != self.thread {
            self.log.fault("a call from another thread");
        }
    }
}

impl Backend for Fake {
    fn base_ids(&self) -> Arc<AtomicU64> {
        Arc::default()
    }

    fn capabilities(&mut self) -> Capabilities {
        let flags = if self.manners.affine { capability::THREAD_AFFINE } else { 0 };
        Capabilities { flags, ..Capabilities::default() }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, _: &[u32]) -> Result<Ticket> {
        self.check_thread();
        let number = batch.bases[0].id;
        self.log.alone(|| {
            list(&self.log.run).push(number);
            for _ in 0..2 {
                if batch.bases.iter().any(|base| list(&self.log.accessed).contains(&base.id)) {
                    self.log.fault("a batch runs while its data is accessed");
                }
                shuttle::thread::yield_now();
            }
        });
        if let Some(between) = &self.between {
            between();
        }
        if number == self.manners.fails {
            list(&self.log.done).push(number);
            return Err(Error::new(status::EXECUTION, "wanted by the test"));
        }
        if self.manners.tickets.is_some() {
            return Ok(Ticket(number));
        }
        list(&self.log.done).push(number);
        Ok(Ticket::DONE)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        self.check_thread();
        self.log.alone(|| list(&self.log.done).push(ticket.0));
        Ok(())
    }

    fn poll(&mut self, _: Ticket) -> Option<bool> {
        self.check_thread();
        let polled = self.manners.tickets == Some(Asked::Polled);
        polled.then(|| shuttle::rand::thread_rng().gen_bool(0.5))
    }

    fn shared_data(&mut self) -> Option<Arc<dyn SharedData>> {
        Some(Arc::new(Shared(self.log.clone())))
    }

    fn data_between(&mut self, between: Box<dyn Fn() + Send + Sync>) -> Option<Arc<dyn SharedData>> {
        self.between = Some(between);
        self.shared_data()
    }

    fn extmethod(&mut self, _: &str, _: Opcode) -> Result<bool> {
        Ok(false)
    }

    fn message(&mut self, _: &str) -> Result<String> {
        Ok(String::new())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.check_thread();
        self.log.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// The calls are noted, and nothing else.
impl Data for Fake {
    fn map(&mut self, base: &Base, _: Option<&View>, _: u32) -> Result<*mut u8> {
        self.check_thread();
        touch(&self.log, base)
    }

    fn unmap(&mut self, _: &Base) -> Result<()> {
        Ok(())
    }

    unsafe fn adopt(&mut self, _: &Base, _: &Adoption) -> Result<()> {
        Ok(())
    }

    fn pin(&mut self, _: &Base, _: bool) -> Result<()> {
        Ok(())
    }
}

/// A data call takes a while; its base is its own meanwhile.
fn touch(log: &Log, base: &Base) -> Result<*mut u8> {
    list(&log.accessed).push(base.id);
    (0..3).for_each(|_| shuttle::thread::yield_now());
    list(&log.accessed).retain(|&other| other != base.id);
    Ok(std::ptr::null_mut())
}

/// Data calls from any thread.
struct Shared(Arc<Log>);

impl SharedData for Shared {
    fn with(&self, work: &mut dyn FnMut(&mut dyn Data)) {
        work(&mut Calls(&self.0));
    }
}

struct Calls<'a>(&'a Log);

impl Data for Calls<'_> {
    fn map(&mut self, base: &Base, _: Option<&View>, _: u32) -> Result<*mut u8> {
        touch(self.0, base)
    }

    fn unmap(&mut self, _: &Base) -> Result<()> {
        Ok(())
    }

    unsafe fn adopt(&mut self, _: &Base, _: &Adoption) -> Result<()> {
        Ok(())
    }

    fn pin(&mut self, _: &Base, _: bool) -> Result<()> {
        Ok(())
    }
}

fn base(number: u64) -> Base {
    Base::new(number, DType::F64, 1)
}

/// An executor, and the lock under which batches are handed over, with the number of the last one.
struct Context {
    executor: Executor,
    last: sync::Mutex<u64>,
    log: Arc<Log>,
    manners: Manners,
}

impl Context {
    fn new(manners: Manners) -> Arc<Context> {
        let log = Arc::<Log>::default();
        let seen = log.clone();
        let make = move || -> Result<Box<dyn Backend>> {
            let thread = shuttle::thread::current().id();
            Ok(Box::new(Fake { manners, log: seen, thread, between: None }))
        };
        let executor = Executor::start(make, Checks::default(), None).unwrap();
        Arc::new(Context { executor, last: sync::Mutex::new(0), log, manners })
    }

    /// Hands over a batch, run by any thread; returns its number.
    fn submit(&self) -> u64 {
        let mut last = sync::lock(&self.last);
        *last += 1;
        let (epoch, mut batch) = (*last, Batch::default());
        batch.push_base(base(epoch));
        batch.push_base(base(epoch - 1));
        let _ = self.executor.hand_over(Job {
            batch,
            epoch,
            exported: Vec::new(),
            unmaps: Vec::new(),
            given: Vec::new(),
            work: 8,
        });
        drop(last);
        let mut random = shuttle::rand::thread_rng();
        let runner = if random.gen_bool(0.5) { Runner::Here } else { Runner::Thread };
        self.executor.drive(runner, random.gen_bool(0.5)).unwrap();
        epoch
    }

    fn complete(&self, epoch: u64) {
        self.executor.complete(epoch, &mut Patience::endless()).unwrap();
        assert!((1..=epoch).all(|number| self.log.is_done(number)), "{epoch} is not done");
    }

    /// Begins an access if the batches with the base are done, else returns the last of them.
    fn begin_access(&self, epoch: u64) -> Option<u64> {
        let last = sync::lock(&self.last);
        let needed = (epoch + 1).min(*last);
        (!self.executor.begin_access(epoch, needed)).then_some(needed)
    }

    /// Gets at the data of a batch's base, as the recorder does.
    fn access(&self, epoch: u64) {
        let number = |data: &mut dyn Data| data.map(&base(epoch), None, 0).map(|_| epoch);
        let seen = if self.executor.is_affine() {
            self.executor.access_on_thread((epoch, epoch), true, &mut Patience::endless(), number)
        } else {
            while let Some(needed) = self.begin_access(epoch) {
                self.executor.complete(needed, &mut Patience::endless()).unwrap();
            }
            self.executor.access(epoch, number)
        };
        let failed = self.manners.fails != 0 && self.manners.affine;
        assert!(failed || seen.unwrap() == epoch);
        assert!(self.log.is_done(epoch), "data of batch {epoch} before it ran");
    }

    /// Ends all, and looks at what has happened.
    fn end(&self) {
        self.executor.stop();
        assert_eq!(*list(&self.log.faults), Vec::<&str>::new());
        assert!(list(&self.log.run).iter().copied().eq(1..=*sync::lock(&self.last)), "{:?}", list(&self.log.run));
        assert_eq!(self.log.ended.load(Ordering::SeqCst), 1);
        let late = self.executor.on_thread(0, false, |_| Ok(()));
        assert_eq!(late.map_err(|error| error.status), Err(status::SHUTDOWN));
    }
}

/// Runs a program on threads of the model, under many schedules. A lost call is a deadlock, which the model reports.
fn check(manners: Manners, threads: usize, program: fn(&Context)) {
    let all = move || {
        let context = Context::new(manners);
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let context = context.clone();
                shuttle::thread::spawn(move || program(&context))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        context.end();
        let error = context.executor.take_error();
        assert!(manners.fails != 0 || error.is_none());
    };
    let mut config = shuttle::Config::new();
    config.stack_size = STACK_BYTES;
    shuttle::Runner::new(shuttle::scheduler::RandomScheduler::new(SCHEDULES), config).run(all);
}

/// Batches of several threads, some waited for.
fn batches(context: &Context) {
    let first = context.submit();
    let second = context.submit();
    context.complete(first);
    context.submit();
    context.complete(second);
}

/// The same with data.
fn reads(context: &Context) {
    let first = context.submit();
    context.access(first);
    let second = context.submit();
    context.access(second);
    context.submit();
}

const WAITED: Manners = Manners { tickets: Some(Asked::Waited), affine: false, fails: 0 };
const POLLED: Manners = Manners { tickets: Some(Asked::Polled), affine: false, fails: 0 };
const AFFINE: Manners = Manners { tickets: None, affine: true, fails: 0 };

#[test]
fn batches_run_in_order_and_waits_end() {
    for manners in [Manners::default(), WAITED, POLLED, AFFINE, Manners { affine: true, ..WAITED }] {
        check(manners, 2, batches);
    }
}

#[test]
fn data_is_read_when_its_batch_has_run() {
    for manners in [Manners::default(), WAITED, AFFINE, Manners { affine: true, ..WAITED }] {
        check(manners, 2, reads);
    }
}

#[test]
fn a_failure_is_kept_once() {
    for manners in [Manners::default(), WAITED] {
        check(Manners { fails: 2, ..manners }, 2, |context| {
            let last = context.submit();
            context.complete(last);
            context.submit();
            if context.executor.take_error().is_some() {
                assert!(context.executor.take_error().is_none() && context.log.is_done(2));
            }
        });
    }
}

#[test]
fn a_frozen_executor_is_at_rest() {
    for manners in [Manners::default(), WAITED] {
        check(manners, 2, |context| {
            let number = context.submit();
            {
                // As when the process forks: nothing begins while the locks are held.
                let last = sync::lock(&context.last);
                let frozen = context.executor.freeze();
                let run = list(&context.log.run).len();
                shuttle::thread::yield_now();
                assert_eq!((run, list(&context.log.done).len()), (*last as usize, *last as usize));
                assert!(list(&context.log.accessed).is_empty());
                drop(frozen);
            }
            context.access(number);
        });
    }
}

#[test]
fn batches_run_though_nobody_waits() {
    for manners in [Manners::default(), WAITED, POLLED, AFFINE] {
        check(manners, 2, |context| {
            let number = context.submit();
            while !list(&context.log.run).contains(&number) {
                shuttle::thread::yield_now();
            }
        });
    }
}

#[test]
fn calls_end_when_the_executor_does() {
    for manners in [Manners::default(), AFFINE] {
        let all = move || {
            let context = Context::new(manners);
            let number = context.submit();
            let caller = context.clone();
            let caller = shuttle::thread::spawn(move || caller.executor.on_thread(number, false, |_| Ok(number)));
            context.executor.stop();
            let seen = caller.join().unwrap().map_err(|error| error.status);
            assert!(seen == Ok(number) || seen == Err(status::SHUTDOWN), "{seen:?}");
            context.end();
        };
        shuttle::check_random(all, SCHEDULES);
    }
}

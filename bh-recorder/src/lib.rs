//! The lazy recorder behind every bridge: array handles, the batch under construction, when it is flushed, and who
//! runs it.
//!
//! # For writers of bridges
//!
//! A [`Recorder`] is one context; [`Recorder::open`] starts it on a stack of the configuration. Arrays are numbers
//! ([`ArrayId`]) that carry a generation, so that stale ones are refused; [`Array`] is one that frees itself and knows its
//! context. What a bridge does for its users:
//!
//! * **Operations**: [`Recorder::operate`] into an array, [`Recorder::operate_new`] into a new one;
//!   [`Recorder::operate_described`] also says what type and shape the result has, under the same lock;
//!   [`Recorder::assemble`] a new array made of parts of others. Each takes the
//!   place in the user's program: file and line, or a number that only the bridge understands ([`Location::token`]), which
//!   is looked up ([`Recorder::set_resolver`]) when an error has to name it, and never before.
//! * **Views**: [`Recorder::part`], [`Recorder::derive`], [`Recorder::reshape`], [`Recorder::duplicate`]. They record
//!   nothing.
//! * **Data**: [`Recorder::read`], [`Recorder::write`], [`Recorder::map`], [`Recorder::lend_with`], [`Recorder::adopt`],
//!   [`Recorder::donate`], [`Recorder::pin`]. They wait
//!   for what the array needs and, where the stack allows it, for nothing else: neither for a batch that runs meanwhile nor
//!   for one under construction.
//! * **Freeing**: [`Recorder::free`] may run a small batch. Destructors and garbage collectors use
//!   [`Recorder::free_later`], as [`Array`] does, which runs nothing and takes no lock that anybody holds for long.
//! * **Waiting**: calls that wait have a form with a [`Patience`], whose callback looks after signals and may end the wait.
//!
//! Failures of operations come later: the next call that waits or flushes returns the first that nobody was told of.
//!
//! # Inside
//!
//! Operations append to a batch; access to data flushes it. Batches run in order on the executor thread, or on the thread
//! of a caller that has to wait anyway. One lock guards what is recorded; nobody waits, runs a batch or calls into the stack
//! while holding it. The executor has its own lock for what is to be done, taken under the first one and held as shortly,
//! and one for calls into the stack.

mod array;
mod batch;
mod data;
mod executor;
mod immediate;
#[cfg(test)]
mod model;
mod numbers;
mod process;
mod record;
mod stack;
mod state;
mod sync;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod weak;

pub use array::handle::Array;
pub use array::part::Subscript;
pub use batch::recording::{Recording, Replayed};
pub use batch::tape::{Ending, Errand, Tape};
pub use data::memory::Lent;
pub use data::{Data, SharedData};
pub use immediate::at_hand::Known;
pub use immediate::hand::{Hand, MOVED};
pub use immediate::here::{Here, Made, Store};
pub use process::hold_at_fork;
pub use process::inside::Inside;
pub use process::patience::Patience;
pub use process::waits::{Wait, set_program_wait};
pub use record::Input;
pub use record::assemble::{Filling, Piece};
pub use record::check::result_type;
pub use record::location::Location;
pub use stack::backend::Backend;
pub use stack::digits::LineDigits;

use array::later::Later;
use bh_bytecode::view::ViewRef;
use bh_bytecode::{DType, View};
use bh_core::abi::status;
pub use bh_core::config::{Casts, Checks, Recipes};
use bh_core::config::{Config, Key, Size};
use bh_core::environment;
use bh_core::error::{Error, Result};
use bh_core::keys::recorder;
use bh_core::launcher::Launcher;
use bh_core::services::Handles;
use bh_core::stack::Stack;
use executor::Executor;
use record::location::Resolver;
use state::gate::{self, Gate};
use state::{Immediate, Running, State};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use sync::{Mutex, MutexGuard, lock};

/// The name of an array within its context. Fits 52 bits, so that a bridge can add the number of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayId(pub u64);

impl ArrayId {
    fn parts(self) -> (u32, u32) {
        let index = self.0 & ((1 << array::slab::INDEX_BITS) - 1);
        let generation = u32::try_from(self.0 >> array::slab::INDEX_BITS).unwrap_or(u32::MAX);
        (index as u32, generation)
    }
}

/// When batches are flushed, and how they are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Instructions in a batch.
    pub max_instructions: usize,
    /// Bytes of arrays that a batch makes and keeps, or keeps from being dropped.
    pub max_bytes: u64,
    /// A batch that writes no more than this is run by the flushing thread itself.
    pub small_bytes: u64,
    /// The largest array, in bytes, on which operations run immediately if its data is computed.
    pub immediate_bytes: u64,
    /// Which results stay recipes.
    pub recipes: Recipes,
    /// Are scalar programs recorded?
    pub programs: bool,
    /// The conversion of floats beyond an integer type.
    pub casts: Casts,
    /// Results have the same bits wherever they are computed.
    pub reproducible: bool,
    /// Digits of results are counted.
    pub digits: bool,
    /// Some lines have their results in single precision.
    pub narrowed: bool,
    /// Each operation completes before it returns.
    pub eager: bool,
    /// The checks of results.
    pub checks: Checks,
    /// Directory that each batch is written to before it runs.
    pub dump: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_instructions: recorder::MAX_INSTRUCTIONS.default().0,
            // Batches are there to be large; what they keep has to fit the memory anyway.
            max_bytes: recorder::MAX_BYTES.default().0 as u64,
            small_bytes: recorder::SMALL_BYTES.default().0 as u64,
            immediate_bytes: recorder::IMMEDIATE_BYTES.default().0 as u64,
            recipes: Recipes::default(),
            programs: recorder::PROGRAMS.default(),
            casts: Casts::default(),
            reproducible: recorder::REPRODUCIBLE.default(),
            digits: false,
            narrowed: false,
            eager: false,
            checks: Checks::default(),
            dump: None,
        }
    }
}

impl Options {
    /// May small operations be carried out where they are called? Batches alone are checked, and have shadows.
    pub(crate) fn works_at_once(&self) -> bool {
        !self.eager && !self.checks.fused() && !self.digits && !self.narrowed
    }

    /// The defaults changed by the config's section `recorder` and by the environment: `BH_EAGER`, `BH_CHECK` and
    /// `BH_DUMP`.
    pub fn from_config(config: &Config) -> Result<Options> {
        let default = Options::default();
        let limit = config.memory_settings()?.limit as u64 / 2;
        let checks = config.checks()?;
        let reproducible = config.core(&recorder::REPRODUCIBLE)?;
        let number = |key: &Key<Size>| config.core(key).map(|number| number.0 as u64);
        Ok(Options {
            max_instructions: number(&recorder::MAX_INSTRUCTIONS)?.max(1) as usize,
            max_bytes: match config.core_if_set(&recorder::MAX_BYTES)? {
                Some(bytes) => bytes.0 as u64,
                None => default.max_bytes.min(limit),
            },
            small_bytes: number(&recorder::SMALL_BYTES)?,
            immediate_bytes: number(&recorder::IMMEDIATE_BYTES)?,
            recipes: config.core(&recorder::RECIPES)?,
            // Their operations carry no rules.
            programs: !reproducible && config.core(&recorder::PROGRAMS)?,
            casts: if reproducible { Casts::Saturate } else { config.core(&recorder::CASTS)? },
            reproducible,
            digits: false,
            narrowed: false,
            eager: asks_for_eager() || checks.one_by_one(),
            checks,
            dump: environment::variable_os("BH_DUMP").map(PathBuf::from),
        })
    }
}

/// Does the environment ask for eager mode?
fn asks_for_eager() -> bool {
    environment::variable("BH_EAGER").is_some_and(|value| value != "0")
}

/// The properties of an array, for bridges.
#[derive(Clone, Debug)]
pub struct ArrayInfo {
    /// Element type.
    pub dtype: DType,
    /// Window on the base.
    pub view: View,
    /// Identity of the base.
    pub base: u64,
    /// Elements of the base.
    pub base_len: i64,
    /// Its memory never moves.
    pub pinned: bool,
}

/// An array as [`Recorder::ask`] shows it.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a> {
    /// Element type.
    pub dtype: DType,
    /// Window on the base.
    pub view: ViewRef<'a>,
    /// Number of elements.
    pub len: i64,
}

/// Counts since the start of the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Array handles alive.
    pub arrays: u64,
    /// Bases alive.
    pub bases: u64,
    /// Operations recorded, or carried out at once.
    pub recorded: u64,
    /// Those of them that were carried out at once.
    pub immediate: u64,
    /// Instructions recorded and not yet flushed.
    pub pending: u64,
    /// Batches run.
    pub batches: u64,
    /// Instructions run.
    pub instructions: u64,
    /// Batches run on the thread of a caller.
    pub batches_on_caller: u64,
    /// Results that were not stored, as nobody had asked for them.
    pub recipes: u64,
    /// Those of them that were asked for later, and made then.
    pub recomputed: u64,
}

/// A context. It can be started again after a shutdown; handles from before stay invalid.
pub struct Recorder {
    state: Mutex<State>,
    /// The state's.
    gate: Arc<Gate>,
    /// Handles to be freed when the state is looked at next.
    later: Later,
    /// Held while the stack is asked for a method of a new name.
    announcing: Mutex<()>,
    resolver: OnceLock<Resolver>,
}

/// A pointer that may be sent to the executor thread, whose use the sender waits for.
#[derive(Clone, Copy)]
struct SendPtr(*mut u8);

// SAFETY: the sender waits until the other thread has used the memory, and does not use it meanwhile.
unsafe impl Send for SendPtr {}
// SAFETY: nothing is read or written through a shared reference: it only gives the address.
unsafe impl Sync for SendPtr {}

impl SendPtr {
    fn get(self) -> *mut u8 {
        self.0
    }
}

/// How many times the bytes of another batch a short one on a device may hold.
const STEP_SHARE: u64 = 4;

impl Recorder {
    /// A context that is not started: everything but [`Recorder::start`] fails.
    pub fn new() -> Arc<Recorder> {
        let state = State::new();
        let recorder = Arc::new(Recorder {
            gate: state.gate.clone(),
            state: Mutex::new(state),
            later: Later::default(),
            announcing: Mutex::new(()),
            resolver: OnceLock::new(),
        });
        process::enroll(&recorder);
        recorder
    }

    /// The recorder's state, without the handles that were freed.
    #[inline]
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        debug_assert_eq!(state.gate.is_open(), state.works_at_once());
        if self.gate.takes_end_of_chain() {
            state.little.end_chain();
        }
        self.free_waiting(&mut state);
        state
    }

    /// Frees the handles that wait for that.
    #[inline]
    fn free_waiting(&self, state: &mut State) {
        if self.later.is_wanted() {
            let mut freed = std::mem::take(&mut state.freed);
            self.later.swap(&mut freed);
            freed.drain(..).for_each(|array| state.free_now(array));
            state.freed = freed;
        }
    }

    /// Starts the executor, whose thread makes the stack.
    pub fn start<F>(&self, options: Options, make: F) -> Result<()>
    where
        F: FnOnce() -> Result<Box<dyn Backend>> + Send + 'static,
    {
        let _starting = process::Starting::begin();
        let mut state = self.state();
        if state.running.is_some() {
            return Err(Error::new(status::ARGUMENT, "the context is started already"));
        }
        let executor = Executor::start(make, options.checks, options.dump.clone())?;
        let (ids, evaluator, immediate, own, device) = executor.with_backend(|backend| {
            let (own, device) = (backend.capabilities().memory_bytes, backend.message("device memory").ok());
            let device = device.and_then(|bytes| bytes.trim().parse::<u64>().ok());
            Ok((backend.base_ids(), backend.evaluator(), backend.immediate_calls(), own, device))
        })?;
        let maps = own == 0 && !executor.is_affine();
        // Arrays of a device that the rest of a step drops cost least if it is one batch.
        let step_bytes = options.max_bytes.saturating_mul(if device.is_some() { STEP_SHARE } else { 1 });
        // A batch may fill half of the host's.
        let memory = device.unwrap_or(options.max_bytes.saturating_mul(2));
        let immediate = immediate.map(|(calls, services)| Immediate { calls, services });
        let engine = immediate.as_ref().map(|immediate: &Immediate| gate::Engine {
            calls: immediate.calls.clone(),
            services: immediate.services.clone(),
            ids: ids.clone(),
            options: options.clone(),
        });
        state.reset();
        state.gate.set_engine(engine);
        state.builder.period.set(options.max_instructions, options.recipes != Recipes::Off);
        state.running = Some(Running {
            executor: Arc::new(executor),
            ids,
            evaluator,
            immediate,
            maps,
            device: device.is_some(),
            memory,
            step_bytes,
            options,
        });
        state.set_gate();
        // Registered after the libraries of the stack were loaded, so that it runs before their own exit handlers.
        process::shut_down_at_exit();
        process::announce_exit();
        Ok(())
    }

    /// Starts on a stack of the configuration that applies here: `name`, or else the one that the user picked.
    pub fn open(&self, name: Option<&str>) -> Result<()> {
        self.open_with(name, Handles::default())
    }

    /// As [`Recorder::open`], with handles of the application's own for components that can use them.
    pub fn open_with(&self, name: Option<&str>, handles: Handles) -> Result<()> {
        let _inside = Inside::enter();
        let find = || Config::find().and_then(|config| Ok((Options::from_config(&config)?, config)));
        let (options, config) = find().inspect_err(|_| Launcher::let_the_first_speak())?;
        let name = name.map(str::to_owned);
        self.start(options, move || Ok(Box::new(Stack::load_with(&config, name.as_deref(), handles)?)))
    }

    /// Calls `f` with the loaded stack, after all work that runs now.
    pub fn with_stack<R: Send>(&self, f: impl FnOnce(&mut Stack) -> Result<R> + Send) -> Result<R> {
        let executor = self.state().executor()?;
        executor.with_backend(|backend| {
            let stack = backend.stack();
            f(stack.ok_or_else(|| Error::new(status::UNSUPPORTED, "this context has no stack of components"))?)
        })
    }

    /// Finishes all work and ends the stack with all arrays; the data manager can then report those that were not freed.
    /// Returns the first failure that was not reported yet.
    pub fn shutdown(&self) -> Result<()> {
        let state = self.state();
        self.end(state, &mut Patience::endless())
    }

    /// As [`Recorder::shutdown`], from a locked state. If the wait is ended, what runs goes on, without the context.
    fn end(&self, mut state: MutexGuard<'_, State>, patience: &mut Patience<'_>) -> Result<()> {
        let _inside = Inside::enter();
        let executor = state.executor()?;
        let submitted = state.submit();
        let running = state.running.take();
        state.gate.set_engine(None);
        state.reset();
        drop(state);
        if let Ok(submitted) = submitted
            && let Err(error) = executor.complete(submitted.epoch, patience)
        {
            // The executor goes on with its work, for nobody.
            std::mem::forget(running);
            return Err(error);
        }
        // Its ways past the executor keep the stack's components alive, which end with the executor.
        drop(running);
        executor.stop();
        executor.take_error().map_or(Ok(()), |error| Err(self.resolve(error)))
    }

    /// Is the context started and not shut down?
    pub fn is_running(&self) -> bool {
        self.state().running.is_some()
    }

    /// Sends a text question or command down the stack, after all work. `recipes` asks which results were not stored so far.
    pub fn message(&self, text: &str) -> Result<String> {
        if text == "recipes" {
            return Ok(self.told_of_recipes());
        }
        self.sync()?;
        let executor = self.state().executor()?;
        executor.with_backend(|backend| backend.message(text))
    }

    /// Bytes of an array, at most, that operations are carried out on where they are called.
    pub fn immediate_bytes(&self) -> u64 {
        self.state().running.as_ref().map_or(0, |running| running.options.immediate_bytes)
    }

    /// Have results to have the same bits wherever they are computed?
    pub fn is_reproducible(&self) -> bool {
        self.state().is_reproducible()
    }

    /// Counts since the start.
    pub fn statistics(&self) -> Statistics {
        self.state().statistics()
    }

    /// Switches between lazy and eager recording.
    pub fn set_eager(&self, eager: bool) -> Result<()> {
        let mut state = self.state();
        state.running()?;
        if let Some(running) = &mut state.running {
            running.options.eager = eager;
        }
        state.set_gate();
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Fails if it was shut down before; of failures of the last batches nobody is left to hear.
        let _ = self.shutdown();
    }
}

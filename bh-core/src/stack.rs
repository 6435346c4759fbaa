//! A stack of components, ready to run: the interface for the recorder.

pub mod below;
#[cfg(test)]
mod fakes;
#[cfg(test)]
mod tests;

use crate::abi::{
    Adoption, Capabilities, Evaluation, Export, ExportRequest, HostMemory, ImmediateOperation, Prediction, Residency,
    ScalarOperation, Served, capability, log_level, status,
};
use crate::component::{Child, Collected, Registry, Report, SharedCalls, Ticket, slot_answer};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::for_each_slot;
use crate::foreign::{Foreign, ForeignTable};
use crate::launcher::Launcher;
use crate::link::Link;
use crate::loader::Loader;
use crate::memory::Memory;
use crate::services::{Handles, Services};
use crate::stats::Snapshot;
use crate::trace::Trace;
use crate::watch::Watch;
use bh_bytecode::{Base, BatchRef, Opcode, View};
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

/// The name of the handle for an MPI communicator of the program: bit 32 is set, and the lower bits are the Fortran
/// handle.
pub const COMMUNICATOR: &str = "mpi.communicator";

/// The name of the handle for the NUL-terminated text of [`Config::describe`] for the loaded stack.
pub const DESCRIPTION: &str = "stack.description";

/// The name of the handle for a [`CallFn`], by which a component calls functions of the program's language.
pub const CALL: &str = "program.call";

/// Makes the call that a request describes, and appends the answer to `answer`, or, if the return value is not 0, an
/// error message.
pub type CallFn = unsafe extern "C" fn(
    request: *const u8,
    bytes: usize,
    answer: *mut c_void,
    append: unsafe extern "C" fn(answer: *mut c_void, data: *const u8, bytes: usize),
) -> i32;

/// The file of this process among those of all ranks: ranks other than 0 append their number. `None` if this host lacks
/// the folder, which rank 0's host has.
fn of_rank(path: String) -> Option<String> {
    match Launcher::find() {
        Some(Launcher { rank: rank @ 1.., .. }) => {
            let folder = Path::new(&path).parent().filter(|folder| !folder.as_os_str().is_empty());
            folder.is_none_or(Path::is_dir).then(|| format!("{path}.rank{rank}"))
        }
        _ => Some(path),
    }
}

/// Writes the trace and the statistics while the program runs, if the environment asks for it.
fn watch(config: &Config, services: &Arc<Services>, statistics: Option<&(PathBuf, bool)>) -> Result<Option<Watch>> {
    let Some(seconds) = config.variable("BH_WATCH") else { return Ok(None) };
    let wrong =
        || Error::new(status::CONFIG, format!("environment variable BH_WATCH: '{seconds}' is no number of seconds"));
    let pause = seconds.parse().ok().filter(|seconds| *seconds > 0.0);
    let pause = pause.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(wrong)?;
    let json = statistics.filter(|(_, json)| *json).map(|(path, _)| path.clone());
    Ok(Watch::begin(Arc::clone(services), json, pause))
}

/// A component of a stack, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentInfo {
    /// Name of the instance: the config section, with a number if there are several of it.
    pub label: String,
    /// The component's own name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A value of [`crate::abi::kind`].
    pub kind: u32,
    /// Its depth in the stack; the top is 0.
    pub depth: usize,
}

/// The components of one stack. Calls are serialised by `&mut`; [`Stack::services`] may be shared among threads.
pub struct Stack {
    name: String,
    top: Child,
    /// Shared with the calls that may overlap others, which keep the components alive.
    links: Arc<Link>,
    services: Arc<Services>,
    /// The file for the statistics, and whether to write JSON.
    statistics: Option<(PathBuf, bool)>,
    /// Writes the trace and the statistics while the program runs, if requested.
    watch: Option<Watch>,
    running: bool,
}

impl Stack {
    /// Loads the components of a stack, and only those: `name`, or else `BH_STACK`, or else the config's default.
    /// `BH_TRACE` names a file for a trace, `BH_STATS` one for the statistics (as JSON if it ends in `.json`), and
    /// `BH_WATCH` sets the seconds between updates of both while the program runs.
    pub fn load(config: &Config, name: Option<&str>) -> Result<Stack> {
        Stack::load_with(config, name, Handles::default())
    }

    /// As [`Stack::load`], with handles of the application for components that can use them.
    pub fn load_with(config: &Config, name: Option<&str>, handles: Handles) -> Result<Stack> {
        let mut stack = Stack::build(config, name, handles).inspect_err(|_| Launcher::let_the_first_speak())?;
        stack.serve_others()?;
        Ok(stack)
    }

    fn build(config: &Config, name: Option<&str>, handles: Handles) -> Result<Stack> {
        let memory = Memory::new(config.memory_settings()?);
        let trace = config.variable("BH_TRACE").and_then(|path| of_rank(path.into())).map(|path| Trace::new(&path));
        let statistics = config.variable("BH_STATS");
        let statistics =
            statistics.and_then(|path| Some((PathBuf::from(of_rank(path.into())?), path.ends_with(".json"))));
        let chosen = config.choose_stack(name)?;
        let description = CString::new(config.describe(&chosen)).unwrap_or_default();
        let handles = handles.with_text(DESCRIPTION, description);
        let services = Services::with_handles(memory, trace, config.log_level()?, statistics.is_some(), handles);
        let links: Arc<Link> = Loader::new(config, Arc::clone(&services)).build(&chosen)?.into();
        // SAFETY: the stack keeps the link, does not lend the child, and calls it by `&mut self` until it ends.
        let top = unsafe { Child::new(links.handle()) };
        let watch = watch(config, &services, statistics.as_ref())?;
        let (name, running) = (chosen.name, true);
        Ok(Stack { name, top, links, services, statistics, watch, running })
    }

    /// If a component of this process serves another process: blocks until that ends, and then ends this process. A
    /// program that passed its communicator continues instead, with an error.
    fn serve_others(&mut self) -> Result<()> {
        if self.capabilities().flags & capability::SERVES == 0 {
            return Ok(());
        }
        let served = self.serve(0)?;
        if served.ended == 0 {
            return Ok(());
        }
        let written = self.end();
        if !self.services.handle(COMMUNICATOR).is_null() {
            return Err(Error::new(status::SHUTDOWN, "this process served rank 0, whose context has ended"));
        }
        if let Err(error) = written {
            eprintln!("bh: {error}");
        }
        std::process::exit(served.exit_code)
    }

    /// The stack's name in the config.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Memory, counters, trace and base ids of the stack.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// The components from top to bottom.
    pub fn components(&self) -> Vec<ComponentInfo> {
        let mut components = Vec::new();
        visit(&self.links, 0, &mut |link, depth| {
            let component = &link.component;
            components.push(ComponentInfo {
                label: link.label().to_owned(),
                name: component.name.clone(),
                version: component.version.clone(),
                kind: component.kind(),
                depth,
            });
        });
        components
    }

    /// The abilities of the top component.
    pub fn capabilities(&mut self) -> Capabilities {
        self.top.capabilities()
    }

    /// Runs a batch; see [`crate::Component::execute`]. A batch without a partition has no blocks to list.
    pub fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        self.top.execute(batch, blocks, &mut Report::none())
    }

    /// As [`Stack::execute`], with a report of times. Failed instructions have been handled when it returns.
    pub fn execute_reported(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Collected) -> Result<Ticket> {
        report.collect(|report| self.top.execute(batch, blocks, report))
    }

    /// Predicts the cost of running a batch; see [`crate::Component::predict`].
    pub fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        self.top.predict(batch, blocks)
    }

    /// A second entry to the stack for calls that may overlap others ([`SharedCalls`]), if its components support it.
    /// It may be used from any thread.
    ///
    /// [`SharedCalls`]: crate::component::SharedCalls
    pub fn shared_calls(&mut self) -> Option<SharedTop> {
        let flags = self.top.capabilities().flags;
        let wanted = flags & capability::CONCURRENT_DATA != 0 && flags & capability::THREAD_AFFINE == 0;
        wanted.then(|| SharedTop { links: Arc::clone(&self.links), thread: None })
    }

    /// As [`Stack::shared_calls`], for a stack that accepts calls only from one thread, the current one: calls are made
    /// on that thread during its own `execute`, from the function of [`Services::set_host_progress`]. On other threads
    /// they fail.
    pub fn calls_between(&mut self) -> Option<SharedTop> {
        let wanted = capability::CONCURRENT_DATA | capability::THREAD_AFFINE;
        let found = self.top.capabilities().flags & wanted == wanted;
        found.then(|| SharedTop { links: Arc::clone(&self.links), thread: Some(std::thread::current().id()) })
    }

    /// As [`Stack::shared_calls`], for `evaluate` only, from any thread.
    pub fn evaluating_calls(&mut self) -> Option<EvaluatingCalls> {
        let found = self.top.capabilities().flags & capability::EVALUATES != 0;
        found.then(|| EvaluatingCalls(Arc::clone(&self.links)))
    }

    /// Direct calls of `immediate` from any thread, if the stack supports them.
    pub fn immediate_calls(&mut self) -> Option<ImmediateCalls> {
        let found = self.top.capabilities().flags & capability::IMMEDIATE != 0;
        found.then(|| ImmediateCalls::of(&self.links))
    }

    /// Asks a question or gives a command; see [`crate::Component::message`].
    pub fn message(&mut self, text: &str) -> Result<String> {
        self.top.message(text)
    }

    /// All counters, including the memory's and the time spent in each component itself.
    pub fn stats(&self) -> Snapshot {
        let stats = self.services.stats();
        visit(&self.links, 0, &mut |link, _| {
            let below: u64 = link.children().iter().map(|child| child.nanoseconds()).sum();
            stats.set(&format!("{}.own_ns", link.label()), link.nanoseconds().saturating_sub(below));
        });
        self.services.snapshot()
    }

    /// Destroys all components, from the top down, and writes the trace and the statistics that the environment
    /// requested. Returns the first failure to write. While a [`SharedTop`], [`EvaluatingCalls`] or [`ImmediateCalls`]
    /// of the stack exists, its components live, and are destroyed with the last of these.
    pub fn shutdown(mut self) -> Result<()> {
        self.end()
    }

    /// As [`Stack::shutdown`]; a second call does nothing.
    fn end(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.running) {
            return Ok(());
        }
        if let Some(links) = Arc::get_mut(&mut self.links) {
            links.shutdown();
        }
        // The watcher must not write after the final write below.
        self.watch = None;
        let mut result = Ok(());
        if let Some(trace) = self.services.trace() {
            result = result.and(trace.write().map_err(|error| file_error("trace", trace.path(), &error)));
        }
        if let Some((path, json)) = &self.statistics {
            let snapshot = self.stats();
            let written = match *json {
                true => std::fs::write(path, snapshot.to_json()),
                false => std::fs::write(path, snapshot.to_table()),
            };
            result = result.and(written.map_err(|error| file_error("statistics", path, &error)));
        }
        result
    }
}

macro_rules! stack_slots {
    (
        special { $($special:tt)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        /// The plain slots of the top component.
        impl Stack {
            $($(#[doc = $doc])*
            #[inline]
            pub fn $name(&mut self, $($argument: $kind),*) -> Result<slot_answer!($($answer)?)> {
                self.top.$name($($argument),*)
            })*
        }

        impl SharedCalls for SharedTop {
            $(shared_call! {
                $calls fn $name(&self, $($argument: $kind),*) -> Result<slot_answer!($($answer)?)> {
                    self.child()?.$name($($argument),*)
                }
            })*
        }
    };
}
macro_rules! shared_call {
    (serial $($method:tt)*) => {};
    (shared $($method:tt)*) => { $($method)* };
}
for_each_slot!(stack_slots);

/// The top of a stack for calls that may overlap others.
pub struct SharedTop {
    links: Arc<Link>,
    /// The only thread that may call, if calls are limited to one.
    thread: Option<ThreadId>,
}

impl SharedTop {
    #[inline]
    fn child(&self) -> Result<Child> {
        if self.thread.is_some_and(|thread| thread != std::thread::current().id()) {
            return Err(Error::new(
                status::UNSUPPORTED,
                "this stack is called from one thread only, which is another one",
            ));
        }
        // SAFETY: this value keeps the link alive longer than the child, which ends with the call; the components announced
        // that these calls may come at any time, on this thread.
        Ok(unsafe { Child::new(self.links.handle()) })
    }
}

/// The top of a stack for `evaluate` only.
pub struct EvaluatingCalls(Arc<Link>);

impl SharedCalls for EvaluatingCalls {
    #[inline]
    fn evaluate(&self, operation: &ScalarOperation) -> Result<Evaluation> {
        // SAFETY: this value keeps the link alive longer than the child, which ends with the call; the components announced
        // that this call may come at any time.
        unsafe { Child::new(self.0.handle()) }.evaluate(operation)
    }
}

/// The components of a stack that compute immediately, called directly without the links above them.
pub struct ImmediateCalls {
    /// From the top down: functions and contexts, which the links keep alive.
    components: Vec<(Arc<ForeignTable>, *mut c_void)>,
    _links: Arc<Link>,
    /// The component that answered last. It is tried first; all components give the same bits.
    last: AtomicUsize,
}

// SAFETY: the components announced that this call may come from any thread.
unsafe impl Send for ImmediateCalls {}
// SAFETY: as above.
unsafe impl Sync for ImmediateCalls {}

impl ImmediateCalls {
    fn of(top: &Arc<Link>) -> ImmediateCalls {
        let links = std::iter::successors(Some(&**top), |link| link.child());
        let able = links.filter(|link| link.has(capability::IMMEDIATE) && link.foreign().has_immediate());
        let components = able.map(Link::instance).collect();
        ImmediateCalls { components, _links: Arc::clone(top), last: AtomicUsize::new(0) }
    }

    /// A component's answer; `None` if it leaves the operation to others.
    #[inline]
    fn ask(&self, place: usize, operation: &ImmediateOperation) -> Option<Result<bool>> {
        let (component, context) = self.components.get(place)?;
        // SAFETY: the operation lives through the call, and is as its maker asks.
        match unsafe { Foreign { component, context: *context }.immediate(operation) } {
            None | Some(Ok(0)) => None,
            Some(result) => Some(result.map(|_| true)),
        }
    }
}

impl SharedCalls for ImmediateCalls {
    #[inline]
    fn immediate(&self, operation: &ImmediateOperation) -> Result<bool> {
        let last = self.last.load(Ordering::Relaxed);
        if let Some(answer) = self.ask(last, operation) {
            return answer;
        }
        for place in (0..self.components.len()).filter(|&place| place != last) {
            if let Some(answer) = self.ask(place, operation) {
                self.last.store(place, Ordering::Relaxed);
                return answer;
            }
        }
        Ok(false)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            self.services.log(log_level::ERROR, "stack", &error.to_string());
        }
    }
}

fn file_error(what: &str, path: &std::path::Path, error: &std::io::Error) -> Error {
    let text = format!("the {what} cannot be written to '{}': {error}", path.display());
    Error::new(crate::abi::status::FILE, text)
}

fn visit(link: &Link, depth: usize, each: &mut dyn FnMut(&Link, usize)) {
    each(link, depth);
    for child in link.children() {
        visit(child, depth + 1, each);
    }
}

//! Stacks of components as contexts: the current one, and what is asked of them.

use crate::error::{exception, waiting};
use crate::interrupt::detached;
use crate::method::{Method, Methods};
use crate::rank_calls;
use bh_core::Result;
use bh_core::abi::status;
use bh_core::config::{Config, Item, Table};
use bh_core::launcher::Launcher;
use bh_core::services::Handles;
use bh_core::stack::CALL;
use bh_recorder::{ArrayId, Input, Location, Recorder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::fmt::Write;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A running stack of components. Arrays keep the one that they were made in.
pub struct Context {
    /// Where operations are recorded.
    pub recorder: Arc<Recorder>,
    /// The stack's name.
    pub name: String,
    /// Its extension methods.
    pub methods: Methods,
    /// Bytes, at most, of what is carried out where it is called.
    pub little: u64,
    /// Are all arrays in the memory of this process? Asked once.
    in_process: OnceLock<bool>,
    /// May NumPy compute with arrays at hand? Asked once.
    computes_little: OnceLock<bool>,
    /// How many ranks have parts of the arrays. Asked once.
    ranks: OnceLock<usize>,
}

impl Context {
    /// Are all arrays of the stack in the memory of this process?
    pub fn is_in_process(&self, py: Python<'_>) -> PyResult<bool> {
        self.answer(py, &self.in_process, "stack_in_process")
    }

    /// May NumPy compute with arrays of the stack that are at hand?
    pub fn computes_little(&self, py: Python<'_>) -> PyResult<bool> {
        self.answer(py, &self.computes_little, "computes_little")
    }

    /// The answer of a function of bh's Python package on the stack, asked once.
    fn answer(&self, py: Python<'_>, known: &OnceLock<bool>, question: &str) -> PyResult<bool> {
        if let Some(known) = known.get() {
            return Ok(*known);
        }
        let found = py.import("bh._array.memory")?.call_method1(question, (&self.name,))?.extract()?;
        Ok(*known.get_or_init(|| found))
    }

    /// How many ranks have parts of the stack's arrays?
    pub fn ranks(&self, py: Python<'_>) -> PyResult<usize> {
        if let Some(known) = self.ranks.get() {
            return Ok(*known);
        }
        let told =
            detached(py, || self.recorder.with_stack(|stack| stack.message("cluster ranks"))).map_err(exception)?;
        Ok(*self.ranks.get_or_init(|| told.trim().parse().unwrap_or(1)))
    }

    /// Records a call of a method. False if no component of the stack has it, or it does not take such arrays.
    pub fn call(
        &self,
        py: Python<'_>,
        method: Method,
        out: ArrayId,
        inputs: &[Input],
        place: Location<'_>,
    ) -> PyResult<bool> {
        let Some(opcode) = self.methods.opcode(py, &self.recorder, method)? else { return Ok(false) };
        match self.recorder.call_extension(opcode, &[out], inputs, place) {
            Ok(()) => Ok(true),
            Err(error) if [status::UNSUPPORTED, status::TYPE, status::SHAPE].contains(&error.status) => Ok(false),
            Err(error) => Err(exception(error)),
        }
    }
}

/// Contexts are never dropped, as arrays may outlive everything.
pub type Shared = &'static Context;

/// All contexts that were made, by name, and the one that new arrays belong to.
struct Contexts {
    all: Vec<Shared>,
    current: Option<Shared>,
}

impl Contexts {
    /// Makes known which one is the current one.
    fn publish(&self) {
        let current = self.current.map_or(std::ptr::null(), |context| context);
        CURRENT.store(current.cast_mut(), Ordering::Release);
    }
}

/// The current one, or null, to be found without a lock.
static CURRENT: AtomicPtr<Context> = AtomicPtr::new(std::ptr::null_mut());

static CONTEXTS: Mutex<Contexts> = Mutex::new(Contexts { all: Vec::new(), current: None });

fn lock() -> std::sync::MutexGuard<'static, Contexts> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The context of new arrays, started at its first use.
pub fn current(py: Python<'_>) -> PyResult<Shared> {
    // SAFETY: it is null or a context, and those are never dropped.
    if let Some(context) = unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        return Ok(context);
    }
    let context = open(py, None)?;
    let mut contexts = lock();
    let current = *contexts.current.get_or_insert(context);
    contexts.publish();
    Ok(current)
}

/// The context on a stack, made if there is none. `None`: the stack that the user picked.
fn open(py: Python<'_>, name: Option<&str>) -> PyResult<Shared> {
    let known = |contexts: &Contexts, name: &str| contexts.all.iter().find(|context| context.name == name).copied();
    if let Some(context) = name.and_then(|name| known(&lock(), name)) {
        return Ok(context);
    }
    let start = || -> Result<Context> {
        let recorder = Recorder::new();
        // SAFETY: it is a `CallFn`, which works on any thread as long as the process.
        let handles = unsafe { Handles::default().with(CALL, rank_calls::call as *mut c_void) };
        recorder.open_with(name, handles)?;
        let name = recorder.with_stack(|stack| Ok(stack.name().to_owned()))?;
        let little = recorder.immediate_bytes();
        Ok(Context {
            recorder,
            name,
            methods: Methods::default(),
            little,
            in_process: OnceLock::new(),
            computes_little: OnceLock::new(),
            ranks: OnceLock::new(),
        })
    };
    let context = detached(py, start).map_err(exception)?;
    let mut contexts = lock();
    // An alias may name a stack that runs already; the second instance of it ends here.
    if let Some(known) = known(&contexts, &context.name) {
        return Ok(known);
    }
    let context: Shared = Box::leak(Box::new(context));
    contexts.all.push(context);
    Ok(context)
}

/// Has a launcher such as `mpirun` started several processes, and is the stack of this one a cluster's? Then the stack has to
/// be made before anything of the program runs, as the other ranks have no program.
#[pyfunction]
fn is_launched() -> bool {
    let among_others = Launcher::find().is_some_and(|launcher| launcher.size > 1);
    let is_cluster = |config: &Config, item: &Item| {
        let Item::One(name) = item else { return false };
        let library = config.value(Table::Component(&name.text), "library");
        name.text == "cluster" || library.is_some_and(|library| library.value.contains("vem_cluster"))
    };
    let chosen = || {
        let config = Config::find().ok()?;
        let stack = config.choose_stack(None).ok()?;
        Some(stack.items.iter().any(|item| is_cluster(&config, item)))
    };
    among_others && chosen().unwrap_or(false)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Stack>()?;
    module.add_function(wrap_pyfunction!(flush, module)?)?;
    module.add_function(wrap_pyfunction!(leave_stack, module)?)?;
    module.add_function(wrap_pyfunction!(is_launched, module)?)
}

/// As `Stack.flush`, of the stack that new arrays belong to.
#[pyfunction]
fn flush(py: Python<'_>, wait: bool) -> PyResult<()> {
    Stack { context: current(py)? }.flush(py, wait)
}

/// No stack is that of new arrays any more: the next array takes the one that the user picked.
#[pyfunction]
fn leave_stack() {
    let mut contexts = lock();
    contexts.current = None;
    contexts.publish();
}

/// A stack of components, by name.
#[pyclass(frozen, module = "bh")]
pub struct Stack {
    context: Shared,
}

#[pymethods]
impl Stack {
    /// The stack of this name; without a name, the one that new arrays belong to.
    #[new]
    #[pyo3(signature = (name=None))]
    fn new(py: Python<'_>, name: Option<&str>) -> PyResult<Stack> {
        let context = if name.is_some() { open(py, name)? } else { current(py)? };
        Ok(Stack { context })
    }

    /// Has this process a stack that new arrays belong to already?
    #[staticmethod]
    fn is_begun() -> bool {
        lock().current.is_some()
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.context.name
    }

    /// Makes this the stack of new arrays, and returns the one that was.
    fn activate(&self) -> Option<Stack> {
        let mut contexts = lock();
        let before = contexts.current.replace(self.context);
        contexts.publish();
        before.map(|context| Stack { context })
    }

    /// Waits until everything recorded is done, or only hands it over.
    #[pyo3(signature = (wait=true))]
    fn flush(&self, py: Python<'_>, wait: bool) -> PyResult<()> {
        let recorder = &self.context.recorder;
        if wait && recorder.is_idle().map_err(exception)? {
            return Ok(());
        }
        waiting(py, |patience| if wait { recorder.sync_with(patience) } else { recorder.flush() })
    }

    /// Sends a text question or command down the stack, and returns the answer.
    fn message(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        detached(py, || self.context.recorder.message(text)).map_err(exception)
    }

    /// As `message`, before what is recorded and not handed over is run.
    fn message_first(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        detached(py, || self.context.recorder.with_stack(|stack| stack.message(text))).map_err(exception)
    }

    /// Makes each operation complete before it returns, or goes back to recording.
    fn set_eager(&self, eager: bool) -> PyResult<()> {
        self.context.recorder.set_eager(eager).map_err(exception)
    }

    /// Have results to have the same bits wherever they are computed?
    fn is_reproducible(&self) -> bool {
        self.context.recorder.is_reproducible()
    }

    /// Changes the checks of operations: a list of names.
    fn set_checks(&self, py: Python<'_>, list: &str) -> PyResult<()> {
        let checks = bh_recorder::Checks::parse(list).map_err(PyValueError::new_err)?;
        detached(py, || self.context.recorder.set_checks(checks)).map_err(exception)
    }

    /// Begins to count the digits of results, or ends it.
    fn set_digits(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        detached(py, || self.context.recorder.set_digits(on)).map_err(exception)
    }

    /// Changes the lines, by file and number, whose results of double precision are rounded to single precision.
    fn set_narrowed(&self, py: Python<'_>, lines: Vec<(String, u32)>) -> PyResult<()> {
        detached(py, || self.context.recorder.set_narrowed(lines)).map_err(exception)
    }

    /// File, line, operation, the digits of the worst element and of the whole result, the most that the type has, and runs, for
    /// each line's operations.
    #[allow(clippy::type_complexity, reason = "a row of a table")]
    fn digits(&self, py: Python<'_>) -> PyResult<Vec<(String, u32, String, f64, f64, f64, u64)>> {
        let lines = detached(py, || self.context.recorder.digits()).map_err(exception)?;
        let row = |line: bh_recorder::LineDigits| {
            let [element, array, most] = [line.element, line.array, 0.0].map(|distance| line.digits(distance));
            (line.place.0, line.place.1, line.operation, element, array, most, line.runs)
        };
        Ok(lines.into_iter().map(row).collect())
    }

    /// Name and version of the stack and its components, one line each.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        let describe = |stack: &mut bh_core::Stack| {
            let mut text = format!("bh {}, stack {}\n", env!("CARGO_PKG_VERSION"), stack.name());
            for component in stack.components() {
                let indent = "  ".repeat(component.depth + 1);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{indent}{} ({}, {})", component.label, component.name, component.version);
            }
            // The components' messages about themselves, such as the device.
            for line in stack.message("info").unwrap_or_default().lines().filter(|line| !line.is_empty()) {
                let _ = writeln!(text, "{line}");
            }
            Ok(text)
        };
        detached(py, || self.context.recorder.with_stack(describe)).map_err(exception)
    }

    /// The names of its components, from the top down.
    fn components(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let names =
            |stack: &mut bh_core::Stack| Ok(stack.components().iter().map(|one| one.name.to_string()).collect());
        detached(py, || self.context.recorder.with_stack(names)).map_err(exception)
    }

    /// The counters since the stack began, as pairs of a name and a number.
    fn counters(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        let recorder = &self.context.recorder;
        let counts = recorder.statistics();
        let mut all: Vec<(String, u64)> = [
            ("arrays", counts.arrays),
            ("bases", counts.bases),
            ("recorded", counts.recorded),
            ("immediate", counts.immediate),
            ("pending", counts.pending),
            ("batches", counts.batches),
            ("instructions", counts.instructions),
            ("batches_on_caller", counts.batches_on_caller),
            ("recipes", counts.recipes),
            ("recomputed", counts.recomputed),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into();
        let stack = detached(py, || recorder.with_stack(|stack| Ok(stack.stats().0))).map_err(exception)?;
        all.extend(stack);
        Ok(all)
    }

    /// So far: operations that wait or waited for a batch, batches, operations that were carried out at once.
    fn work(&self) -> [u64; 3] {
        let counts = self.context.recorder.statistics();
        [counts.recorded - counts.immediate, counts.batches, counts.immediate]
    }

    /// Bytes of host memory: in use, the most ever in use, kept for reuse, the limit.
    fn memory(&self, py: Python<'_>) -> PyResult<[usize; 4]> {
        let ask = |stack: &mut bh_core::Stack| {
            let memory = stack.services().memory();
            let (usage, settings) = (memory.usage(), memory.settings());
            Ok([usage.in_use, usage.peak, usage.cached, settings.limit])
        };
        detached(py, || self.context.recorder.with_stack(ask)).map_err(exception)
    }
}

impl Stack {
    /// The stack of a context.
    pub fn of(context: Shared) -> Stack {
        Stack { context }
    }

    /// The context of this stack.
    pub fn context(&self) -> Shared {
        self.context
    }
}

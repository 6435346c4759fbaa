//! The native half of derivatives: stretches of a program that are taped, and their adjoints.

use crate::array::Array;
use crate::context::Shared;
use crate::error::{exception, value_error};
use crate::interrupt::detached;
use crate::location::with_location;
use crate::shared_view::contiguous;
use bh_bytecode::{DType, Opcode};
use bh_core::config::parse_size;
use bh_core::machine;
use bh_recorder::{ArrayId, Input};
use bh_transform::{Disk, Window, shaped};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Taping>()?;
    module.add_class::<Pullback>()?;
    module.add_class::<Way>()?;
    module.add_class::<Known>()?;
    module.add_function(wrap_pyfunction!(memory_bound, module)?)?;
    module.add_function(wrap_pyfunction!(constant_copy, module)?)
}

/// Bytes of a bound of memory: a number of them, a text like "2 GiB" or "25%", or the share of the machine's memory that a number
/// below 1 is. `argument`: its name.
#[pyfunction]
fn memory_bound(bound: &Bound<'_, PyAny>, argument: &str) -> PyResult<u64> {
    let wrong = || {
        let text = "a number of bytes, a size like \"2 GiB\" or \"25%\", or a share between 0 and 1 is expected";
        PyValueError::new_err(format!("{argument}: {text}, not {bound}"))
    };
    if let Ok(text) = bound.extract::<String>() {
        return parse_size(&text, machine::memory).map(|bytes| bytes as u64).ok_or_else(wrong);
    }
    match bound.extract::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok((machine::memory() as f64 * share) as u64),
        Ok(bytes) if bytes >= 1.0 && bytes.is_finite() => Ok(bytes as u64),
        _ => Err(wrong()),
    }
}

/// The form of an argument of a taped stretch: its base, its type and its extents.
#[derive(Clone)]
struct Argument {
    base: u64,
    dtype: DType,
    shape: Vec<i64>,
}

/// A stretch of a program that is being taped.
#[pyclass(frozen, module = "bh")]
pub struct Taping {
    context: Shared,
    arguments: Vec<Argument>,
    taping: Mutex<Option<bh_transform::Taping>>,
}

/// Takes adjoints of a taped stretch's results back to its arguments.
#[pyclass(frozen, module = "bh")]
struct Pullback {
    context: Shared,
    arguments: Vec<Argument>,
    pullback: Arc<bh_transform::Pullback>,
}

/// A way back through a stretch.
#[pyclass(frozen, module = "bh")]
struct Way {
    context: Shared,
    arguments: Vec<Argument>,
    pullback: Arc<bh_transform::Pullback>,
    way: Mutex<bh_transform::Way>,
}

/// A call, in a stretch, of a function whose adjoint the caller knows.
#[pyclass(frozen, module = "bh")]
struct Known {
    place: usize,
    inputs: Vec<Option<Window>>,
    outputs: Vec<Argument>,
}

/// The arrays' names in one context.
pub fn names(context: Shared, arrays: &[PyRef<'_, Array>]) -> PyResult<Vec<ArrayId>> {
    let fits = |array: &PyRef<'_, Array>| array.link.is_none() && std::ptr::eq(array.context, context);
    if !arrays.iter().all(fits) {
        return Err(PyTypeError::new_err("derivatives are taken within one stack, and not of parts of complex arrays"));
    }
    Ok(arrays.iter().map(|array| array.id()).collect())
}

#[pymethods]
impl Taping {
    /// Begins to tape operations on these arrays, each the whole of its memory in C order. `bound`: the most bytes of memory that
    /// the derivative may take, and of disk.
    #[new]
    #[pyo3(signature = (arguments, bound=None))]
    fn new(py: Python<'_>, arguments: Vec<PyRef<'_, Array>>, bound: Option<(u64, Option<u64>)>) -> PyResult<Taping> {
        let context = arguments.first().ok_or_else(|| PyValueError::new_err("there is nothing to differentiate by"))?;
        let context = context.context;
        let ids = names(context, &arguments)?;
        let all = described(context, &ids)?;
        let begin = || {
            let levels = |(memory, disk): (u64, Option<u64>)| {
                Ok((memory, disk.map(|bytes| Disk::open(None, bytes)).transpose()?))
            };
            bh_transform::Taping::begin(&context.recorder, &ids, bound.map(levels).transpose()?)
        };
        let taping = detached(py, begin).map_err(exception)?;
        Ok(Taping { context, arguments: all, taping: Mutex::new(Some(taping)) })
    }

    /// Lets new arrays count as results of a function of `inputs` whose adjoint the caller knows.
    fn call(&self, py: Python<'_>, inputs: Vec<PyRef<'_, Array>>, outputs: Vec<PyRef<'_, Array>>) -> PyResult<Known> {
        let (from, to) = (names(self.context, &inputs)?, names(self.context, &outputs)?);
        let outputs = described(self.context, &to)?;
        let call = || {
            let taping = self.locked();
            taping.as_ref().map(|taping| taping.call(&from, &to))
        };
        let (place, inputs) = detached(py, call).ok_or_else(ended)?.map_err(exception)?;
        Ok(Known { place, inputs, outputs })
    }

    /// Ends the stretch. `later`: the program goes on before adjoints are taken back.
    fn end(&self, py: Python<'_>, results: Vec<PyRef<'_, Array>>, later: bool) -> PyResult<Pullback> {
        let ids = names(self.context, &results)?;
        let taping = self.take().ok_or_else(ended)?;
        let pullback = detached(py, || taping.end(&ids, later)).map_err(exception)?;
        Ok(Pullback { context: self.context, arguments: self.arguments.clone(), pullback: Arc::new(pullback) })
    }

    /// Ends a stretch that failed.
    fn abandon(&self, py: Python<'_>) {
        let taping = self.take();
        detached(py, || drop(taping));
    }
}

impl Taping {
    /// The stretch, if it has not ended.
    pub fn locked(&self) -> MutexGuard<'_, Option<bh_transform::Taping>> {
        self.taping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<bh_transform::Taping> {
        self.locked().take()
    }
}

#[pymethods]
impl Pullback {
    /// Has the stretch changed an argument?
    fn has_changed(&self, argument: usize) -> bool {
        self.arguments.get(argument).is_some_and(|argument| self.pullback.has_changed(argument.base))
    }

    /// The derivative's use of memory: units, states, runs, the most bytes, the least bound, and the most bytes on disk.
    /// `None` without a bound.
    fn plan(&self) -> Option<[u64; 6]> {
        let plan = self.pullback.plan()?;
        Some([plan.units, plan.states, plan.runs, plan.peak, plan.least, plan.disk])
    }

    /// Begins a way back, with adjoints of all results. `once`: it is the only one.
    fn begin(&self, py: Python<'_>, adjoints: Vec<PyRef<'_, Array>>, once: bool) -> PyResult<Way> {
        let ids = names(self.context, &adjoints)?;
        let way = detached(py, || self.pullback.begin(&ids, once)).map_err(exception)?;
        let (arguments, pullback) = (self.arguments.clone(), self.pullback.clone());
        Ok(Way { context: self.context, arguments, pullback, way: Mutex::new(way) })
    }
}

#[pymethods]
impl Way {
    /// Goes back to a call, and takes the adjoints of its results. `None` for those that nothing behind it depends on.
    fn back_to(&self, py: Python<'_>, call: PyRef<'_, Known>) -> PyResult<Vec<Option<Array>>> {
        let place = call.place;
        self.with(py, |pullback, way| pullback.run_to(way, place))?;
        call.outputs.iter().map(|output| self.take(py, output)).collect()
    }

    /// Adds an adjoint of an input of a call where the way is.
    fn add(&self, py: Python<'_>, call: PyRef<'_, Known>, input: usize, adjoint: PyRef<'_, Array>) -> PyResult<()> {
        let id = names(self.context, std::slice::from_ref(&adjoint))?[0];
        let Some(Some(window)) = call.inputs.get(input).cloned() else { return Ok(()) };
        self.with(py, |pullback, way| pullback.add(way, &window, id))
    }

    /// How many units have run again so far, without those before their own adjoints; 0 if there is no bound.
    fn runs(&self) -> u64 {
        self.way.lock().unwrap_or_else(PoisonError::into_inner).runs()
    }

    /// Goes back to the begin, and takes the adjoints of the arguments. `None` for those that no result depends on.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<Option<Array>>> {
        self.with(py, |pullback, way| pullback.run_to(way, 0))?;
        self.arguments.iter().map(|argument| self.take(py, argument)).collect()
    }
}

impl Way {
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&bh_transform::Pullback, &mut bh_transform::Way) -> bh_core::Result<R> + Send,
    ) -> PyResult<R> {
        let done = detached(py, || f(&self.pullback, &mut self.way.lock().unwrap_or_else(PoisonError::into_inner)));
        done.map_err(exception)
    }

    /// The adjoint of an array where the way is.
    fn take(&self, py: Python<'_>, of: &Argument) -> PyResult<Option<Array>> {
        let Some(found) = self.with(py, |pullback, way| pullback.take(way, of.base))? else { return Ok(None) };
        let view = contiguous(&of.shape).map_err(value_error)?;
        let id = shaped(&self.context.recorder, &found, &of.shape).map_err(exception)?;
        Ok(Some(Array::new(self.context, id, of.dtype, view)))
    }
}

fn described(context: Shared, ids: &[ArrayId]) -> PyResult<Vec<Argument>> {
    let argument = |id: &ArrayId| {
        let info = context.recorder.info(*id).map_err(exception)?;
        Ok(Argument { base: info.base, dtype: info.dtype, shape: info.view.shape().to_vec() })
    };
    ids.iter().map(argument).collect()
}

fn ended() -> PyErr {
    PyValueError::new_err("the stretch has ended")
}

/// A copy of an array whose values count as constant for stretches that are being taped.
#[pyfunction]
fn constant_copy(py: Python<'_>, array: PyRef<'_, Array>, tapings: Vec<PyRef<'_, Taping>>) -> PyResult<Array> {
    let view = contiguous(array.view.shape()).map_err(value_error)?;
    let copy = Array::new_empty(array.context, array.dtype, view)?;
    for taping in &tapings {
        let taping = taping.locked();
        if let Some(taping) = &*taping {
            taping.stop(copy.id()).map_err(exception)?;
        }
    }
    let (recorder, from, to) = (&array.context.recorder, array.id(), copy.id());
    with_location(py, |place| recorder.operate(Opcode::Copy, 0, to, &[Input::Array(from)], place))
        .map_err(exception)?;
    copy.set_scalar(array.is_scalar());
    Ok(copy)
}

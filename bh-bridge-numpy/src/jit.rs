//! The native half of `bh.jit`: recordings of traced functions, found by what their arrays have in common, and run.

use crate::array::Array;
use crate::context::{Context, Shared};
use crate::error::{exception, value_error};
use crate::interrupt::detached;
use crate::operand::{number, set_symbol};
use bh_bytecode::{Constant, DType, View};
use bh_recorder::{ArrayId, Recording};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Recordings>()?;
    module.add_class::<Call>()?;
    module.add_function(wrap_pyfunction!(set_symbol, module)?)
}

/// Recordings of one function, at most; then all are made anew.
const MOST: usize = 256;

/// The recordings of a function for arguments that differ in their arrays only.
#[pyclass(frozen, module = "bh")]
struct Recordings {
    all: Mutex<HashMap<Vec<u64>, Py<Call>>>,
}

/// A traced call, to be run with other arrays.
#[pyclass(frozen, module = "bh")]
struct Call {
    context: Shared,
    recording: Recording,
    results: Vec<Leaf>,
    /// Other data that its caller needs.
    #[pyo3(get)]
    rest: Py<PyAny>,
}

/// The form of an array of the result.
struct Leaf {
    dtype: DType,
    view: Arc<View>,
    scalar: bool,
    writeable: bool,
    /// The argument whose memory it is a view of.
    of: Option<usize>,
}

/// The context of arrays and their names. `None` if they cannot be arguments of a recording.
fn names(py: Python<'_>, arrays: &[PyRef<'_, Array>]) -> PyResult<Option<(Shared, Vec<ArrayId>)>> {
    let context = match arrays.first() {
        Some(first) => first.context,
        None => crate::context::current(py)?,
    };
    let fits = |array: &PyRef<'_, Array>| array.link.is_none() && std::ptr::eq(array.context, context);
    let fit = arrays.iter().all(fits);
    Ok(fit.then(|| (context, arrays.iter().map(|array| array.id()).collect())))
}

/// As [`names`], of arrays that were found to be fit before.
fn known_names(py: Python<'_>, arrays: &[PyRef<'_, Array>]) -> PyResult<(Shared, Vec<ArrayId>)> {
    let unfit = || PyValueError::new_err("these arrays cannot be arguments of a traced function");
    names(py, arrays)?.ok_or_else(unfit)
}

/// The array properties that calls of one recording share.
fn guard(context: &Context, ids: &[ArrayId], arrays: &[PyRef<'_, Array>]) -> PyResult<Option<Vec<u64>>> {
    let words = context.recorder.guard(ids).map_err(exception)?;
    Ok(words.map(|mut words| {
        let context: *const Context = context;
        words.push(context.addr() as u64);
        words.extend(arrays.iter().map(|array| u64::from(array.is_writeable()) | u64::from(array.is_scalar()) << 1));
        words
    }))
}

#[pymethods]
impl Recordings {
    #[new]
    fn new() -> Recordings {
        Recordings { all: Mutex::default() }
    }

    /// The call with arrays like these, if it was traced.
    fn find<'py>(&self, py: Python<'py>, arrays: Vec<PyRef<'py, Array>>) -> PyResult<Option<Py<Call>>> {
        let Some(words) = self.guard(py, arrays)? else { return Ok(None) };
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.get(&words).map(|call| call.clone_ref(py)))
    }

    /// Begins to trace a call with these arrays.
    fn begin(&self, py: Python<'_>, arrays: Vec<PyRef<'_, Array>>) -> PyResult<()> {
        let (context, ids) = known_names(py, &arrays)?;
        detached(py, || context.recorder.begin_trace(&ids)).map_err(exception)
    }

    /// Ends the trace of a function that failed.
    fn abandon(&self, py: Python<'_>, arrays: Vec<PyRef<'_, Array>>) -> PyResult<()> {
        let (context, _) = known_names(py, &arrays)?;
        detached(py, || context.recorder.abandon_trace()).map_err(exception)
    }

    /// Ends the trace. Fails if later calls would do something else. `None` if another thread has recorded operations meanwhile.
    fn end<'py>(
        &self,
        py: Python<'py>,
        arrays: Vec<PyRef<'py, Array>>,
        results: Vec<PyRef<'py, Array>>,
        rest: Py<PyAny>,
    ) -> PyResult<Option<Py<Call>>> {
        let (context, ids) = known_names(py, &arrays)?;
        let made: Vec<ArrayId> = results.iter().map(|array| array.id()).collect();
        let linked = results.iter().any(|array| array.link.is_some() || !std::ptr::eq(array.context, context));
        let recording = detached(py, || context.recorder.end_trace(&ids, &made)).map_err(exception)?;
        let Some(recording) = recording else { return Ok(None) };
        if linked {
            return Err(PyTypeError::new_err(
                "a traced function returns parts of a complex array, or of another stack",
            ));
        }
        let roots: Vec<usize> = arrays.iter().map(|array| root(array)).collect();
        let leaf = |array: &PyRef<'py, Array>| Leaf {
            dtype: array.dtype,
            view: array.view.shared(),
            scalar: array.is_scalar(),
            writeable: array.is_writeable(),
            of: array.base.as_ref().and_then(|base| roots.iter().position(|&root| root == base.as_ptr().addr())),
        };
        let results = results.iter().map(leaf).collect();
        Py::new(py, Call { context, recording, results, rest }).map(Some)
    }

    /// Keeps a call for those whose arrays had this in common with its own before it.
    fn keep(&self, before: Vec<u64>, call: Py<Call>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(before, call);
    }

    /// The properties that calls of a recording for these arrays share.
    fn guard(&self, py: Python<'_>, arrays: Vec<PyRef<'_, Array>>) -> PyResult<Option<Vec<u64>>> {
        let Some((context, ids)) = names(py, &arrays)? else { return Ok(None) };
        guard(context, &ids, &arrays)
    }
}

/// The address of the object whose memory an array has.
fn root(array: &PyRef<'_, Array>) -> usize {
    array.base.as_ref().map_or_else(|| array.as_ptr().addr(), |base| base.as_ptr().addr())
}

#[pymethods]
impl Call {
    /// The marks of the numbers that calls have to give.
    #[getter]
    fn marks(&self) -> Vec<u16> {
        self.recording.numbers().map(|(_, mark)| mark).collect()
    }

    /// Operations that a call runs.
    #[getter]
    fn operations(&self) -> usize {
        self.recording.operations()
    }

    /// Runs the call with arrays like those of the trace, and numbers in the order of their marks. `None` if it cannot be run.
    fn run<'py>(
        &self,
        py: Python<'py>,
        arrays: Vec<Bound<'py, Array>>,
        numbers: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Vec<Array>>> {
        let ids: Vec<ArrayId> = arrays.iter().map(|array| array.get().id()).collect();
        let constant = |((dtype, _), given): ((DType, u16), &Bound<'py, PyAny>)| {
            let fit = number(given).and_then(|number| number.constant(dtype));
            let text = || format!("{given} is no value of type {}", dtype.numpy_name());
            fit.ok_or_else(|| PyOverflowError::new_err(text()))
        };
        let numbers = self.recording.numbers().zip(&numbers).map(constant).collect::<PyResult<Vec<Constant>>>()?;
        let recorder = &self.context.recorder;
        let Some(made) = detached(py, || recorder.replay(&self.recording, &ids, &numbers)).map_err(exception)? else {
            return Ok(None);
        };
        let array = |(leaf, made): (&Leaf, bh_recorder::Replayed)| {
            let view =
                if made.shift == 0 { Arc::clone(&leaf.view) } else { Arc::new(shifted(&leaf.view, made.shift)?) };
            let mut array = Array::new(self.context, made.array, leaf.dtype, view);
            array.set_scalar(leaf.scalar);
            array.set_writeable(leaf.writeable);
            array.base = leaf.of.map(|at| match &arrays[at].get().base {
                Some(base) => base.clone_ref(py),
                None => arrays[at].clone().unbind(),
            });
            Ok(array)
        };
        self.results.iter().zip(made).map(array).collect::<PyResult<Vec<Array>>>().map(Some)
    }
}

/// The same view, `elements` elements later.
fn shifted(view: &View, elements: i64) -> PyResult<View> {
    let start = if view.is_empty() { view.start() } else { view.start() + elements };
    View::new(start, view.shape(), view.stride()).map_err(value_error)
}

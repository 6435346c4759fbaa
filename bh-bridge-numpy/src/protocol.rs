//! NumPy's functions called on arrays of bh: those that the table of known calls serves need no Python.

use crate::array::Array;
use crate::product::product;
use crate::scalar::give;
use crate::text::intern;
use crate::ufunc::Ufunc;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::OnceLock;

/// bh's universal functions by NumPy's.
static UFUNCS: OnceLock<Py<PyDict>> = OnceLock::new();

/// Tells bh's universal functions by NumPy's.
#[pyfunction]
fn set_ufuncs(functions: Py<PyDict>) {
    // A second call, of a reloaded package, changes nothing.
    let _ = UFUNCS.set(functions);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_ufuncs, module)?)
}

#[pymethods]
impl Array {
    #[pyo3(signature = (function, method, *inputs, **keywords))]
    fn __array_ufunc__<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
        method: &Bound<'py, PyAny>,
        inputs: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if keywords.is_none_or(|keywords| keywords.is_empty()) && method.eq(intern!(py, "__call__"))? {
            let known = known(function)?;
            if let Some(known) = &known
                && let Some(result) = served(known.get(), inputs)?
            {
                return give(py, result);
            }
            if let (2, true) = (inputs.len(), function.is(matmul(py)?))
                && let Some(result) = product(py, "matmul", &inputs.get_item(0)?, &inputs.get_item(1)?)?
            {
                return give(py, result);
            }
            let operands: Vec<_> = inputs.iter().map(Bound::unbind).collect();
            if let Some(known) = &known
                && let Some(result) = crate::by_class::universal(py, known.get(), &operands, false)?
            {
                return Ok(result);
            }
        }
        let all = [function, method].into_iter().cloned().chain(inputs.iter());
        slf.call_method(intern!(py, "_array_ufunc"), PyTuple::new(py, all.collect::<Vec<_>>())?, keywords)
    }
}

static MATMUL: OnceLock<Py<PyAny>> = OnceLock::new();

/// NumPy's product of matrices, which has no row in that table.
fn matmul(py: Python<'_>) -> PyResult<&'static Py<PyAny>> {
    if let Some(known) = MATMUL.get() {
        return Ok(known);
    }
    let function = py.import("numpy")?.getattr("matmul")?.unbind();
    Ok(MATMUL.get_or_init(|| function))
}

/// The universal function of bh's for one of NumPy's.
fn known<'py>(function: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Ufunc>>> {
    let Some(known) = UFUNCS.get() else { return Ok(None) };
    // The class in Python completes the native one.
    Ok(known.bind(function.py()).get_item(function)?.map(Bound::cast_into::<Ufunc>).transpose()?)
}

/// A call that the table of known calls serves.
fn served(ufunc: &Ufunc, inputs: &Bound<'_, PyTuple>) -> PyResult<Option<Array>> {
    let py = inputs.py();
    let given = |place| inputs.get_item(place).map(Bound::unbind);
    let all = match inputs.len() {
        1 => [given(0)?, py.None()],
        2 => [given(0)?, given(1)?],
        _ => return Ok(None),
    };
    let all = &all[..inputs.len()];
    match ufunc.call_list(py, all)? {
        Some(result) => Ok(Some(result)),
        None => match crate::foreign::arguments(py, all, None) {
            Some(copies) => ufunc.call_list(py, &copies),
            None => Ok(None),
        },
    }
}

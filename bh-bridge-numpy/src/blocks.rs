//! Functions of Python on each rank's own part of arrays: they are recorded here, and called here on all ranks.

use crate::array::Array;
use crate::compose::place;
use crate::error::exception;
use crate::interrupt::detached;
use bh_recorder::{Input, Location};
use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(call_blocks, module)?)
}

/// Has each rank call a function, in a form that [`crate::rank_calls::call`] knows, on its rows of whole arrays; the results are rows
/// of `out`.
#[pyfunction]
fn call_blocks(
    py: Python<'_>,
    function: &str,
    halo: u32,
    out: &Bound<'_, Array>,
    arrays: Vec<PyRef<'_, Array>>,
) -> PyResult<()> {
    let out = out.borrow();
    let (recorder, anchor, (file, line)) = (&out.context.recorder, out.current(py)?, place(py));
    let inputs: PyResult<Vec<Input>> = arrays.iter().map(|array| Ok(Input::Array(array.current(py)?))).collect();
    let inputs = inputs?;
    detached(py, || {
        let method = recorder.extension("cluster_call")?;
        recorder.message(&format!("cluster call {halo} {function}"))?;
        recorder.call_extension(method, &[anchor], &inputs, Location { file: &file, line })?;
        recorder.sync()
    })
    .map_err(exception)
}

//! Compositions that bridges share: positions of extremes, joined arrays, numbers at equal distances, arrays in files.

use crate::array::Array;
use crate::assemble::recorded;
use crate::context::{self, Shared, Stack};
use crate::error::{exception, waiting};
use crate::interrupt::detached;
use crate::location::with_location;
use bh_bytecode::{DType, View};
use bh_compose::{Assembly, Extreme, Spacing};
use bh_recorder::{ArrayId, Location};
use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(position_of_extreme, module)?)?;
    module.add_function(wrap_pyfunction!(concatenate, module)?)?;
    module.add_function(wrap_pyfunction!(linspace, module)?)?;
    module.add_function(wrap_pyfunction!(save, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)
}

/// A new array of a context, as the recorder describes it.
fn described(context: Shared, id: ArrayId) -> PyResult<Array> {
    let info = context.recorder.info(id).map_err(exception)?;
    Ok(Array::new(context, id, info.dtype, info.view))
}

/// The index along an axis of the first largest (or smallest) element, or of the first NaN.
#[pyfunction]
pub fn position_of_extreme(py: Python<'_>, array: &Array, axis: usize, greatest: bool, keep: bool) -> PyResult<Array> {
    let extreme = if greatest { Extreme::Greatest } else { Extreme::Least };
    let (recorder, id) = (&array.context.recorder, array.current(py)?);
    let record = |place: Location<'_>| bh_compose::position_of_extreme(recorder, id, axis, extreme, keep, place);
    let result = described(array.context, with_location(py, record).map_err(exception)?)?;
    result.set_scalar(result.view.rank() == 0);
    Ok(result)
}

/// The parts one after the other along a dimension. They have one type, one stack, and the same other extents.
#[pyfunction]
fn concatenate(py: Python<'_>, parts: Vec<PyRef<'_, Array>>, axis: usize) -> PyResult<Array> {
    let parts: Vec<&Array> = parts.iter().map(|part| &**part).collect();
    let views: Vec<View> = parts.iter().map(|part| *part.view).collect();
    recorded(py, &parts, &Assembly::joined("concatenate", &views, axis).map_err(exception)?)
}

/// So many numbers at equal distances. `endpoint`: the limit is the last one.
#[pyfunction]
fn linspace(py: Python<'_>, count: i64, start: f64, stop: f64, endpoint: bool) -> PyResult<Array> {
    spaced(py, Spacing { start, stop, count, endpoint })
}

/// The same, recorded on the stack of new arrays.
pub fn spaced(py: Python<'_>, spacing: Spacing) -> PyResult<Array> {
    let (context, count) = (context::current(py)?, spacing.count);
    let record = |place: Location<'_>| bh_compose::linspace(&context.recorder, DType::F64, &[count], spacing, place);
    described(context, with_location(py, record).map_err(exception)?)
}

/// The place in the user's program, for a call that lets other threads run.
pub(crate) fn place(py: Python<'_>) -> (Vec<u8>, u32) {
    with_location(py, |place| (place.file.to_vec(), place.line))
}

/// Writes an array to a file in NumPy's format. Waits for the elements.
#[pyfunction]
fn save(py: Python<'_>, path: &str, array: &Array) -> PyResult<()> {
    let (recorder, id, (file, line)) = (&array.context.recorder, array.current(py)?, place(py));
    waiting(py, |patience| bh_compose::save(recorder, path, id, Location { file: &file, line }, patience))
}

/// A new array with the contents of a file in NumPy's format.
#[pyfunction]
#[pyo3(signature = (path, stack=None))]
fn load(py: Python<'_>, path: &str, stack: Option<&Stack>) -> PyResult<Array> {
    let context = stack.map_or_else(|| context::current(py), |stack| Ok(stack.context()))?;
    let (recorder, (file, line)) = (&context.recorder, place(py));
    let load = || bh_compose::load(recorder, path, Location { file: &file, line });
    let id = detached(py, load).map_err(exception)?;
    described(context, id)
}

//! Differences of neighbours divided by their distances, in arrays that are not little.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::create::ordered;
use crate::error::{exception, value_error};
use crate::layout::axes_in_memory;
use crate::location::with_location;
use crate::order::is_at_numpys;
use crate::record::cast_in_order;
use crate::sequence::{dimension, whole, wholes};
use crate::strided::is_plain;
use crate::text::intern;
use crate::warning;
use bh_bytecode::{Constant, DType, Opcode};
use bh_recorder::{Input, Location};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyTuple};

/// Elements of a line: from one on, before another one.
type Bounds = (i64, Option<i64>);

/// A part of lines along a dimension.
fn part(array: &Array, axis: usize, (start, stop): Bounds) -> PyResult<Array> {
    Ok(array.seen(array.view.slice(axis, Some(start), stop, 1).map_err(value_error)?))
}

/// The gradient along a dimension: at the ends the difference to the one neighbour, elsewhere half of that between both.
fn along(py: Python<'_>, array: &Array, axis: usize, distance: f64) -> PyResult<Array> {
    let axes = axes_in_memory(&array.view);
    let result = ordered(array.context, array.dtype, array.view.shape(), axes.as_deref())?;
    // Loops go through memory in its order.
    let axes = axes.unwrap_or_else(|| (0..array.view.rank()).collect());
    let turned =
        |array: &Array| -> PyResult<Array> { Ok(array.seen(array.view.transpose(&axes).map_err(value_error)?)) };
    let (from, to) = (turned(array)?, turned(&result)?);
    let Some(axis) = axes.iter().position(|&dim| dim == axis) else { return Ok(result) };
    let recorder = &array.context.recorder;
    let step = |target: Bounds, [above, below]: [Bounds; 2], distance: f64| -> PyResult<()> {
        let [above, below] = [part(&from, axis, above)?, part(&from, axis, below)?];
        let target = part(&to, axis, target)?;
        let distance = Input::Constant(Constant::from_value(distance).cast(array.dtype));
        let (id, both) = (target.id(), [Input::Array(above.id()), Input::Array(below.id())]);
        let record = |place: Location<'_>| {
            let difference = recorder.operate_new(Opcode::Subtract, 0, None, &both, place)?;
            let done = recorder.operate(Opcode::Divide, 0, id, &[Input::Array(difference), distance], place);
            recorder.free_later(difference);
            done
        };
        with_location(py, record).map_err(exception)
    };
    if from.view.shape()[axis] > 2 {
        step((1, Some(-1)), [(2, None), (0, Some(-2))], 2.0 * distance)?;
    }
    step((0, Some(1)), [(1, Some(2)), (0, Some(1))], distance)?;
    step((-1, None), [(-1, None), (-2, Some(-1))], distance)?;
    drop((from, to));
    Ok(result)
}

/// A distance: a number of Python.
fn distance(object: &Bound<'_, PyAny>) -> Option<f64> {
    match object.is_exact_instance_of::<PyFloat>() {
        true => object.extract().ok(),
        false => whole(object).map(|whole| whole as f64),
    }
}

/// Serves gradients with equal distances, given as numbers, along one, several or all dimensions.
pub fn gradient<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, axis) = (call.py(), call.arguments.get(intern!(call.py(), "axis")));
    let plan = || {
        let (array, distances) = call.arguments.unnamed().split_first()?;
        let array = array.bind(py).cast_exact::<Array>().ok()?;
        let this = array.get();
        let rank = this.view.rank();
        let axes = match axis.filter(|axis| !axis.is_none()) {
            None => (0..rank).collect(),
            Some(axis) => {
                let all = whole(axis).map(|axis| vec![axis]).or_else(|| wholes(axis))?;
                all.into_iter().map(|axis| dimension(axis, rank)).collect::<Option<Vec<usize>>>()?
            }
        };
        let given = distances.iter().map(|given| distance(given.bind(py))).collect::<Option<Vec<f64>>>()?;
        let distances = match given[..] {
            [] => vec![1.0; axes.len()],
            [one] => vec![one; axes.len()],
            _ => given,
        };
        let is_once = (1..axes.len()).all(|place| !axes[..place].contains(&axes[place]));
        let is_known = call.arguments.named() == usize::from(axis.is_some()) && distances.len() == axes.len();
        let fits = is_plain(this) && this.dtype != DType::Bool && !this.view.is_empty() && !is_at_numpys(this);
        let is_long = axes.iter().all(|&axis| this.view.shape()[axis] > 1);
        (is_known && fits && is_long && is_once && !axes.is_empty()).then_some((array, axes, distances))
    };
    let Some((array, axes, distances)) = plan().filter(|_| !warning::errors_asked()) else { return Ok(None) };
    let array = match array.get().dtype.is_int() {
        true => Bound::new(py, cast_in_order(py, array, DType::F64 as u8)?)?,
        false => array.clone(),
    };
    let each = axes.iter().zip(distances).map(|(&axis, distance)| along(py, array.get(), axis, distance));
    let made = PyTuple::new(py, each.collect::<PyResult<Vec<Array>>>()?)?;
    if made.len() == 1 { made.get_item(0).map(Some) } else { Ok(Some(made.into_any())) }
}

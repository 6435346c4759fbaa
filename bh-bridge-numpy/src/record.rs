//! The operations that Python composes: making arrays, views, conversions, folds, index operations, extension methods.

use crate::array::{self, Array, derive};
use crate::context::{self, Shared, Stack};
use crate::create::{ordered, with_all};
use crate::error::{exception, value_error};
use crate::interrupt::detached;
use crate::layout::Order;
use crate::location::with_location;
use crate::operand::{Operand, classify};
use crate::sequence;
use crate::shared_view::contiguous;
use crate::strided::is_plain;
use crate::ufunc::{broadcast, shown};
use crate::warning;
use bh_bytecode::{DType, Kind, Opcode, TypeSet, View};
use bh_core::abi::status;
use bh_recorder::{ArrayId, Input, Known, Location};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::HashMap;
use std::sync::Arc;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(empty, module)?)?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(arange, module)?)?;
    module.add_function(wrap_pyfunction!(random, module)?)?;
    module.add_function(wrap_pyfunction!(cast, module)?)?;
    module.add_function(wrap_pyfunction!(cast_in_order, module)?)?;
    module.add_function(wrap_pyfunction!(assign, module)?)?;
    module.add_function(wrap_pyfunction!(is_legal, module)?)?;
    module.add_function(wrap_pyfunction!(universal_functions, module)?)?;
    module.add_function(wrap_pyfunction!(operate, module)?)?;
    module.add_function(wrap_pyfunction!(operate_into, module)?)?;
    module.add_function(wrap_pyfunction!(fold, module)?)?;
    module.add_function(wrap_pyfunction!(extension, module)?)?;
    module.add_function(wrap_pyfunction!(has_extension, module)?)?;
    module.add_function(wrap_pyfunction!(window, module)?)?;
    module.add_function(wrap_pyfunction!(reshape, module)?)?;
    module.add_function(wrap_pyfunction!(transpose, module)?)?;
    module.add_function(wrap_pyfunction!(broadcast_to, module)?)?;
    module.add_function(wrap_pyfunction!(diagonal, module)?)
}

fn element_type(code: u8) -> PyResult<DType> {
    DType::from_code(code).ok_or_else(|| PyTypeError::new_err(format!("there is no element type {code}")))
}

fn opcode_named(name: &str) -> PyResult<Opcode> {
    Opcode::from_name(name).ok_or_else(|| PyValueError::new_err(format!("there is no operation '{name}'")))
}

fn context_of(py: Python<'_>, stack: Option<&Stack>) -> PyResult<Shared> {
    stack.map_or_else(|| context::current(py), |stack| Ok(stack.context()))
}

/// A new array with undefined elements. `axes`: its dimensions from the outermost in memory to the innermost, where that is
/// not their order.
#[pyfunction]
#[pyo3(signature = (shape, code, stack=None, axes=None))]
fn empty(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    code: u8,
    stack: Option<&Stack>,
    axes: Option<Vec<usize>>,
) -> PyResult<Array> {
    let (context, dtype, shape) = (context_of(py, stack)?, element_type(code)?, sequence::new_shape(shape)?);
    ordered(context, dtype, &shape, axes.as_deref())
}

/// A new array whose elements are all equal to a number.
#[pyfunction]
#[pyo3(signature = (shape, code, value, stack=None))]
fn full<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    code: u8,
    value: &Bound<'py, PyAny>,
    stack: Option<&Stack>,
) -> PyResult<Array> {
    let dtype = element_type(code)?;
    let array = Array::empty(context_of(py, stack)?, dtype, &sequence::new_shape(shape)?)?;
    let number = crate::operand::number(value).and_then(|number| number.constant(dtype));
    let number = number.ok_or_else(|| PyValueError::new_err(format!("{value} is no value of type {dtype}")))?;
    with_all(py, array, number)
}

/// A new array of the whole numbers first, first + step, … in C order.
#[pyfunction]
#[pyo3(signature = (shape, code, first, step, stack=None))]
fn arange(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    code: u8,
    first: i64,
    step: i64,
    stack: Option<&Stack>,
) -> PyResult<Array> {
    let array = Array::empty(context_of(py, stack)?, element_type(code)?, &sequence::new_shape(shape)?)?;
    let record = |place: Location<'_>| array.context.recorder.range(array.id(), first, step, place);
    with_location(py, record).map_err(exception)?;
    Ok(array)
}

/// A new array of the numbers of a Philox stream, from number `first` on.
#[pyfunction]
#[pyo3(signature = (shape, code, key, first=0, stack=None))]
fn random(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    code: u8,
    key: u64,
    first: i64,
    stack: Option<&Stack>,
) -> PyResult<Array> {
    let array = Array::empty(context_of(py, stack)?, element_type(code)?, &sequence::new_shape(shape)?)?;
    let record = |place: Location<'_>| array.context.recorder.random(array.id(), key, first, place);
    with_location(py, record).map_err(exception)?;
    Ok(array)
}

/// A copy with elements of another type (or the same), in C order. Complex numbers lose their imaginary parts.
#[pyfunction]
pub fn cast(py: Python<'_>, array: &Bound<'_, Array>, code: u8) -> PyResult<Array> {
    cast_plain(py, array.get(), element_type(code)?)
}

/// As [`cast`], with the order in memory that the array has.
#[pyfunction]
pub fn cast_in_order(py: Python<'_>, array: &Bound<'_, Array>, code: u8) -> PyResult<Array> {
    let (array, dtype) = (array.get(), element_type(code)?);
    match Order::of(&[Some(array)]) {
        None => cast_plain(py, array, dtype),
        Some(order) => order.back(cast_plain(py, &order.turned(array)?, dtype)?),
    }
}

/// As [`cast`].
pub fn cast_plain(py: Python<'_>, array: &Array, dtype: DType) -> PyResult<Array> {
    let recorder = &array.context.recorder;
    if let Some(copy) = cast_at_hand(array, dtype) {
        return Ok(copy);
    }
    let from = [Input::Array(array.current(py)?)];
    let record = |place: Location<'_>| {
        if !array.dtype.is_complex() || dtype.is_complex() {
            return recorder.operate_new(Opcode::Copy, 0, Some(dtype), &from, place);
        }
        if dtype == DType::Bool {
            let zero = Input::Constant(bh_bytecode::Constant::from_value(0u8).cast(array.dtype));
            return recorder.operate_new(Opcode::NotEqual, 0, None, &[from[0], zero], place);
        }
        let real = recorder.operate_new(Opcode::Real, 0, None, &from, place)?;
        let result = recorder.operate_new(Opcode::Copy, 0, Some(dtype), &[Input::Array(real)], place);
        recorder.free_later(real);
        result
    };
    let id = with_location(py, record).map_err(exception)?;
    let view = contiguous(array.view.shape()).map_err(value_error)?;
    let result = Array::new(array.context, id, dtype, view);
    result.set_scalar(array.is_scalar());
    Ok(result)
}

/// As [`cast`], of a part of a computed array, in C order, to a type to which each element is converted alone.
pub fn cast_at_hand(array: &Array, dtype: DType) -> Option<Array> {
    let bytes = array.len() as u64 * dtype.size().max(array.dtype.size()) as u64;
    if !is_plain(array)
        || array.is_scalar()
        || array.dtype.is_complex() && !dtype.is_complex()
        || bytes > array.context.little
    {
        return None;
    }
    let from = [Known::Part(array.store(), &array.view)];
    let id = array.context.recorder.make_at_hand(Opcode::Copy, dtype, &from, array.view.shape())?;
    Some(Array::new(array.context, id, dtype, contiguous(array.view.shape()).ok()?))
}

/// A little array that is computed, in another type to which each element is converted without anything that NumPy warns of.
pub fn cast_without_loss(array: &Array, dtype: DType) -> Option<Array> {
    let keeps_parts = !array.dtype.is_complex() || dtype.is_complex();
    if array.dtype == dtype || !keeps_parts || warning::errors_asked() || !warning::is_little(array) {
        return None;
    }
    if warning::loses(array, dtype) { None } else { cast_at_hand(array, dtype) }
}

/// The array; of a scalar, which never changes, a copy that may be assigned to.
pub fn assignable<'py>(array: &Bound<'py, Array>) -> PyResult<Bound<'py, Array>> {
    let (scalar, dtype) = (array.borrow().is_scalar(), array.borrow().dtype);
    if !scalar {
        return Ok(array.clone());
    }
    let copy = cast(array.py(), array, dtype as u8)?;
    copy.set_scalar(false);
    Bound::new(array.py(), copy)
}

/// Overwrites an array, converting the values.
#[pyfunction]
fn assign<'py>(py: Python<'py>, target: &Bound<'py, Array>, value: &Bound<'py, PyAny>) -> PyResult<()> {
    operate_into(py, target, "copy", vec![value.clone()], 0)
}

/// The operands on one stack: `home`, or that of the first array which has dimensions. Others move there.
fn at_home<'py>(
    mut operands: Vec<Bound<'py, PyAny>>,
    home: Option<&Bound<'py, Array>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let arrays = || operands.iter().filter_map(|operand| operand.cast_exact::<Array>().ok());
    let has_dimensions = |array: &&Bound<'_, Array>| array.get().view.rank() > 0;
    let Some(home) = home.or_else(|| arrays().find(has_dimensions)).or_else(|| arrays().next()).cloned() else {
        return Ok(operands);
    };
    for operand in &mut operands {
        if operand.cast_exact::<Array>().is_ok_and(|array| !std::ptr::eq(array.get().context, home.get().context)) {
            *operand = operand.py().import("bh._array.conversion")?.call_method1("moved", (&*operand, &home))?;
        }
    }
    Ok(operands)
}

/// Inputs of one context: arrays as they are, numbers as constants of the type `dtype`, which for index arrays and masks
/// does not matter.
fn inputs<'a>(operands: &'a [Bound<'_, PyAny>], dtype: DType) -> PyResult<(Vec<Input>, Vec<&'a Array>)> {
    let mut all = Vec::with_capacity(operands.len());
    let mut arrays: Vec<&Array> = Vec::new();
    for operand in operands {
        let wrong = || PyTypeError::new_err(format!("{operand} is no operand"));
        match classify(operand).ok_or_else(wrong)?.1 {
            Operand::Array(array) => {
                all.push(Input::Array(array.id()));
                arrays.push(array);
            }
            Operand::Number(number) => all.push(Input::Constant(number.constant(dtype).ok_or_else(wrong)?)),
        }
    }
    Ok((all, arrays))
}

/// Universal functions and the names of their opcodes: those that are an opcode for the types that it takes, and those of truth
/// values.
#[pyfunction]
fn universal_functions() -> [HashMap<&'static str, &'static str>; 2] {
    let rows = || Opcode::ALL.iter().map(|opcode| opcode.info()).filter(|info| !info.numpy.is_empty());
    [false, true].map(|of_truth| {
        rows().filter(|info| (info.types == TypeSet::BOOL) == of_truth).map(|info| (info.numpy, info.name)).collect()
    })
}

/// May an operation have inputs of one type and an output of another?
#[pyfunction]
fn is_legal(opcode: &str, input: u8, output: u8, inputs: usize) -> PyResult<bool> {
    let (input, output) = (element_type(input)?, element_type(output)?);
    Ok(opcode_named(opcode)?.check_types(output, &vec![input; inputs]))
}

/// NumPy's message for operands whose shapes do not broadcast; `None` if they do.
#[cold]
fn unfit(operands: &[Bound<'_, PyAny>]) -> Option<PyErr> {
    let shape = |operand: &Bound<'_, PyAny>| {
        operand.cast_exact::<Array>().map_or_else(|_| Arc::default(), |array| array.get().view.shared())
    };
    let shapes: Vec<Arc<View>> = operands.iter().map(shape).collect();
    let fit = shapes.iter().try_fold(Arc::default(), |common: Arc<View>, view| broadcast(&common, view)).is_ok();
    let all: String = shapes.iter().map(|view| format!("{} ", shown(view))).collect();
    (!fit).then(|| PyValueError::new_err(format!("operands could not be broadcast together with shapes {all}")))
}

/// Any operation of the opcode table on arrays of equal types (numbers take the type of the last array) into a new array.
#[pyfunction]
#[pyo3(signature = (opcode, operands, param=0))]
fn operate<'py>(py: Python<'py>, opcode: &str, operands: Vec<Bound<'py, PyAny>>, param: u16) -> PyResult<Array> {
    let (opcode, operands) = (opcode_named(opcode)?, at_home(operands, None)?);
    let last = operands.iter().rev().find_map(|operand| operand.cast_exact::<Array>().ok());
    let last = last.ok_or_else(|| PyTypeError::new_err("at least one operand must be an array"))?.borrow();
    let (mut all, arrays) = inputs(&operands, last.dtype)?;
    let given: Vec<_> = arrays.into_iter().map(Some).collect();
    let order = if opcode.kind() == Kind::Elementwise { Order::of(&given) } else { None };
    let turn =
        |order: &Order| given.iter().flatten().map(|array| order.turned(array)).collect::<PyResult<Vec<Array>>>();
    let turned = order.as_ref().map(turn).transpose()?;
    let places = all.iter_mut().filter(|input| matches!(input, Input::Array(_)));
    places.zip(turned.iter().flatten()).for_each(|(input, array)| *input = Input::Array(array.id()));
    let record = |place: Location<'_>| {
        let recorder = &last.context.recorder;
        recorder.operate_described(opcode, param, None, &all, place)
    };
    let (id, info) = with_location(py, record).map_err(|error| match opcode.kind() {
        Kind::Elementwise if error.status == status::SHAPE => unfit(&operands).unwrap_or_else(|| exception(error)),
        _ => exception(error),
    })?;
    let result = Array::result(last.context, id, info.dtype, info.view);
    match order {
        None => Ok(result),
        Some(order) => order.back(result),
    }
}

/// Any operation of the opcode table into an array; numbers take the array's type.
#[pyfunction]
#[pyo3(signature = (target, opcode, operands, param=0))]
fn operate_into<'py>(
    py: Python<'py>,
    target: &Bound<'py, Array>,
    opcode: &str,
    operands: Vec<Bound<'py, PyAny>>,
    param: u16,
) -> PyResult<()> {
    let (opcode, operands) = (opcode_named(opcode)?, at_home(operands, Some(target))?);
    let target = target.borrow();
    let (all, _) = inputs(&operands, target.dtype)?;
    let id = target.current(py)?;
    let record = |place: Location<'_>| target.context.recorder.operate(opcode, param, id, &all, place);
    with_location(py, record).map_err(exception)?;
    target.written(py)
}

/// A reduction over the axes of a bit mask, or an accumulate along one. `keep`: reduced axes stay, with extent 1. `mask`: which
/// elements a masked reduction takes, in the array's shape.
#[pyfunction]
#[pyo3(signature = (opcode, array, axes, keep=false, mask=None))]
fn fold(
    py: Python<'_>,
    opcode: &str,
    array: &Bound<'_, Array>,
    axes: u16,
    keep: bool,
    mask: Option<&Bound<'_, Array>>,
) -> PyResult<Array> {
    let (array, mask) = (array.borrow(), mask.map(|mask| mask.borrow()));
    crate::fold::fold(py, &array, opcode_named(opcode)?, array.dtype, axes, keep, mask.as_deref())
}

/// Has the stack of an array an extension method of this name?
#[pyfunction]
fn has_extension(py: Python<'_>, name: &str, array: &Bound<'_, Array>) -> PyResult<bool> {
    let array = array.borrow();
    let recorder = &array.context.recorder;
    match detached(py, || recorder.extension(name)) {
        Ok(_) => Ok(true),
        Err(error) if error.status == status::UNSUPPORTED => Ok(false),
        Err(error) => Err(exception(error)),
    }
}

/// Calls an extension method of a component on outputs and inputs.
#[pyfunction]
fn extension<'py>(
    py: Python<'py>,
    name: &str,
    outs: Vec<Bound<'py, Array>>,
    operands: Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let first = outs.first().ok_or_else(|| PyValueError::new_err("there must be an output"))?;
    let (operands, first) = (at_home(operands, Some(first))?, first.borrow());
    let (all, _) = inputs(&operands, first.dtype)?;
    let targets = outs.iter().map(|out| out.borrow().current(py)).collect::<PyResult<Vec<ArrayId>>>()?;
    let recorder = &first.context.recorder;
    let opcode = detached(py, || recorder.extension(name)).map_err(exception)?;
    let record = |place: Location<'_>| recorder.call_extension(opcode, &targets, &all, place);
    let recorded = with_location(py, record).map_err(exception);
    recorded?;
    outs.iter().try_for_each(|out| out.borrow().written(py))
}

/// Any view of an array's memory: start and strides in elements.
#[pyfunction]
fn window(array: &Bound<'_, Array>, start: i64, shape: Vec<i64>, stride: Vec<i64>) -> PyResult<Array> {
    array::window(array, View::new(start, &shape, &stride).map_err(value_error)?)
}

/// The elements in C order under another shape, of which one extent may be -1: a view where that is possible, else a copy.
#[pyfunction]
fn reshape(py: Python<'_>, array: &Bound<'_, Array>, shape: &Bound<'_, PyAny>) -> PyResult<Array> {
    let this = array.borrow();
    let shape = sequence::shape_for(shape, this.len())?;
    match this.view.reshape(&shape).map_err(value_error)? {
        Some(view) => derive(&assignable(array)?, view),
        None => {
            let id = this.current(py)?;
            let record = |place: Location<'_>| this.context.recorder.reshape(id, &shape, place);
            let id = with_location(py, record).map_err(exception)?;
            let view = contiguous(&shape).map_err(value_error)?;
            Ok(Array::new(this.context, id, this.dtype, view))
        }
    }
}

/// The array with its dimensions in another order.
#[pyfunction]
fn transpose(array: &Bound<'_, Array>, axes: Vec<usize>) -> PyResult<Array> {
    let view = &array.get().view;
    derive(array, view.transpose(&axes).map_err(value_error)?)
}

/// A read-only view with NumPy's broadcasting.
#[pyfunction]
fn broadcast_to(array: &Bound<'_, Array>, shape: &Bound<'_, PyAny>) -> PyResult<Array> {
    let view = &array.get().view;
    let shape = sequence::new_shape(shape)?;
    let wide = view.broadcast_to(&shape).map_err(|_| {
        let extents = |shape: &[i64]| PyTuple::new(array.py(), shape).map(|tuple| tuple.to_string().replace(", ", ","));
        match (extents(view.shape()), extents(&shape)) {
            (Ok(from), Ok(to)) => PyValueError::new_err(format!(
                "operands could not be broadcast together with remapped shapes [original->remapped]: {from}  and requested shape {to}"
            )),
            _ => PyValueError::new_err("the shapes do not broadcast"),
        }
    })?;
    let result = array::window(array, wide)?;
    result.set_writeable(false);
    Ok(result)
}

/// The diagonal of two dimensions as a last one.
#[pyfunction]
fn diagonal(array: &Bound<'_, Array>, offset: i64, first: usize, second: usize) -> PyResult<Array> {
    let view = &array.get().view;
    derive(array, view.diagonal(offset, first, second).map_err(value_error)?)
}

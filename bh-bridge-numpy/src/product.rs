//! Products of vectors and matrices whose types are equal and whose shapes fit. All others are Python's.

use crate::array::Array;
use crate::error::{exception, value_error};
use crate::location::with_location;
use crate::method::Method;
use crate::record::cast_in_order;
use crate::shared_view::contiguous;
use crate::warning;
use bh_bytecode::{DType, MAX_RANK, Opcode, View};
use bh_recorder::{Input, Location, Made};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(product, module)?)?;
    module.add_function(wrap_pyfunction!(contract, module)?)
}

/// The product of two vectors, two matrices, or one of each; None for calls that Python serves. `name`: NumPy's function, which warnings name.
#[pyfunction]
pub fn product<'py>(
    py: Python<'py>,
    name: &str,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> PyResult<Option<Array>> {
    let result = product_of(py, a, b)?;
    if let (Some(result), true) = (&result, warning::flags() != 0) {
        warning::of_product(py, name, [a, b], result)?;
    }
    Ok(result)
}

fn product_of(py: Python<'_>, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    let copies = crate::foreign::pair(a, b);
    let [a, b] = copies.as_ref().map_or([a, b], |[a, b]| [a, b]);
    let (Ok(a), Ok(b)) = (a.cast_exact::<Array>(), b.cast_exact::<Array>()) else { return Ok(None) };
    let mut converted = None;
    let [a, b] = in_one_type(py, [a, b], &mut converted)?;
    let (a, b) = (a.borrow(), b.borrow());
    let (left, right) = (a.view.shape(), b.view.shape());
    let own = a.link.is_none() && b.link.is_none();
    let plain =
        crate::shortcut::taken() && !warning::errors_asked() && own && a.dtype == b.dtype && a.dtype != DType::Bool;
    if !plain || !std::ptr::eq(a.context, b.context) || left.contains(&0) || right.contains(&0) {
        return Ok(None);
    }
    match (left, right) {
        (&[inner], &[other]) if inner == other => dot(py, &a, &b).map(Some),
        (&[rows, inner], &[other, columns]) if inner == other => multiply(py, &a, &b, &[rows, columns]),
        (&[rows, inner], &[other]) if inner == other => multiply(py, &a, &b, &[rows]),
        (&[inner], &[other, columns]) if inner == other => multiply(py, &a, &b, &[columns]),
        _ => Ok(None),
    }
}

/// The factors, of which one is converted to the type of the other one, if that is wide enough for both. `converted` owns the copy.
fn in_one_type<'a, 'py>(
    py: Python<'py>,
    [a, b]: [&'a Bound<'py, Array>; 2],
    converted: &'a mut Option<Bound<'py, Array>>,
) -> PyResult<[&'a Bound<'py, Array>; 2]> {
    let is_wide = |one: DType, other: DType| match one {
        DType::F64 => !other.is_complex(),
        DType::C128 => true,
        _ => false,
    };
    let (left, right) = (a.get(), b.get());
    // Python serves all other factors, and raises their errors.
    let fits = left.dtype != right.dtype && crate::shortcut::taken() && left.link.is_none() && right.link.is_none();
    Ok(match () {
        () if fits && is_wide(left.dtype, right.dtype) => {
            [a, converted.insert(Bound::new(py, cast_in_order(py, b, left.dtype as u8)?)?)]
        }
        () if fits && is_wide(right.dtype, left.dtype) => {
            [converted.insert(Bound::new(py, cast_in_order(py, a, right.dtype as u8)?)?), b]
        }
        () => [a, b],
    })
}

/// The sum of the products of two arrays of one type over axes of a box of `rank` axes, given as a bit mask. The axes of each array
/// are those of the box that it names; along the others it is repeated. Extents of 1 are stretched. The result has the axes that
/// are kept, in their order.
#[pyfunction]
pub fn contract(
    py: Python<'_>,
    first: (Bound<'_, Array>, Vec<usize>),
    second: (Bound<'_, Array>, Vec<usize>),
    rank: usize,
    summed: u16,
) -> PyResult<Array> {
    let ((a, a_axes), (b, b_axes)) = (first, second);
    let (a, b) = (a.borrow(), b.borrow());
    if !std::ptr::eq(a.context, b.context) || a.dtype != b.dtype {
        return Err(PyValueError::new_err("the operands differ in type, or belong to different stacks"));
    }
    let (left, right) = (over_box(&a.view, &a_axes, rank)?, over_box(&b.view, &b_axes, rank)?);
    let extents = left.shape().iter().zip(right.shape()).enumerate();
    let kept: Vec<i64> = extents
        .filter(|(axis, _)| summed >> axis & 1 == 0)
        .map(|(_, (&one, &other))| if one == 1 { other } else { one })
        .collect();
    let view = contiguous(&kept).map_err(value_error)?;
    let (a_id, b_id, recorder) = (a.current(py)?, b.current(py)?, &a.context.recorder);
    let one = recorder.window(a_id, &left).map_err(exception)?;
    let made = recorder.window(b_id, &right).map_err(exception).and_then(|other| {
        let factors = [one, other].map(Input::Array);
        let record = |place: Location<'_>| recorder.operate_new(Opcode::Contract, summed, None, &factors, place);
        let made = with_location(py, record).map_err(exception);
        recorder.free_later(other);
        made
    });
    recorder.free_later(one);
    Ok(Array::result(a.context, made?, a.dtype, view))
}

/// A view with its axes among those of a box.
fn over_box(view: &View, axes: &[usize], rank: usize) -> PyResult<View> {
    let (mut shape, mut stride) = ([1; MAX_RANK], [0; MAX_RANK]);
    if rank > MAX_RANK || axes.len() != view.rank() || axes.iter().any(|&axis| axis >= rank) {
        return Err(PyValueError::new_err("the axes are not those of the box"));
    }
    for (&axis, (&extent, &step)) in axes.iter().zip(view.shape().iter().zip(view.stride())) {
        (shape[axis], stride[axis]) = (extent, step);
    }
    View::new(view.start(), &shape[..rank], &stride[..rank]).map_err(value_error)
}

/// The sum of products of elements.
fn dot(py: Python<'_>, a: &Array, b: &Array) -> PyResult<Array> {
    if let Some(made) = at_hand((Opcode::Contract, 1), a, b, &[]) {
        return Ok(Array::result(a.context, made, a.dtype, View::default()));
    }
    let factors = [a.id(), b.id()].map(Input::Array);
    let record = |place: Location<'_>| a.context.recorder.operate_new(Opcode::Contract, 1, None, &factors, place);
    let id = with_location(py, record).map_err(exception)?;
    Ok(Array::result(a.context, id, a.dtype, View::default()))
}

/// A product of which one factor is a matrix, by the stack's method.
fn multiply(py: Python<'_>, a: &Array, b: &Array, shape: &[i64]) -> PyResult<Option<Array>> {
    let view = contiguous(shape).map_err(value_error)?;
    let Some(opcode) = a.context.methods.opcode(py, &a.context.recorder, Method::Matmul)? else { return Ok(None) };
    if let Some(made) = at_hand((opcode, 0), a, b, shape) {
        return Ok(Some(Array::result(a.context, made, a.dtype, view)));
    }
    let id = a.context.recorder.empty(a.dtype, shape).map_err(exception)?;
    // From here on it owns the handle.
    let result = Array::result(a.context, id, a.dtype, view);
    let factors = [Input::Array(a.id()), Input::Array(b.id())];
    let done = with_location(py, |place| a.context.call(py, Method::Matmul, id, &factors, place))?;
    Ok(done.then_some(result))
}

/// A product of little factors that are computed already.
fn at_hand(what: (Opcode, u16), a: &Array, b: &Array, shape: &[i64]) -> Option<Made> {
    let factors = [(a.store(), &*a.view), (b.store(), &*b.view)];
    a.context.recorder.product_at_hand(what, factors, shape).map(Made::Here)
}

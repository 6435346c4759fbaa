//! Arrays of one type joined, in the order of C.

use crate::array::Array;
use crate::assemble::{at_hand, recorded, served};
use crate::call::{Call, Served};
use crate::from_lists::numbers;
use crate::layout::is_plain as in_order_of_c;
use crate::sequence;
use crate::strided::{hand_for, is_plain};
use crate::text::intern;
use bh_bytecode::{DType, View};
use bh_compose::Assembly;
use bh_recorder::Hand;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple};

/// The arrays of a list or a tuple, with lists of numbers among them as arrays of the first array's type.
fn arrays<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, Array>>> {
    let parts: Vec<Bound<'py, PyAny>> = match object.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => object.cast_exact::<PyList>().ok()?.iter().collect(),
    };
    let first = parts.iter().find_map(|part| part.cast_exact::<Array>().ok())?.clone();
    let array = |part: Bound<'py, PyAny>| match part.cast_into_exact::<Array>() {
        Ok(array) => Some(array),
        Err(other) => numbers_of_type(first.get(), &other.into_inner()),
    };
    parts.into_iter().map(array).collect()
}

/// The numbers of a list as an array of the type that they have together with an array.
fn numbers_of_type<'py>(beside: &Array, list: &Bound<'py, PyAny>) -> Option<Bound<'py, Array>> {
    let (context, dtype) = (beside.context, beside.dtype);
    let own = numbers(context, list, None)?;
    let (is, gives_way) = (own.get().dtype, matches!(dtype, DType::F64 | DType::C128));
    match () {
        () if is == dtype => Some(own),
        () if gives_way && is != DType::C128 => numbers(context, list, Some(dtype)),
        () => None,
    }
}

/// More arrays than this are joined by NumPy, where their data is in the memory of this process, as each takes a kernel.
const MANY: usize = 256;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MANY_JOINED", MANY)
}

/// Joins what `views` makes of the arrays of a list, with the dimension along which they are joined.
fn join<'py>(
    call: &Call<'_, 'py>,
    list: Option<&Bound<'py, PyAny>>,
    views: impl FnOnce(&[&Array]) -> Option<(Vec<View>, usize)>,
) -> Served<'py> {
    let Some(all) = list.and_then(arrays) else { return Ok(None) };
    let all: Vec<&Array> = all.iter().map(Bound::get).collect();
    let Some(first) = all.first() else { return Ok(None) };
    // Other types have a common one, and the result is in the order of the arrays.
    let fits = |array: &&Array| {
        is_plain(array)
            && array.dtype == first.dtype
            && std::ptr::eq(array.context, first.context)
            && in_order_of_c(&array.view)
    };
    let Some((views, axis)) = all.iter().all(fits).then(|| views(&all)).flatten() else { return Ok(None) };
    let Ok(assembly) = Assembly::joined("concatenate", &views, axis) else { return Ok(None) };
    let hand = hand_for(all.iter().copied());
    let made = hand.and_then(|hand| at_hand(hand, &all, &assembly, Hand::make_moved));
    if made.is_none() && assembly.pieces.len() > MANY {
        return Ok(None);
    }
    served(call.py(), made.map_or_else(|| recorded(call.py(), &all, &assembly), Ok)?)
}

fn own_views(all: &[&Array]) -> Vec<View> {
    all.iter().map(|array| *array.view).collect()
}

/// A dimension, counted from the end if it is negative.
fn dimension(axis: Option<&Bound<'_, PyAny>>, rank: usize) -> Option<usize> {
    // NumPy refuses truth values.
    let whole = |axis: &Bound<'_, PyAny>| (!axis.is_exact_instance_of::<PyBool>()).then(|| axis.extract().ok())?;
    sequence::dimension(axis.map_or(Some(0), whole)?, rank)
}

/// Along a dimension that all arrays have.
pub fn concatenate<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (list, axis) = call.pair(intern!(call.py(), "axis")).unzip();
    join(call, list, |all| Some((own_views(all), dimension(axis.flatten(), all.first()?.view.rank())?)))
}

/// Along a new dimension, of arrays of one shape.
pub fn stack<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (list, axis) = call.pair(intern!(call.py(), "axis")).unzip();
    join(call, list, |all| {
        let axis = dimension(axis.flatten(), all.first()?.view.rank() + 1)?;
        let widened = |array: &&Array| widened(&array.view, axis);
        Some((all.iter().map(widened).collect::<Option<_>>()?, axis))
    })
}

/// A view with one more dimension, of one element.
fn widened(view: &View, axis: usize) -> Option<View> {
    let (mut shape, mut stride) = (view.shape().to_vec(), view.stride().to_vec());
    if axis > shape.len() {
        return None;
    }
    shape.insert(axis, 1);
    stride.insert(axis, 0);
    View::new(view.start(), &shape, &stride).ok()
}

/// Side by side: along the second dimension, or the only one.
pub fn hstack<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    join(call, call.plain().map(|[list]| list), |all| {
        let rank = all.first()?.view.rank();
        Some((own_views(all), usize::from(rank > 1)))
    })
}

/// Below each other: along the first dimension; vectors are rows.
pub fn vstack<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let row = |array: &&Array| match array.view.rank() {
        1 => widened(&array.view, 0),
        _ => Some(*array.view),
    };
    join(call, call.plain().map(|[list]| list), |all| Some((all.iter().map(row).collect::<Option<_>>()?, 0)))
}

/// Along the second dimension; vectors are columns.
pub fn column_stack<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let column = |array: &&Array| match array.view.rank() {
        1 => widened(&array.view, 1),
        _ => Some(*array.view),
    };
    join(call, call.plain().map(|[list]| list), |all| Some((all.iter().map(column).collect::<Option<_>>()?, 1)))
}

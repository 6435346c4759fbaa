//! Arrays of one type put together, of data that is at hand.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::layout::is_ordered_as_in_c;
use crate::layout::is_plain as in_order_of_c;
use crate::shared_view::contiguous;
use crate::strided::{Strided, copy_elements, hand_for, is_plain, sized};
use crate::text::intern;
use bh_bytecode::View;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

fn copy_into<T: Copy>(from: Strided<'_>, to: Strided<'_>) {
    // SAFETY: both lie in their arrays, of which one is new.
    unsafe { copy_elements::<T>(to, from) };
}

/// The arrays of a list or a tuple, if all are such.
fn arrays<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<PyRef<'py, Array>>> {
    let array = |object: Bound<'py, PyAny>| object.cast_into_exact::<Array>().ok()?.try_borrow().ok();
    match object.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(array).collect(),
        Err(_) => object.cast_exact::<PyList>().ok()?.iter().map(array).collect(),
    }
}

/// The arrays one after the other along a dimension, in a new array. Their shapes are those of views with as many dimensions.
fn joined(all: &[PyRef<'_, Array>], views: &[View], axis: usize) -> Option<Array> {
    let (first, shape) = (all.first()?, views.first()?.shape());
    let fits = |array: &PyRef<'_, Array>| {
        is_plain(array) && array.dtype == first.dtype && std::ptr::eq(array.context, first.context)
    };
    let alike = |view: &View| {
        let other = view.shape();
        other.len() == shape.len() && (0..shape.len()).all(|at| at == axis || other[at] == shape[at])
    };
    if axis >= shape.len() || !all.iter().all(fits) || !views.iter().all(alike) {
        return None;
    }
    if !all.iter().all(|array| in_order_of_c(&array.view)) {
        // The result is in their order.
        return None;
    }
    let mut extents = shape.to_vec();
    extents[axis] = views.iter().map(|view| view.shape()[axis]).sum();
    let mut hand = hand_for(all.iter().map(|array| &**array))?;
    let data: Option<Vec<*const u8>> = all.iter().map(|array| hand.data(array.store(), array.view.start())).collect();
    let (data, whole) = (data?, contiguous(&extents).ok()?);
    let (id, to) = hand.make_moved(first.dtype, &extents)?;
    let (mut place, step) = (0, whole.stride()[axis] * first.dtype.size() as i64);
    for (view, data) in views.iter().zip(data) {
        let part = View::new(0, view.shape(), whole.stride()).ok()?;
        let to = to.wrapping_offset((place * step) as isize).cast_const();
        let size = first.dtype.size();
        // SAFETY: the views lie in their arrays, and the elements stay there while the hand is held.
        let (from, to) = unsafe { (Strided::at(data, view, size), Strided::at(to, &part, size)) };
        sized!(first.dtype, copy_into(from, to));
        place += view.shape()[axis];
    }
    Some(Array::new(first.context, id, first.dtype, whole))
}

/// Joins what `views` makes of the arrays of a list, with the dimension along which they are joined.
fn join<'py>(
    call: &Call<'_, 'py>,
    list: Option<&Bound<'py, PyAny>>,
    views: impl FnOnce(&[PyRef<'py, Array>]) -> Option<(Vec<View>, usize)>,
) -> Served<'py> {
    let joined = || {
        let all = arrays(list?)?;
        let (views, axis) = views(&all)?;
        joined(&all, &views, axis)
    };
    joined().map(|joined| Ok(Bound::new(call.py(), joined)?.into_any())).transpose()
}

fn own_views(all: &[PyRef<'_, Array>]) -> Vec<View> {
    all.iter().map(|array| *array.view).collect()
}

/// Whole numbers of Python: one, or those of a tuple.
fn whole_numbers(object: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
    let whole = |object: &Bound<'_, PyAny>| object.is_exact_instance_of::<PyInt>().then(|| object.extract().ok())?;
    match object.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|object| whole(&object)).collect(),
        Err(_) => Some(vec![whole(object)?]),
    }
}

/// The array of a call of `roll`, and by how much its elements move along each dimension: not less than 0, and less than the extent.
/// Without `axis`, it is a vector.
fn moved<'a, 'py: 'a>(call: &Call<'a, 'py>) -> Option<(&'a Array, Vec<i64>)> {
    let (arguments, py) = (&call.arguments, call.py());
    let (array, shift, axis) = match (arguments.unnamed(), arguments.named()) {
        ([array, shift], 0) => (array, shift, None),
        ([array, shift], 1) => (array, shift, Some(arguments.get(intern!(py, "axis"))?)),
        ([array, shift, axis], 0) => (array, shift, Some(axis.bind(py))),
        _ => return None,
    };
    let array = array.bind(py).cast_exact::<Array>().ok()?.get();
    let (rank, shift) = (array.view.rank(), whole_numbers(shift.bind(py))?);
    let axes = match axis.filter(|axis| !axis.is_none()) {
        Some(axis) => whole_numbers(axis)?,
        None => (rank == 1).then(|| vec![0])?,
    };
    if array.view.is_empty() || shift.len() != axes.len() && shift.len() != 1 {
        return None;
    }
    let mut distances = vec![0i64; rank];
    for (place, axis) in axes.into_iter().enumerate() {
        let axis = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok()?;
        let (distance, extent) = (distances.get_mut(axis)?, array.view.shape()[axis]);
        *distance = (*distance + shift[place.min(shift.len() - 1)].rem_euclid(extent)) % extent;
    }
    Some((array, distances))
}

/// A box of elements: where its first one comes from and goes to, from the arrays' first elements, and its extents.
type Moved = (i64, i64, Vec<i64>);

/// The boxes in which elements move together along each dimension.
fn boxes(from: &View, to: &View, distances: &[i64]) -> Vec<Moved> {
    let mut all = vec![(0, 0, from.shape().to_vec())];
    for (axis, &distance) in distances.iter().enumerate().filter(|(_, distance)| **distance > 0) {
        let (extent, step, new_step) = (from.shape()[axis], from.stride()[axis], to.stride()[axis]);
        let halves = [(0, distance, extent - distance), (extent - distance, 0, distance)];
        let halved = |(source, target, shape): Moved| {
            halves.map(|(first, place, count)| {
                let mut part = shape.clone();
                part[axis] = count;
                (source + first * step, target + place * new_step, part)
            })
        };
        all = all.into_iter().flat_map(halved).collect();
    }
    all
}

/// Elements moved by whole numbers along dimensions; those that leave at one end enter at the other.
pub fn roll<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let rolled = || {
        let (array, distances) = moved(call)?;
        if array.is_scalar() || !is_plain(array) || !is_ordered_as_in_c(&array.view) {
            return None;
        }
        // A roll of many elements may be part of a chain.
        let mut hand = array.context.recorder.hand()?;
        hand.is_in_c_order(array.store(), &array.view).filter(|in_order| *in_order)?;
        // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
        let from = unsafe { Strided::of(&hand, array) }?;
        let whole = contiguous(array.view.shape()).ok()?;
        let (id, to) = hand.make(array.dtype, whole.shape(), &[])?;
        let size = array.dtype.size();
        for (source, target, shape) in boxes(&array.view, &whole, &distances) {
            let data = from.data().wrapping_offset(source as isize * size as isize);
            let to = to.wrapping_offset(target as isize * size as isize).cast_const();
            let source = View::new(0, &shape, array.view.stride()).ok()?;
            let target = View::new(0, &shape, whole.stride()).ok()?;
            // SAFETY: the views lie in their arrays, and the elements stay there while the hand is held.
            let (from, to) = unsafe { (Strided::at(data, &source, size), Strided::at(to, &target, size)) };
            sized!(array.dtype, copy_into(from, to));
        }
        Some(Array::new(array.context, id, array.dtype, whole))
    };
    rolled().map(|rolled| Ok(Bound::new(call.py(), rolled)?.into_any())).transpose()
}

/// A dimension, counted from the end if it is negative.
fn dimension(axis: Option<&Bound<'_, PyAny>>, rank: usize) -> Option<usize> {
    let axis = axis.map_or(Some(0), |axis| axis.extract::<i64>().ok())?;
    usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok()
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
        let widened = |array: &PyRef<'_, Array>| widened(&array.view, axis);
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
    let row = |array: &PyRef<'_, Array>| match array.view.rank() {
        1 => widened(&array.view, 0),
        _ => Some(*array.view),
    };
    join(call, call.plain().map(|[list]| list), |all| Some((all.iter().map(row).collect::<Option<_>>()?, 0)))
}

/// Along the second dimension; vectors are columns.
pub fn column_stack<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let column = |array: &PyRef<'_, Array>| match array.view.rank() {
        1 => widened(&array.view, 1),
        _ => Some(*array.view),
    };
    join(call, call.plain().map(|[list]| list), |all| Some((all.iter().map(column).collect::<Option<_>>()?, 1)))
}

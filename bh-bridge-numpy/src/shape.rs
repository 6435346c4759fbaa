//! Functions and methods that give other views of an array, or copies in another form.

use crate::array::{Array, derive, window};
use crate::call::{Call, Served};
use crate::computed_selection;
use crate::create::copied;
use crate::error::value_error;
use crate::numpy_types::element_type;
use crate::operand::number;
use crate::record::{assignable, cast_in_order};
use crate::scalar::is_in_program;
use crate::sequence;
use crate::shared_view::{contiguous, contiguous_from, made};
use crate::strided::is_plain;
use crate::text::intern;
use crate::warning::warn_of_cast;
use bh_bytecode::{MAX_RANK, View};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use std::sync::Arc;

/// The array itself, if it is one without further ties.
fn array<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, Array>> {
    object.cast_exact::<Array>().ok().filter(|array| is_plain(array.get()))
}

fn derived<'py>(from: &Bound<'py, Array>, view: impl Into<Arc<View>>) -> Served<'py> {
    Ok(Some(Bound::new(from.py(), derive(from, view)?)?.into_any()))
}

/// The elements in C order under another shape, where that is a view.
fn reshaped<'py>(from: &Bound<'py, Array>, shape: &Bound<'py, PyAny>) -> Served<'py> {
    let (mut extents, mut rank) = ([0; MAX_RANK], 0);
    let mut take = |object: &Bound<'py, PyAny>| {
        let extent = object.is_exact_instance_of::<PyInt>().then(|| object.extract::<i64>().ok())??;
        *extents.get_mut(rank)? = extent;
        rank += 1;
        Some(())
    };
    let taken = match shape.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.iter_borrowed().try_for_each(|object| take(&object)),
        Err(_) => take(shape),
    };
    if taken.is_none() {
        return Ok(None);
    }
    let view = &from.get().view;
    let extents = &mut extents[..rank];
    sequence::complete(extents, view.len())?;
    // Neighbouring elements stay neighbours.
    let reshaped = match view.is_contiguous() && !view.is_empty() {
        true => contiguous_from(view.start(), extents).map(Some),
        false => view.reshape(extents).map(|view| view.map(Arc::new)),
    };
    match reshaped {
        Ok(Some(view)) if from.get().is_scalar() => derived(&assignable(from)?, view),
        Ok(Some(view)) => derived(from, view),
        _ => Ok(None),
    }
}

pub fn reshape<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([from, shape]) = call.plain() else { return Ok(None) };
    array(from).map_or(Ok(None), |from| reshaped(from, shape))
}

/// As a method, whose extents may be arguments of their own.
pub fn reshape_method<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(all) = call.unnamed().filter(|all| all.len() > 1) else { return Ok(None) };
    let (from, shape) = (all[0].bind(call.py()), &all[1..]);
    let Some(from) = array(from) else { return Ok(None) };
    match shape {
        [shape] => reshaped(from, shape.bind(call.py())),
        extents => reshaped(from, PyTuple::new(call.py(), extents)?.as_any()),
    }
}

/// One dimension, where the elements lie side by side.
pub fn ravel<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(from) = call.array() else { return Ok(None) };
    let view = &from.get().view;
    if from.get().is_scalar() || !view.is_contiguous() || view.is_empty() {
        return Ok(None);
    }
    let flat = contiguous_from(view.start(), &[view.len()]).map_err(value_error)?;
    derived(from, flat)
}

/// As `ravel`, of a copy.
pub fn flatten<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(copy) = call.array().and_then(|from| copied(from.get())) else { return Ok(None) };
    let (rank, len) = (copy.view.rank(), copy.len());
    let copy = Bound::new(call.py(), copy)?;
    if rank == 1 {
        return Ok(Some(copy.into_any()));
    }
    let flat = contiguous(&[len]).map_err(value_error)?;
    let mut flat = window(&copy, *flat)?;
    // The copy is nobody else's.
    flat.base = None;
    Ok(Some(Bound::new(call.py(), flat)?.into_any()))
}

/// Without dimensions of extent 1, or without one of them.
pub fn squeeze<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((from, axis)) = call.pair(intern!(call.py(), "axis")) else { return Ok(None) };
    let Some(from) = array(from) else { return Ok(None) };
    let view = &from.get().view;
    let only = axis.filter(|axis| !axis.is_none()).map(|axis| dimension(view, axis));
    if only.is_some_and(|only| only.is_none_or(|axis| view.shape()[axis] != 1)) {
        return Ok(None);
    }
    let stays = |axis: usize, extent: i64| extent != 1 || only.flatten().is_some_and(|only| only != axis);
    let (mut shape, mut stride, mut rank) = ([0; MAX_RANK], [0; MAX_RANK], 0);
    for (axis, (&extent, &step)) in view.shape().iter().zip(view.stride()).enumerate() {
        if stays(axis, extent) {
            (shape[rank], stride[rank]) = (extent, step);
            rank += 1;
        }
    }
    let view = View::new(view.start(), &shape[..rank], &stride[..rank]).map_err(value_error)?;
    derived(from, view)
}

/// The dimensions in reverse.
pub fn transpose<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(from) = call.array() else { return Ok(None) };
    Ok(Some(Bound::new(call.py(), Array::transposed(from)?)?.into_any()))
}

/// A dimension that a whole number of Python names.
fn dimension(view: &View, axis: &Bound<'_, PyAny>) -> Option<usize> {
    let given = axis.is_exact_instance_of::<PyInt>().then(|| axis.extract::<i64>().ok())??;
    let axis = if given < 0 { given + view.rank() as i64 } else { given };
    usize::try_from(axis).ok().filter(|axis| *axis < view.rank())
}

/// The dimensions in an order, which is that of the arguments, or of the only one; in reverse without one.
pub fn transpose_method<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let py = call.py();
    let Some([from, axes @ ..]) = call.unnamed().filter(|all| all.len() > 1) else { return transpose(call) };
    let Some(from) = array(from.bind(py)).filter(|from| !from.get().is_scalar()) else { return Ok(None) };
    let view = &from.get().view;
    let axes: Vec<_> = match axes {
        [one] if one.bind(py).cast_exact::<PyTuple>().is_ok() => one.bind(py).try_iter()?.collect::<PyResult<_>>()?,
        _ => axes.iter().map(|axis| axis.bind(py).clone()).collect(),
    };
    let Some(places) = axes.iter().map(|axis| dimension(view, axis)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    if places.len() != view.rank() || (0..view.rank()).any(|place| !places.contains(&place)) {
        return Ok(None);
    }
    let shape: Vec<i64> = places.iter().map(|&place| view.shape()[place]).collect();
    let stride: Vec<i64> = places.iter().map(|&place| view.stride()[place]).collect();
    derived(from, made(view.start(), &shape, &stride).map_err(value_error)?)
}

/// Two dimensions exchanged.
pub fn swapaxes<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([from, one, other]) = call.plain() else { return Ok(None) };
    let Some(from) = array(from).filter(|from| !from.get().is_scalar()) else { return Ok(None) };
    let view = &from.get().view;
    let (Some(one), Some(other)) = (dimension(view, one), dimension(view, other)) else { return Ok(None) };
    let (mut shape, mut stride) = ([0; MAX_RANK], [0; MAX_RANK]);
    let rank = view.rank();
    shape[..rank].copy_from_slice(view.shape());
    stride[..rank].copy_from_slice(view.stride());
    shape.swap(one, other);
    stride.swap(one, other);
    derived(from, made(view.start(), &shape[..rank], &stride[..rank]).map_err(value_error)?)
}

/// The diagonal of the first two dimensions, or of two given after an offset, as a view that may not be assigned to.
pub fn diagonal_of<'py>(all: &[Py<PyAny>], py: Python<'py>) -> PyResult<Option<Bound<'py, Array>>> {
    let Some((from, given)) = all.split_first().filter(|(_, given)| given.len() <= 3) else { return Ok(None) };
    let Some(from) = array(from.bind(py)).filter(|from| from.get().view.rank() > 1) else { return Ok(None) };
    let view = &from.get().view;
    let given = |place: usize| given.get(place).map(|object| object.bind(py));
    let offset = match given(0) {
        None => Some(0),
        Some(offset) => offset.is_exact_instance_of::<PyInt>().then(|| offset.extract::<i64>().ok()).flatten(),
    };
    let axis = |place: usize| given(place + 1).map_or(Some(place), |axis| dimension(view, axis));
    let (Some(offset), Some(one), Some(other)) = (offset, axis(0), axis(1)) else { return Ok(None) };
    if one == other {
        return Ok(None);
    }
    let diagonal = derive(from, view.diagonal(offset, one, other).map_err(value_error)?)?;
    diagonal.set_writeable(false);
    Bound::new(py, diagonal).map(Some)
}

pub fn diagonal<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(all) = call.unnamed() else { return Ok(None) };
    Ok(diagonal_of(all, call.py())?.map(Bound::into_any))
}

/// The diagonal of a matrix.
pub fn diag<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let all = call.unnamed().filter(|all| all.len() <= 2);
    let is_matrix = |object: &Py<PyAny>| array(object.bind(call.py())).is_some_and(|from| from.get().view.rank() == 2);
    if all.and_then(<[_]>::first).is_some_and(is_matrix) { diagonal(call) } else { Ok(None) }
}

/// Assigns a number to the diagonal of a matrix.
pub fn fill_diagonal<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([matrix, value]) = call.plain() else { return Ok(None) };
    let Some(matrix) = array(matrix).map(Bound::get).filter(|one| one.view.rank() == 2 && one.is_shared()) else {
        return Ok(None);
    };
    let view = matrix.view.diagonal(0, 0, 1).map_err(value_error)?;
    let fits = number(value).is_some() && !view.is_empty() && matrix.view.is_injective();
    let done = fits.then(|| computed_selection::assign(matrix, &view, value)).flatten();
    Ok(done.map(|()| call.py().None().into_bound(call.py())))
}

/// The elements in the other direction along all dimensions, or along one.
pub fn flip<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((from, axis)) = call.pair(intern!(call.py(), "axis")) else { return Ok(None) };
    let only = |view: &View| match axis.filter(|axis| !axis.is_none()) {
        None => Some(None),
        Some(axis) => dimension(view, axis).map(Some),
    };
    flipped(from, only)
}

/// The rows in the other direction.
pub fn flipud<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    call.plain().map_or(Ok(None), |[from]| flipped(from, |_| Some(Some(0))))
}

/// The elements of rows in the other direction.
pub fn fliplr<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    call.plain().map_or(Ok(None), |[from]| flipped(from, |view| (view.rank() > 1).then_some(Some(1))))
}

/// An array in the other direction along all dimensions, or along the one that `only` gives; `None` if there is none such.
fn flipped<'py>(from: &Bound<'py, PyAny>, only: impl FnOnce(&View) -> Option<Option<usize>>) -> Served<'py> {
    // Without dimensions, NumPy reads the element.
    let Some(from) = array(from).filter(|from| from.get().view.rank() > 0) else { return Ok(None) };
    let view = &from.get().view;
    let Some(only) = only(view) else { return Ok(None) };
    let (mut start, mut stride, rank) = (view.start(), [0; MAX_RANK], view.rank());
    stride[..rank].copy_from_slice(view.stride());
    for (axis, (step, &extent)) in stride.iter_mut().zip(view.shape()).enumerate() {
        if extent > 1 && only.is_none_or(|only| only == axis) {
            start += (extent - 1) * *step;
            *step = -*step;
        }
    }
    let start = if view.is_empty() { view.start() } else { start };
    derived(from, made(start, view.shape(), &stride[..rank]).map_err(value_error)?)
}

/// An array with at least one dimension.
pub fn atleast_1d<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    at_least(call, |rank| if rank == 0 { &[0] } else { &[] })
}

/// An array with at least two dimensions: a vector is a row.
pub fn atleast_2d<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    at_least(call, |rank| match rank {
        0 => &[0, 0],
        1 => &[0],
        _ => &[],
    })
}

/// An array with at least three dimensions: a vector lies along the second one, and a matrix along the first two.
pub fn atleast_3d<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    at_least(call, |rank| match rank {
        0 => &[0, 0, 0],
        1 => &[0, 2],
        2 => &[2],
        _ => &[],
    })
}

/// An array with new dimensions at the places that its number of dimensions asks for.
fn at_least<'py>(call: &Call<'_, 'py>, places: impl Fn(usize) -> &'static [usize]) -> Served<'py> {
    let Some(from) = call.array().filter(|from| !from.get().is_scalar()) else { return Ok(None) };
    match places(from.get().view.rank()) {
        [] => Ok(Some(from.clone().into_any())),
        places => {
            let view = places.iter().try_fold(*from.get().view, |view, &place| view.new_axis(place));
            derived(from, view.map_err(value_error)?)
        }
    }
}

/// A new dimension of extent 1.
pub fn expand_dims<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((from, Some(axis))) = call.pair(intern!(call.py(), "axis")) else { return Ok(None) };
    let (Some(from), true) = (array(from), axis.is_exact_instance_of::<PyInt>()) else { return Ok(None) };
    let (view, given) = (&from.get().view, axis.extract::<i64>()?);
    let rank = view.rank() as i64 + 1;
    let axis = if given < 0 { given + rank } else { given };
    if !(0..rank).contains(&axis) || from.get().is_scalar() {
        return Ok(None);
    }
    match view.new_axis(axis as usize) {
        Ok(view) => derived(from, view),
        Err(_) => Ok(None),
    }
}

/// Converted to a real type, from one.
pub fn astype<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([from, dtype]) = call.plain() else { return Ok(None) };
    let (Some(from), Some(dtype)) = (array(from), element_type(dtype)) else { return Ok(None) };
    let this = from.get();
    // A copy of repeated elements has an order of its own.
    let repeats = this.view.rank() > 1 && this.view.stride().contains(&0);
    if this.dtype.is_complex() || dtype.is_complex() || this.is_scalar() || this.view.rank() == 0 || repeats {
        return Ok(None);
    }
    let copy = if this.dtype == dtype && this.view.rank() == 1 { copied(this) } else { None };
    if copy.is_none() && is_in_program(call.py()) {
        warn_of_cast(call.py(), from, dtype as u8)?;
    }
    let copy = match copy {
        Some(copy) => {
            // The type that was asked for is the first of its name.
            copy.set_long_long(false);
            copy
        }
        None => cast_in_order(call.py(), from, dtype as u8)?,
    };
    Ok(Some(Bound::new(call.py(), copy)?.into_any()))
}

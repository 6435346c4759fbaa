//! Basic indexing: whole numbers, slices, `...` and new axes give views. Python serves NumPy's other keys.

use crate::array::{Array, derive};
use crate::element::{Rows, at_hand, await_rows, set_at_hand};
use crate::error::exception;
use crate::location::with_location;
use crate::operand::{Number, Operand, classify, code};
use crate::record::{assignable, cast_in_order, cast_without_loss};
use crate::scalar::numpy_scalar;
use crate::shared_view::made;
use bh_bytecode::{DType, MAX_RANK, Opcode, View, ViewError};
use bh_recorder::Input;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};
use std::sync::{Arc, OnceLock};

/// `get(array, key)` and `set(array, key, value)` for keys and values that need more than views and numbers.
static ADVANCED: OnceLock<(Py<PyAny>, Py<PyAny>)> = OnceLock::new();

/// Tells the functions behind advanced indexing.
#[pyfunction]
fn set_indexing(get: Py<PyAny>, set: Py<PyAny>) {
    // A second call, of a reloaded package, changes nothing.
    let _ = ADVANCED.set((get, set));
}

/// The view that a basic key selects, or None for other keys.
#[pyfunction]
fn basic_view<'py>(array: &Bound<'py, Array>, key: &Bound<'py, PyAny>) -> PyResult<Option<Array>> {
    match select(&array.get().view, key)? {
        Some(selected) => derive(array, selected.view).map(Some),
        None => Ok(None),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_indexing, module)?)?;
    module.add_function(wrap_pyfunction!(basic_view, module)?)
}

fn advanced() -> PyResult<&'static (Py<PyAny>, Py<PyAny>)> {
    ADVANCED.get().ok_or_else(|| PyRuntimeError::new_err("the package bh is not imported"))
}

/// The selection of a basic key.
struct Selected {
    view: Arc<View>,
    /// It names one element, without `...`.
    element: bool,
    /// It is read as a copy, as an array without dimensions was among the indices.
    copied: bool,
}

/// One part of a key.
enum Part<'py> {
    Whole(i64),
    Slice(Bound<'py, PySlice>),
    Ellipsis,
    NewAxis,
}

/// A part of a basic key; `None` for anything else. An array without dimensions is waited for.
fn part<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Part<'py>>> {
    if object.is_exact_instance_of::<PyInt>() {
        return Ok(object.extract().ok().map(Part::Whole));
    }
    if let Ok(slice) = object.cast_exact::<PySlice>() {
        return Ok(Some(Part::Slice(slice.clone())));
    }
    if object.is_none() {
        return Ok(Some(Part::NewAxis));
    }
    if object.is_exact_instance_of::<PyEllipsis>() {
        return Ok(Some(Part::Ellipsis));
    }
    if object.is_exact_instance_of::<PyBool>() {
        return Ok(None);
    }
    if let Ok(array) = object.cast_exact::<Array>() {
        let array = array.borrow();
        if array.view.rank() > 0 || !array.dtype.is_int() {
            return Ok(None);
        }
        let value = crate::transfer::value(object.py(), &array)?;
        return Ok((array.dtype != DType::U64 || value.to::<i64>() >= 0).then(|| Part::Whole(value.to())));
    }
    Ok(match classify(object) {
        Some((code, Operand::Number(Number::Int(value)))) if code < code::INT => {
            i64::try_from(value).ok().map(Part::Whole)
        }
        _ => None,
    })
}

/// Is it an array without dimensions, and not a scalar? As an index, it asks for a copy.
fn is_single(object: &Bound<'_, PyAny>) -> bool {
    object.cast_exact::<Array>().is_ok_and(|array| !array.borrow().is_scalar())
}

fn wrong(error: ViewError) -> PyErr {
    PyIndexError::new_err(error.0)
}

/// As [`select`], of whole numbers in bounds, slices, new axes and one `...` only; `None` for other keys.
#[inline]
fn select_plainly(view: &View, key: &Bound<'_, PyAny>) -> PyResult<Option<Selected>> {
    let (start, shape, stride) = (view.start(), [0; MAX_RANK], [0; MAX_RANK]);
    let mut cut = Cut { view, start, axis: 0, rank: 0, shape, stride, is_element: true };
    if let Ok(tuple) = key.cast_exact::<PyTuple>() {
        for (place, object) in tuple.iter_borrowed().enumerate() {
            let taken = match object.is_exact_instance_of::<PyEllipsis>() && cut.is_element {
                true => cut.skip(tuple.iter_borrowed().skip(place + 1).filter(|object| !object.is_none()).count()),
                false => cut.take(&object)?,
            };
            if !taken {
                return Ok(None);
            }
        }
    } else if !cut.take(key)? {
        return Ok(None);
    }
    cut.finish()
}

/// A view under construction: some of the axes of another one are dealt with.
struct Cut<'a> {
    view: &'a View,
    start: i64,
    axis: usize,
    rank: usize,
    shape: [i64; MAX_RANK],
    stride: [i64; MAX_RANK],
    /// Has the key no `...` so far?
    is_element: bool,
}

impl Cut<'_> {
    /// Leaves the axes that `...` stands for as they are: all but the last ones, of which later parts of the key take one each.
    #[inline]
    fn skip(&mut self, later: usize) -> bool {
        let Some(last) = self.view.rank().checked_sub(later).filter(|last| *last >= self.axis) else { return false };
        self.is_element = false;
        while self.axis < last && self.rank < MAX_RANK {
            (self.shape[self.rank], self.stride[self.rank]) =
                (self.view.shape()[self.axis], self.view.stride()[self.axis]);
            (self.axis, self.rank) = (self.axis + 1, self.rank + 1);
        }
        self.axis == last
    }

    /// Applies one part of a key to the next axis, or adds one. False for what is no whole number in bounds, slice or new axis.
    #[inline]
    fn take(&mut self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        if object.is_none() && self.rank + self.view.rank() - self.axis < MAX_RANK {
            (self.shape[self.rank], self.stride[self.rank]) = (1, 0);
            self.rank += 1;
            return Ok(true);
        }
        let Some((&extent, &stride)) = self.view.shape().get(self.axis).zip(self.view.stride().get(self.axis)) else {
            return Ok(false);
        };
        if object.is_exact_instance_of::<PyInt>() {
            let Ok(given) = object.extract::<i64>() else { return Ok(false) };
            let index = if given < 0 { given.saturating_add(extent) } else { given };
            if !(0..extent).contains(&index) {
                return Ok(false);
            }
            self.start += index * stride;
        } else if let Ok(slice) = object.cast_exact::<PySlice>() {
            // Its errors are raised once the other parts are known to be right.
            let Ok(bounds) = slice.indices(extent as isize) else { return Ok(false) };
            let count = bounds.slicelength as i64;
            self.start += if count > 0 { bounds.start as i64 * stride } else { 0 };
            (self.shape[self.rank], self.stride[self.rank]) =
                (count, if count > 1 { stride * bounds.step as i64 } else { stride });
            self.rank += 1;
        } else {
            return Ok(false);
        }
        self.axis += 1;
        Ok(true)
    }

    /// The rest of the axes stay as they are.
    #[inline]
    fn finish(mut self) -> PyResult<Option<Selected>> {
        for (&extent, &stride) in self.view.shape().iter().zip(self.view.stride()).skip(self.axis) {
            (self.shape[self.rank], self.stride[self.rank]) = (extent, stride);
            self.rank += 1;
        }
        let view = made(self.start, &self.shape[..self.rank], &self.stride[..self.rank]).map_err(wrong)?;
        Ok(Some(Selected { view, element: self.rank == 0 && self.is_element, copied: false }))
    }
}

fn select(view: &View, key: &Bound<'_, PyAny>) -> PyResult<Option<Selected>> {
    if let Some(selected) = select_plainly(view, key)? {
        return Ok(Some(selected));
    }
    let mut parts: [Option<Part<'_>>; 2 * MAX_RANK + 1] = [const { None }; 2 * MAX_RANK + 1];
    let (mut count, mut copied) = (0, false);
    if let Ok(tuple) = key.cast_exact::<PyTuple>() {
        if tuple.len() > parts.len() {
            return Ok(None);
        }
        for object in tuple.iter_borrowed() {
            let Some(part) = part(&object)? else { return Ok(None) };
            copied |= is_single(&object);
            parts[count] = Some(part);
            count += 1;
        }
    } else {
        let Some(part) = part(key)? else { return Ok(None) };
        copied = is_single(key);
        parts[0] = Some(part);
        count = 1;
    }
    apply(view, &parts[..count], copied)
}

/// The selection of the parts of a basic key; `None` for more dimensions than views have.
fn apply(view: &View, parts: &[Option<Part<'_>>], copied: bool) -> PyResult<Option<Selected>> {
    let used = parts.iter().flatten().filter(|part| matches!(part, Part::Whole(_) | Part::Slice(_))).count();
    let ellipses = parts.iter().flatten().filter(|part| matches!(part, Part::Ellipsis)).count();
    if ellipses > 1 {
        return Err(PyIndexError::new_err("an index can only have a single ellipsis ('...')"));
    }
    let rank = view.rank();
    if used > rank {
        let text = format!("too many indices for array: array is {rank}-dimensional, but {used} were indexed");
        return Err(PyIndexError::new_err(text));
    }
    let count = |kind: fn(&Part<'_>) -> bool| parts.iter().flatten().filter(|part| kind(part)).count();
    let (whole, new) = (count(|part| matches!(part, Part::Whole(_))), count(|part| matches!(part, Part::NewAxis)));
    if rank - whole + new > MAX_RANK {
        return Ok(None);
    }
    let mut result = *view;
    let (mut dim, mut axis) = (0, 0);
    for part in parts.iter().flatten() {
        match part {
            Part::Whole(index) => {
                let extent = view.shape()[axis];
                if *index >= extent || *index < -extent {
                    let text = format!("index {index} is out of bounds for axis {axis} with size {extent}");
                    return Err(PyIndexError::new_err(text));
                }
                result = result.index(dim, *index).map_err(wrong)?;
                axis += 1;
            }
            Part::Slice(slice) => {
                let extent = view.shape()[axis];
                let bounds = slice.indices(extent as isize)?;
                result = cut(&result, dim, bounds.start as i64, bounds.step as i64, bounds.slicelength as i64)?;
                dim += 1;
                axis += 1;
            }
            Part::Ellipsis => {
                dim += rank - used;
                axis += rank - used;
            }
            Part::NewAxis => {
                result = result.new_axis(dim).map_err(wrong)?;
                dim += 1;
            }
        }
    }
    let element = used == rank && parts.iter().flatten().all(|part| matches!(part, Part::Whole(_)));
    Ok(Some(Selected { view: result.into(), element, copied }))
}

/// `count` elements of a dimension, from `start` in steps.
fn cut(view: &View, dim: usize, start: i64, step: i64, count: i64) -> PyResult<View> {
    let (mut shape, mut stride) = ([0; MAX_RANK], [0; MAX_RANK]);
    let rank = view.rank();
    shape[..rank].copy_from_slice(view.shape());
    stride[..rank].copy_from_slice(view.stride());
    let first = if count > 0 { view.start() + start * stride[dim] } else { view.start() };
    shape[dim] = count;
    if count > 1 {
        stride[dim] *= step;
    }
    View::new(first, &shape[..rank], &stride[..rank]).map_err(wrong)
}

/// The window on one element: with a tuple of indices, or the index of an element in C order.
fn window(array: &Array, indices: &Bound<'_, PyTuple>) -> PyResult<View> {
    let (view, rank) = (&array.view, array.view.rank());
    let only = if indices.len() == 1 { Some(indices.get_item(0)?) } else { None };
    let nested = only.as_ref().and_then(|only| only.cast::<PyTuple>().ok());
    let flat = only.as_ref().filter(|_| nested.is_none());
    let mut at = view.start();
    if let Some(flat) = flat {
        let (size, given) = (array.len(), flat.extract::<i64>()?);
        let mut index = if given < 0 { given.saturating_add(size) } else { given };
        if !(0..size).contains(&index) {
            let text = format!("index {given} is out of bounds for size {size}");
            return Err(PyIndexError::new_err(text));
        }
        for (extent, stride) in view.shape().iter().zip(view.stride()).rev() {
            at += index % extent * stride;
            index /= extent;
        }
        return View::new(at, &[], &[]).map_err(wrong);
    }
    let indices = nested.unwrap_or(indices);
    if indices.len() != rank {
        return Err(PyValueError::new_err("incorrect number of indices for array"));
    }
    for (axis, (index, (extent, stride))) in indices.iter().zip(view.shape().iter().zip(view.stride())).enumerate() {
        let given = index.extract::<i64>()?;
        let index = if given < 0 { given.saturating_add(*extent) } else { given };
        if !(0..*extent).contains(&index) {
            let text = format!("index {given} is out of bounds for axis {axis} with size {extent}");
            return Err(PyIndexError::new_err(text));
        }
        at += index * stride;
    }
    View::new(at, &[], &[]).map_err(wrong)
}

#[pymethods]
impl Array {
    /// An element as a Python number: the only one, the one with an index in C order, or with an index for each dimension.
    #[pyo3(signature = (*args))]
    fn item(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let this = slf.borrow();
        if args.is_empty() {
            return crate::transfer::item(py, &this);
        }
        let (view, recorder) = (window(&this, args)?, &this.context.recorder);
        if this.link.is_none()
            && let Some(value) = recorder.hand().and_then(|mut hand| hand.element(this.store(), view.start()))
        {
            return crate::transfer::python_number(py, value);
        }
        this.refresh(py)?;
        let id = recorder.window(this.anchor(), &view).map_err(exception)?;
        let element = Array::result(this.context, id, this.dtype, view);
        crate::transfer::item(py, &element)
    }

    #[allow(clippy::unused_self)] // Python calls it with one.
    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyValueError::new_err("cannot delete array elements"))
    }

    pub fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(value) = at_hand(slf, key) {
            return numpy_scalar(py, &value);
        }
        if let Ok(chosen) = key.cast_exact::<Array>()
            && chosen.get().view.rank() > 0
            && let Some(result) = crate::selection::get(py, slf.get(), chosen)?
        {
            return Ok(Bound::new(py, result)?.into_any());
        }
        let selected = match select(&slf.get().view, key)? {
            Some(selected) => selected,
            None => {
                let copy = crate::foreign::copied(slf.get().context, key).map(Bound::into_any);
                if let Ok(chosen) = copy.as_ref().unwrap_or(key).cast_exact::<Array>()
                    && let Some(result) = crate::selection::get(py, slf.get(), chosen)?
                {
                    return Ok(Bound::new(py, result)?.into_any());
                }
                if copy.is_none()
                    && !key.is_exact_instance_of::<Array>()
                    && let Some(result) = crate::advanced::get(slf.get(), key)
                {
                    return Ok(Bound::new(py, result)?.into_any());
                }
                if let Some(slices) = crate::few::chosen(slf, key)? {
                    return Ok(Bound::new(py, slices)?.into_any());
                }
                return advanced()?.0.bind(py).call1((slf, key));
            }
        };
        let result = match (selected.element, selected.copied) {
            (true, _) => element(slf, &selected.view)?,
            (false, false) if slf.get().is_scalar() => derive(&assignable(slf)?, selected.view)?,
            (false, false) => derive(slf, selected.view)?,
            (false, true) => {
                let view = Bound::new(py, derive(slf, selected.view)?)?;
                let code = view.borrow().dtype as u8;
                cast_in_order(py, &view, code)?
            }
        };
        crate::scalar::give(py, result)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Rows> {
        if slf.borrow().view.rank() == 0 {
            return Err(PyTypeError::new_err("iteration over a 0-d array"));
        }
        await_rows(slf)?;
        Ok(Rows { array: slf.clone().unbind(), next: 0 })
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        this.check_writeable()?;
        if this.warns() {
            this.warn_of_write(py)?;
        }
        // The result of an operator in place is there already.
        if let Ok(value) = value.cast_exact::<Array>()
            && value.get().shares_memory(this)
            && let Some(selected) = select_plainly(&this.view, key)?
            && *selected.view == *value.get().view
        {
            return Ok(());
        }
        if set_at_hand(this, key, value) {
            return Ok(());
        }
        let (view, context, dtype, linked) = (&this.view, this.context, this.dtype, this.link.is_some());
        let list = crate::from_lists::numbers(context, value, Some(dtype));
        let (as_given, rank) = (value, list.as_ref().map_or(0, |list| list.get().view.rank()));
        let copy = list.or_else(|| crate::foreign::copied(context, value));
        let given = copy.as_ref().or_else(|| value.cast_exact::<Array>().ok());
        let converted = given.and_then(|given| cast_without_loss(given.get(), dtype));
        let converted = converted.map(|array| Bound::new(py, array)).transpose()?;
        let copy = converted.or_else(|| copy.filter(|copy| copy.get().dtype == dtype)).map(Bound::into_any);
        let value = copy.as_ref().unwrap_or(value);
        let input = match classify(value) {
            _ if linked => None,
            Some((_, Operand::Array(array))) => {
                let plain = array.dtype == dtype && std::ptr::eq(array.context, context);
                plain.then_some(Ok(array))
            }
            Some((_, Operand::Number(number))) => number.assigned(dtype).map(Err),
            None => None,
        };
        let (Some(input), Some(selected)) = (input, select(view, key)?) else {
            let copy = crate::foreign::copied(context, key).map(Bound::into_any);
            if let Ok(chosen) = copy.as_ref().unwrap_or(key).cast_exact::<Array>()
                && crate::selection::set(py, this, chosen, value)?
            {
                return Ok(());
            }
            if copy.is_none()
                && !key.is_exact_instance_of::<Array>()
                && (crate::advanced::set(this, key, value).is_some() || crate::few::set(this, key, value)?)
            {
                return Ok(());
            }
            return advanced()?.1.bind(py).call1((slf, key, as_given)).map(drop);
        };
        // Lists of more dimensions are errors where arrays are not.
        if rank > selected.view.rank() {
            return advanced()?.1.bind(py).call1((slf, key, as_given)).map(drop);
        }
        if crate::computed_selection::assign(this, &selected.view, value).is_some() {
            return Ok(());
        }
        // Values of further dimensions, or that do not fit, are for Python to deal with.
        if let Ok(array) = value.cast_exact::<Array>()
            && array.get().view.broadcast_to(selected.view.shape()).is_err()
        {
            return advanced()?.1.bind(py).call1((slf, key, as_given)).map(drop);
        }
        let recorder = &context.recorder;
        let input = input.map_or_else(Input::Constant, |array| Input::Array(array.id()));
        let target = (this.anchor(), &*selected.view);
        let done = with_location(py, |place| recorder.operate_in(Opcode::Copy, 0, target, &[input], place));
        match done {
            // Elements that share memory are Python's.
            Err(_) if !selected.view.is_injective() => advanced()?.1.bind(py).call1((slf, key, value)).map(drop),
            done => done.map_err(exception),
        }
    }
}

/// A copy of one element, which later assignments to the array do not change.
fn element(array: &Bound<'_, Array>, view: &View) -> PyResult<Array> {
    let (py, this) = (array.py(), array.get());
    if let Some(link) = &this.link {
        return link.element(py, view.start());
    }
    let (recorder, source) = (&this.context.recorder, (this.anchor(), view));
    let id = with_location(py, |place| recorder.copy_of(source, place)).map_err(exception)?;
    Ok(Array::result(this.context, id, this.dtype, View::default()))
}

//! New arrays: little ones have their data at once, and large ones are recorded.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::context::{self, Shared};
use crate::error::{exception, value_error};
use crate::layout::axes_in_memory;
use crate::location::with_location;
use crate::numpy_types::element_type;
use crate::operand::number;
use crate::shared_view::contiguous;
use crate::strided::{Plain, Strided, is_plain, sized};
use crate::text::intern;
use bh_bytecode::{Constant, DType, MAX_RANK, Opcode, View};
use bh_compose::Spacing;
use bh_recorder::{Input, Location};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use std::sync::Arc;

fn extent(object: &Bound<'_, PyAny>) -> Option<i64> {
    object.is_exact_instance_of::<PyInt>().then(|| object.extract::<i64>().ok())?.filter(|&extent| extent >= 0)
}

/// The view of a new array of a shape of whole numbers.
fn new_view(shape: &Bound<'_, PyAny>) -> Option<Arc<View>> {
    let Ok(tuple) = shape.cast_exact::<PyTuple>() else { return contiguous(&[extent(shape)?]).ok() };
    let (mut extents, rank) = ([0; MAX_RANK], tuple.len());
    let extents = extents.get_mut(..rank)?;
    for (place, object) in extents.iter_mut().zip(tuple.iter_borrowed()) {
        *place = extent(&object)?;
    }
    contiguous(extents).ok()
}

fn fill<T: Copy>(to: *mut u8, count: usize, value: Constant) {
    // SAFETY: a constant has as many bytes as any element; there is room for all elements.
    unsafe {
        let value = value.bits.as_ptr().cast::<T>().read_unaligned();
        (0..count).for_each(|place| to.cast::<T>().add(place).write_unaligned(value));
    }
}

/// A new array with undefined elements. `axes`: its dimensions from the outermost in memory to the innermost, where that is
/// not their order.
pub fn ordered(context: Shared, dtype: DType, shape: &[i64], axes: Option<&[usize]>) -> PyResult<Array> {
    let Some(axes) = axes else { return Array::empty(context, dtype, shape) };
    let extent =
        |&axis: &usize| shape.get(axis).copied().ok_or_else(|| PyValueError::new_err("axes don't match array"));
    let extents = axes.iter().map(extent).collect::<PyResult<Vec<i64>>>()?;
    let mut places: Vec<usize> = (0..axes.len()).collect();
    places.sort_by_key(|&place| axes[place]);
    let whole = Array::empty(context, dtype, &extents)?;
    let view = whole.view.transpose(&places).map_err(value_error)?;
    whole.renamed(view)
}

/// The array, for which it is recorded that all elements are equal to a number of its type.
pub fn with_all(py: Python<'_>, array: Array, value: Constant) -> PyResult<Array> {
    let recorder = &array.context.recorder;
    let record = |place: Location<'_>| recorder.operate(Opcode::Copy, 0, array.id(), &[Input::Constant(value)], place);
    with_location(py, record).map_err(exception)?;
    Ok(array)
}

/// A new array with all elements equal.
pub fn filled<'py>(py: Python<'py>, context: Shared, view: Arc<View>, value: Constant) -> Served<'py> {
    match filled_at_hand(context, &view, value) {
        Some(array) => given(py, array),
        None => given(py, with_all(py, Array::new_empty(context, value.dtype(), view)?, value)?),
    }
}

/// The same, of a little array.
fn filled_at_hand(context: Shared, view: &Arc<View>, value: Constant) -> Option<Array> {
    let dtype = value.dtype();
    let id = {
        let mut hand = context.recorder.hand()?;
        let (id, to) = hand.make(dtype, view.shape(), &[])?;
        sized!(dtype, fill(to, view.len() as usize, value));
        id
    };
    Some(Array::new(context, id, dtype, Arc::clone(view)))
}

fn given(py: Python<'_>, array: Array) -> Served<'_> {
    Ok(Some(Bound::new(py, array)?.into_any()))
}

/// An array of a shape and a type, with all elements equal to a number of the type.
fn made<'py>(call: &Call<'_, 'py>, value: u8) -> Served<'py> {
    let Some((shape, dtype)) = call.pair(intern!(call.py(), "dtype")) else { return Ok(None) };
    let dtype = dtype.map_or(Some(DType::F64), element_type);
    let (Some(view), Some(dtype)) = (new_view(shape), dtype) else { return Ok(None) };
    let value = Constant::from_value(value).cast(dtype);
    filled(call.py(), context::current(call.py())?, view, value)
}

pub fn zeros<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made(call, 0)
}

/// Ones on the diagonal of a square matrix, zeros elsewhere.
pub fn eye<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(extent) = call.plain().and_then(|[given]| extent(given)).filter(|&extent| extent < 1 << 20) else {
        return Ok(None);
    };
    let context = context::current(call.py())?;
    let view = contiguous(&[extent, extent]).map_err(value_error)?;
    let id = {
        let Some(mut hand) = context.recorder.hand() else { return Ok(None) };
        let Some((id, to)) = hand.make(DType::F64, view.shape(), &[]) else { return Ok(None) };
        fill::<u64>(to, view.len() as usize, Constant::from_value(0.0f64));
        for place in 0..extent as usize {
            // SAFETY: the diagonal lies in the matrix.
            unsafe { *to.cast::<f64>().add(place * (extent as usize + 1)) = 1.0 };
        }
        id
    };
    given(call.py(), Array::new(context, id, DType::F64, view))
}

pub fn ones<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made(call, 1)
}

/// Of a number of Python, whose type is the array's.
pub fn full<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some([shape, value]) = call.plain() else { return Ok(None) };
    let dtype = match value.get_type() {
        kind if kind.is(call.py().get_type::<PyFloat>()) => DType::F64,
        kind if kind.is(call.py().get_type::<PyInt>()) => DType::I64,
        _ => return Ok(None),
    };
    let (Some(view), Some(value)) = (new_view(shape), number(value).and_then(|value| value.constant(dtype))) else {
        return Ok(None);
    };
    filled(call.py(), context::current(call.py())?, view, value)
}

/// A little array whose elements, which may be any, are zeros; the memory of a larger one is allocated when something uses it.
pub fn empty<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((shape, dtype)) = call.pair(intern!(call.py(), "dtype")) else { return Ok(None) };
    let dtype = dtype.map_or(Some(DType::F64), element_type);
    let (Some(view), Some(dtype)) = (new_view(shape), dtype) else { return Ok(None) };
    empty_of(call.py(), context::current(call.py())?, dtype, view)
}

fn empty_of(py: Python<'_>, context: Shared, dtype: DType, view: Arc<View>) -> Served<'_> {
    match filled_at_hand(context, &view, Constant::from_value(0u8).cast(dtype)) {
        None => given(py, Array::new_empty(context, dtype, view)?),
        Some(made) => given(py, made),
    }
}

/// The prototype of a new array like another one: its stack, its type, the shape, and the order in memory, if that is not
/// C's.
struct Like<'a> {
    context: Shared,
    dtype: DType,
    shape: &'a [i64],
    axes: Option<Vec<usize>>,
    /// The arguments behind the array.
    others: &'a [Py<PyAny>],
}

impl<'a> Like<'a> {
    /// As the first argument of a call, in the type of the option `dtype`; beside that, `others` arguments without names.
    fn of<'py: 'a>(call: &Call<'a, 'py>, others: usize) -> PyResult<Option<Like<'a>>> {
        let py = call.py();
        let Some((all, [dtype])) = call.options(1 + others, [intern!(py, "dtype")]) else { return Ok(None) };
        let Some((array, others)) = all.split_first() else { return Ok(None) };
        let Ok(array) = array.bind(py).cast_exact::<Array>() else { return Ok(None) };
        let (array, dtype) = (array.get(), dtype.filter(|dtype| !dtype.is_none()));
        let Some(dtype) = dtype.map_or(Some(array.dtype), element_type) else { return Ok(None) };
        // New arrays belong to the current stack.
        let context = context::current(py)?;
        if !is_plain(array) || !std::ptr::eq(context, array.context) {
            return Ok(None);
        }
        let axes = axes_in_memory(&array.view);
        Ok(Some(Like { context, dtype, shape: array.view.shape(), axes, others }))
    }

    fn filled<'py>(&self, py: Python<'py>, value: Constant) -> Served<'py> {
        match &self.axes {
            None => filled(py, self.context, contiguous(self.shape).map_err(value_error)?, value),
            Some(axes) => given(py, with_all(py, ordered(self.context, self.dtype, self.shape, Some(axes))?, value)?),
        }
    }
}

fn made_like<'py>(call: &Call<'_, 'py>, value: u8) -> Served<'py> {
    let Some(like) = Like::of(call, 0)? else { return Ok(None) };
    like.filled(call.py(), Constant::from_value(value).cast(like.dtype))
}

pub fn zeros_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made_like(call, 0)
}

pub fn ones_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    made_like(call, 1)
}

/// Of a number that the array's type holds.
pub fn full_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(like) = Like::of(call, 1)? else { return Ok(None) };
    let value = number(like.others[0].bind(call.py())).and_then(|value| value.assigned(like.dtype));
    value.map_or(Ok(None), |value| like.filled(call.py(), value))
}

pub fn empty_like<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some(like) = Like::of(call, 0)? else { return Ok(None) };
    match &like.axes {
        None => empty_of(call.py(), like.context, like.dtype, contiguous(like.shape).map_err(value_error)?),
        Some(axes) => given(call.py(), ordered(like.context, like.dtype, like.shape, Some(axes))?),
    }
}

/// A number of Python, if it is a float, or an integer that is also a float.
fn spaced(object: &Bound<'_, PyAny>) -> Option<f64> {
    if object.is_exact_instance_of::<PyInt>() {
        return object.extract::<i64>().ok().filter(|whole| whole.unsigned_abs() < 1 << 53).map(|whole| whole as f64);
    }
    object.is_exact_instance_of::<PyFloat>().then(|| object.extract().ok())?
}

/// The most numbers that a call makes here; NumPy judges longer ones.
const MOST: f64 = 1e9;

/// Evenly spaced numbers before a limit, as integers or, where one of those given is a float, as floats.
pub fn arange<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, mut given) = (call.py(), [0.0, 0.0, 1.0]);
    let places: &[usize] = match call.unnamed() {
        Some([_]) => &[1],
        Some([_, _]) => &[0, 1],
        Some([_, _, _]) => &[0, 1, 2],
        _ => return Ok(None),
    };
    let mut whole = true;
    for (object, &place) in call.unnamed().unwrap_or_default().iter().zip(places) {
        let Some(number) = spaced(object.bind(py)) else { return Ok(None) };
        given[place] = number;
        whole &= object.bind(py).is_exact_instance_of::<PyInt>();
    }
    let [start, stop, step] = given;
    let quotient = (stop - start) / step;
    // A quotient that underflows is one number.
    let count = if quotient == 0.0 && stop != start {
        f64::from(!quotient.is_sign_negative())
    } else {
        quotient.ceil().max(0.0)
    };
    if !given.iter().all(|number| number.is_finite()) || step == 0.0 || !(0.0..MOST).contains(&count) {
        return Ok(None);
    }
    let count = count as i64;
    if whole {
        let (start, step) = (start as i64, step as i64);
        let numbers = (0..count).map(|place| (start + place * step).cast_unsigned());
        if let Some(made) = numbered(py, DType::I64, count, numbers)? {
            return Ok(Some(made));
        }
        let array = Array::empty(context::current(py)?, DType::I64, &[count])?;
        let record = |place: Location<'_>| array.context.recorder.range(array.id(), start, step, place);
        with_location(py, record).map_err(exception)?;
        return Ok(Some(Bound::new(py, array)?.into_any()));
    }
    // As NumPy: the second number tells the distance of the others.
    let second = start + step;
    let number = |place: i64| match place {
        0 => start,
        1 => second,
        _ => start + place as f64 * (second - start),
    };
    numbered(py, DType::F64, count, (0..count).map(|place| number(place).to_bits()))
}

/// Numbers at equal distances between two limits, of which the last one is included unless the option says otherwise.
pub fn linspace<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let py = call.py();
    let spacing = || {
        let (all, [count, endpoint]) = call.options(2, [intern!(py, "num"), intern!(py, "endpoint")])?;
        let (start, stop) = (spaced(all[0].bind(py))?, spaced(all[1].bind(py))?);
        let count = count.map_or(Some(50), extent).filter(|&count| (count as f64) < MOST)?;
        let endpoint =
            endpoint.map_or(Some(true), |flag| flag.cast_exact::<PyBool>().ok().map(|flag| flag.is_true()))?;
        // NumPy warns of infinite distances.
        (stop - start).is_finite().then_some(Spacing { start, stop, count, endpoint })
    };
    let Some(spacing) = spacing() else { return Ok(None) };
    let numbers = spacing.numbers().map(f64::to_bits);
    match numbered(py, DType::F64, spacing.count, numbers)? {
        None => given(py, crate::compose::spaced(py, spacing)?),
        made => Ok(made),
    }
}

/// Arrays of the coordinates in a grid, by those along each of its dimensions.
pub fn meshgrid<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (py, given) = (call.py(), call.arguments.unnamed());
    let order = call.arguments.get(intern!(py, "indexing"));
    let by_rows = match order.map(|order| order.cast_exact::<PyString>().ok()?.to_str().ok()) {
        None => false,
        Some(Some("xy")) => false,
        Some(Some("ij")) => true,
        Some(_) => return Ok(None),
    };
    let vector = |object: &Py<PyAny>| {
        let array = object.bind(py).cast_exact::<Array>().ok()?;
        (is_plain(array.get()) && !array.get().is_scalar() && array.get().view.rank() == 1).then(|| array.clone())
    };
    let known = call.arguments.named() == usize::from(order.is_some()) && given.len() <= MAX_RANK;
    let Some(all) = given.iter().map(vector).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let context = context::current(py)?;
    if !known || all.is_empty() || all.iter().any(|array| !std::ptr::eq(array.get().context, context)) {
        return Ok(None);
    }
    // The dimension of each vector.
    let place = |axis: usize| if by_rows || all.len() == 1 || axis > 1 { axis } else { 1 - axis };
    let mut shape = vec![0; all.len()];
    all.iter().enumerate().for_each(|(axis, array)| shape[place(axis)] = array.get().len());
    let each = |(axis, array): (usize, &Bound<'py, Array>)| -> PyResult<Array> {
        let this = array.get();
        let made = Array::empty(context, this.dtype, &shape)?;
        let mut extents = vec![1; all.len()];
        extents[place(axis)] = this.len();
        let mut strides = vec![0; all.len()];
        strides[place(axis)] = this.view.stride()[0];
        let along = this.seen(View::new(this.view.start(), &extents, &strides).map_err(value_error)?);
        let input = [Input::Array(along.current(py)?)];
        with_location(py, |place| context.recorder.operate(Opcode::Copy, 0, made.id(), &input, place))
            .map_err(exception)?;
        Ok(made)
    };
    let grids = all.iter().enumerate().map(each).collect::<PyResult<Vec<Array>>>()?;
    Ok(Some(PyTuple::new(py, grids)?.into_any()))
}

/// A new array of these elements, of eight bytes each.
pub fn numbered(py: Python<'_>, dtype: DType, count: i64, bits: impl Iterator<Item = u64>) -> Served<'_> {
    let Ok(view) = contiguous(&[count]) else { return Ok(None) };
    let context = context::current(py)?;
    let id = {
        let Some(mut hand) = context.recorder.hand() else { return Ok(None) };
        let Some((id, to)) = hand.make(dtype, view.shape(), &[]) else { return Ok(None) };
        for (place, bits) in bits.take(view.len() as usize).enumerate() {
            // SAFETY: there is room for all elements, of eight bytes.
            unsafe { to.cast::<u64>().add(place).write(bits) };
        }
        id
    };
    given(py, Array::new(context, id, dtype, view))
}

/// Copies elements in C order to `to`, which has room for all of them.
pub fn copy_into<T: Plain>(from: Strided<'_>, to: *mut u8) {
    let to = to.cast::<T>();
    match from.slice::<T>() {
        // SAFETY: there is room for as many elements.
        Some(all) => unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), to, all.len()) },
        None => {
            for (place, at) in from.addresses::<T>().enumerate() {
                // SAFETY: as above; the element is one of the array.
                unsafe { to.add(place).write_unaligned(at.read_unaligned()) };
            }
        }
    }
}

/// A copy in C's order, which is that of the array's dimensions.
pub fn copied(array: &Array) -> Option<Array> {
    if !is_plain(array) || array.is_scalar() || array.view.rank() > 1 && !array.view.is_contiguous() {
        return None;
    }
    // Elements of a little array are in the order of its memory.
    let id = if array.here().is_some() && array.view.is_contiguous() { None } else { Some(array.id()) };
    let mut hand = array.context.recorder.hand()?;
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let from = unsafe { Strided::of(&hand, array) }?;
    let view = contiguous(array.view.shape()).ok()?;
    let (id, to) = hand.make(array.dtype, view.shape(), id.as_slice())?;
    sized!(array.dtype, copy_into(from, to));
    let copy = Array::new(array.context, id, array.dtype, view);
    copy.set_long_long(array.is_long_long());
    Some(copy)
}

pub fn copy<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let copied = call.array().and_then(|array| copied(array.get()));
    copied.map_or(Ok(None), |copy| given(call.py(), copy))
}

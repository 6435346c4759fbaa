//! Reductions of universal functions: a table says which opcode and type serve arrays of a type. The first fold of a type asks
//! Python for its entry.

use crate::array::Array;
use crate::error::{exception, value_error};
use crate::layout::Order;
use crate::location::with_location;
use crate::numpy_types::no_value;
use crate::record::cast_at_hand;
use crate::shared_view::contiguous;
use bh_bytecode::{DType, Kind, Opcode, View};
use bh_recorder::{Input, Location, Made};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An argument that may be missing, which is not the same as None.
#[derive(Default)]
pub struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Given<'py>, Infallible> {
        Ok(Given(Some(object.to_owned())))
    }
}

impl<'py> Given<'py> {
    /// One that is there.
    pub fn new(object: Bound<'py, PyAny>) -> Given<'py> {
        Given(Some(object))
    }
}

/// The axis and `keepdims` of a fold's arguments behind the array; None if there is more than these to look at.
pub fn plain_fold<'py>(
    arguments: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<(Given<'py>, Given<'py>)>> {
    const NAMES: [&str; 6] = ["axis", "dtype", "out", "keepdims", "initial", "where"];
    let mut all: [Given<'py>; 6] = Default::default();
    if arguments.len() > all.len() {
        return Ok(None);
    }
    all.iter_mut().zip(arguments.iter()).for_each(|(place, given)| *place = Given::new(given));
    for (name, given) in keywords.into_iter().flatten() {
        let name = name.cast::<PyString>()?.to_string_lossy();
        match NAMES.iter().position(|known| *known == name) {
            Some(place) if place >= arguments.len() => all[place] = Given::new(given),
            _ => return Ok(None),
        }
    }
    let py = arguments.py();
    let [axis, dtype, out, keepdims, initial, chosen] = all;
    let plain = dtype.is_none() && out.is_none() && initial.is_no_value(py)? && chosen.is_no_value_or_true(py)?;
    Ok(plain.then_some((axis, keepdims)))
}

impl Given<'_> {
    /// Is it missing, or None?
    fn is_none(&self) -> bool {
        self.0.as_ref().is_none_or(|object| object.is_none())
    }

    /// Is it missing, or what stands for that in NumPy?
    pub fn is_no_value(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(object) = &self.0 else { return Ok(true) };
        Ok(object.is(no_value(py)?))
    }

    /// Is it missing, or true?
    pub fn is_no_value_or_true(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.flag(true) == Some(true) || self.is_no_value(py)?)
    }

    /// A truth value of Python; `None` for anything else.
    fn flag(&self, missing: bool) -> Option<bool> {
        let Some(object) = &self.0 else { return Some(missing) };
        object.cast_exact::<PyBool>().ok().map(|flag| flag.is_true())
    }

    /// The axes as a bit mask, axis 0 if it is missing; `None` for what Python has to look at.
    fn axes(&self, rank: usize) -> Option<u16> {
        let axis = |object: &Bound<'_, PyAny>| {
            let given = object.is_exact_instance_of::<PyInt>().then(|| object.extract::<i64>().ok())??;
            let axis = if given < 0 { given + rank as i64 } else { given };
            (0..rank as i64).contains(&axis).then(|| 1u16 << axis)
        };
        match &self.0 {
            None => (rank > 0).then_some(1),
            Some(object) if object.is_none() => (rank > 0).then(|| u16::MAX >> (16 - rank)),
            Some(object) => match object.cast_exact::<PyTuple>() {
                Ok(tuple) => {
                    let mut mask = 0;
                    for object in tuple.iter_borrowed() {
                        let bit = axis(&object)?;
                        // An axis that comes twice is an error for Python to tell.
                        mask = (mask & bit == 0).then_some(mask | bit)?;
                    }
                    (mask != 0).then_some(mask)
                }
                Err(_) => axis(object),
            },
        }
    }
}

/// How arrays of each type are folded.
#[derive(Default)]
pub struct Folds([AtomicU64; DType::ALL.len()]);

/// Bit of an entry that is known, and of one that has a value for no elements; the others are the opcode and the type.
const KNOWN: u64 = 1 << 63;
const IDENTITY: u64 = 1 << 62;
/// An entry of a type that Python serves.
const UNSERVED: u64 = 1;

/// An entry as Python returns it: the opcode's name, the type that arrays are converted to, and whether no elements have a value.
pub type Description = (String, u8, bool);

impl Folds {
    /// The bits of an entry.
    fn pack((opcode, fold_type, identity): Description) -> PyResult<u64> {
        let wrong = || PyValueError::new_err("no such opcode or type");
        let opcode = Opcode::from_name(&opcode).filter(|opcode| opcode.kind() == Kind::Reduction).ok_or_else(wrong)?;
        let dtype = DType::from_code(fold_type).ok_or_else(wrong)?;
        Ok(KNOWN | u64::from(opcode.0) << 8 | dtype as u64 | if identity { IDENTITY } else { 0 })
    }

    /// Records a reduction; the result, and the bit mask of the axes. `None` if the call needs Python. `learn` looks up the entry of a
    /// type that has none yet.
    pub fn reduce(
        &self,
        py: Python<'_>,
        array: &Array,
        axis: &Given<'_>,
        keep: &Given<'_>,
        learn: impl FnOnce(DType) -> PyResult<Option<Description>>,
    ) -> PyResult<Option<(Array, u16)>> {
        let (Some(axes), Some(keep)) = (axis.axes(array.view.rank()), keep.flag(false)) else { return Ok(None) };
        let none = || array.view.shape().iter().enumerate().any(|(axis, extent)| axes >> axis & 1 == 1 && *extent == 0);
        if !crate::shortcut::taken() || crate::warning::errors_asked() {
            return Ok(None);
        }
        let entry = &self.0[array.dtype as usize];
        let mut bits = entry.load(Ordering::Relaxed);
        if bits == 0 {
            bits = learn(array.dtype)?.map_or(Ok(UNSERVED), Folds::pack)?;
            entry.store(bits, Ordering::Relaxed);
        }
        if bits & KNOWN == 0 || bits & IDENTITY == 0 && none() {
            return Ok(None);
        }
        let Some(dtype) = DType::from_code(bits as u8) else { return Ok(None) };
        let folded = fold(py, array, Opcode((bits >> 8) as u16), dtype, axes, keep, None)?;
        Ok(Some((folded, axes)))
    }
}

/// Records a reduction over the axes of a bit mask, or an accumulate along one, of the elements in a type. `keep`: reduced axes
/// stay, with extent 1. `mask`: which elements a masked reduction takes, in the array's shape. The result has the operands' order
/// in memory.
pub fn fold(
    py: Python<'_>,
    array: &Array,
    opcode: Opcode,
    dtype: DType,
    axes: u16,
    keep: bool,
    mask: Option<&Array>,
) -> PyResult<Array> {
    // Operations that made the array ran over its dimensions in this order, too, so that a fold shares their kernel.
    let Some(order) = Order::of(&[Some(array), mask]) else {
        return fold_plain(py, array, opcode, dtype, axes, keep, mask);
    };
    let gone = if opcode.kind() == Kind::Reduction { axes } else { 0 };
    let chosen = mask.map(|mask| order.turned(mask)).transpose()?;
    let turned_axes = order.turned_mask(axes);
    if !keep && gone.count_ones() as usize == array.view.rank() {
        return fold_plain(py, &order.turned(array)?, opcode, dtype, turned_axes, false, chosen.as_ref());
    }
    let folded = fold_plain(py, &order.turned(array)?, opcode, dtype, turned_axes, true, chosen.as_ref())?;
    let folded = order.back(folded)?;
    if keep || gone == 0 {
        return Ok(folded);
    }
    let dims = folded.view.shape().iter().zip(folded.view.stride()).enumerate();
    let (shape, stride): (Vec<i64>, Vec<i64>) =
        dims.filter(|(dim, _)| gone >> dim & 1 == 0).map(|(_, (extent, step))| (*extent, *step)).unzip();
    let view = View::new(folded.view.start(), &shape, &stride).map_err(value_error)?;
    folded.renamed(view)
}

/// As [`fold`], of operands in C's order.
fn fold_plain(
    py: Python<'_>,
    array: &Array,
    opcode: Opcode,
    dtype: DType,
    axes: u16,
    keep: bool,
    mask: Option<&Array>,
) -> PyResult<Array> {
    let recorder = &array.context.recorder;
    if crate::shortcut::taken()
        && mask.is_none()
        && array.here().is_some()
        && let Some(folded) = fold_here(array, opcode, dtype, axes, keep)?
    {
        return Ok(folded);
    }
    let folded = Input::Array(array.current(py)?);
    let chosen = mask.map_or(Ok(folded), |mask| mask.current(py).map(Input::Array))?;
    let record = |place: Location<'_>| {
        let mut inputs = [folded, chosen];
        let count = 1 + usize::from(mask.is_some());
        if array.dtype == dtype {
            return recorder.operate_new(opcode, axes, None, &inputs[..count], place);
        }
        let converted = recorder.operate_new(Opcode::Copy, 0, Some(dtype), &inputs[..1], place)?;
        inputs[0] = Input::Array(converted);
        let result = recorder.operate_new(opcode, axes, None, &inputs[..count], place);
        recorder.free_later(converted);
        result
    };
    let mut id = with_location(py, record).map_err(exception)?;
    let view = folded_view(&array.view, opcode.kind() == Kind::Reduction, axes, keep)?;
    if keep && opcode.kind() == Kind::Reduction {
        let kept = recorder.window(id, &view).map_err(exception);
        recorder.free_later(id);
        id = kept?;
    }
    Ok(Array::result(array.context, id, dtype, view))
}

/// A fold of a little array. `None` if it has to be recorded.
fn fold_here(array: &Array, opcode: Opcode, dtype: DType, axes: u16, keep: bool) -> PyResult<Option<Array>> {
    let converted = if array.dtype == dtype { None } else { cast_at_hand(array, dtype) };
    let operand = converted.as_ref().unwrap_or(array);
    let Some(here) = operand.here().filter(|here| here.dtype() == dtype) else { return Ok(None) };
    let reduces = opcode.kind() == Kind::Reduction;
    let made = folded_view(&operand.view, reduces, axes, false)?;
    let Some(folded) = array.context.recorder.fold_here(opcode, axes, (here, &operand.view), made.shape()) else {
        return Ok(None);
    };
    let view = if keep { folded_view(&operand.view, reduces, axes, true)? } else { made };
    Ok(Some(Array::result(array.context, Made::Here(folded), dtype, view)))
}

/// The view of what a fold makes.
fn folded_view(view: &View, reduces: bool, axes: u16, keep: bool) -> PyResult<Arc<View>> {
    let mut shape = [1i64; bh_bytecode::MAX_RANK];
    let mut rank = 0;
    for (dim, &extent) in view.shape().iter().enumerate() {
        let removed = reduces && axes >> dim & 1 == 1;
        if !removed || keep {
            shape[rank] = if removed { 1 } else { extent };
            rank += 1;
        }
    }
    contiguous(&shape[..rank]).map_err(value_error)
}

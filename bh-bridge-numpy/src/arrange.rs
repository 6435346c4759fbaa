//! Elements moved along dimensions, and borders around them.

use crate::array::Array;
use crate::assemble::{at_hand, recorded, served};
use crate::call::{Call, Served};
use crate::context;
use crate::error::exception;
use crate::from_lists::numbers as numbers_of_list;
use crate::layout::is_ordered_as_in_c;
use crate::operand::{Number, number};
use crate::sequence::{dimension, whole};
use crate::strided::{hand_for, is_plain};
use crate::text::intern;
use bh_bytecode::{Constant, DType};
use bh_compose::{Assembly, Border, rolled, steps_of_roll, with_numbers};
use bh_recorder::Hand;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// Whole numbers of Python: one, or those of a tuple.
fn whole_numbers(object: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
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
        let axis = dimension(axis, rank)?;
        let (distance, extent) = (&mut distances[axis], array.view.shape()[axis]);
        *distance = (*distance + shift[place.min(shift.len() - 1)].rem_euclid(extent)) % extent;
    }
    Some((array, distances))
}

/// Elements moved by whole numbers along dimensions; those that leave at one end enter at the other.
pub fn roll<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((array, distances)) = moved(call) else { return Ok(None) };
    if array.is_scalar() || !is_plain(array) || !is_ordered_as_in_c(&array.view) {
        return Ok(None);
    }
    served(call.py(), in_steps(call.py(), array, &distances)?)
}

/// The elements moved in steps, each carried out at once or recorded.
fn in_steps(py: Python<'_>, array: &Array, distances: &[i64]) -> PyResult<Array> {
    let mut made = None;
    for distances in steps_of_roll(distances) {
        let from = made.as_ref().unwrap_or(array);
        let assembly = rolled(&from.view, &distances).map_err(exception)?;
        let at_once = || {
            // A roll of many elements may be part of a chain.
            let hand = from.context.recorder.hand()?;
            hand.is_in_c_order(from.store(), &from.view).filter(|in_order| *in_order)?;
            at_hand(hand, &[from], &assembly, |hand, dtype, shape| hand.make(dtype, shape, &[]))
        };
        made = Some(at_once().map_or_else(|| recorded(py, &[from], &assembly), Ok)?);
    }
    made.ok_or_else(|| PyValueError::new_err("a roll has steps"))
}

/// The elements moved along the dimensions, by one distance for each.
#[pyfunction]
#[pyo3(name = "roll")]
fn roll_each(py: Python<'_>, array: &Array, distances: Vec<i64>) -> PyResult<Array> {
    in_steps(py, array, &distances)
}

/// Most dimensions that get borders natively: a box may have two neighbours in each.
const MOST_DIMENSIONS: usize = 4;

/// Borders around an array, as arguments give them.
struct Borders<'a, 'py> {
    array: &'a Array,
    widths: &'a Bound<'py, PyAny>,
    mode: Option<&'a Bound<'py, PyAny>>,
    numbers: Option<&'a Bound<'py, PyAny>>,
}

impl Borders<'_, '_> {
    /// The array with its borders. `None` for what NumPy's code has to look at.
    fn assembly(&self) -> Option<Assembly> {
        let (view, dtype) = (&self.array.view, self.array.dtype);
        let rank = view.rank();
        if rank == 0 || rank > MOST_DIMENSIONS || view.is_empty() || self.array.is_in_fortran() {
            return None;
        }
        let widths = pairs(self.widths, rank, &width)?;
        let mode = match self.mode {
            Some(mode) => mode.cast_exact::<PyString>().ok()?.to_str().ok()?,
            None => "constant",
        };
        let border = match mode {
            "constant" => None,
            "edge" => Some(Border::Edge),
            "symmetric" => Some(Border::Symmetric),
            "reflect" => Some(Border::Reflect),
            "wrap" => Some(Border::Wrap),
            _ => return None,
        };
        let dims = view.shape().iter().zip(&widths);
        let dims: Option<Vec<_>> = match (border, self.numbers) {
            (Some(_), Some(_)) => None,
            (Some(border), None) => dims.map(|(&extent, &widths)| border.around(extent, widths)).collect(),
            (None, numbers) => {
                let zero = [Constant::from_value(0u8).cast(dtype); 2];
                let numbers =
                    numbers.map_or(Some(vec![zero; rank]), |all| pairs(all, rank, &|one| value(one, dtype)))?;
                let dims = dims.zip(numbers);
                Some(dims.map(|((&extent, &widths), numbers)| with_numbers(extent, widths, numbers)).collect())
            }
        };
        Assembly::arranged(view, &dims?).ok()
    }
}

/// A width of a border. NumPy refuses unsigned numbers.
fn width(object: &Bound<'_, PyAny>) -> Option<i64> {
    whole(object).filter(|width| (0..1 << 48).contains(width))
}

/// A number as an element of a border, without loss.
fn value(object: &Bound<'_, PyAny>, dtype: DType) -> Option<Constant> {
    let number = number(object).filter(|number| !matches!(number, Number::Traced(..)))?;
    number.assigned(dtype)
}

/// Widths or numbers before and behind each dimension: one for all, a pair for all, or a pair for each dimension; the places of a pair may
/// have one for both, as NumPy broadcasts them.
fn pairs<T: Copy>(
    object: &Bound<'_, PyAny>,
    rank: usize,
    one: &impl Fn(&Bound<'_, PyAny>) -> Option<T>,
) -> Option<Vec<[T; 2]>> {
    let Some(parts) = listed(object) else { return one(object).map(|one| vec![[one; 2]; rank]) };
    let pair = |parts: &[Bound<'_, PyAny>]| match parts {
        [both] => one(both).map(|one| [one; 2]),
        [before, behind] => Some([one(before)?, one(behind)?]),
        _ => None,
    };
    if listed(parts.first()?).is_none() {
        return pair(&parts).map(|pair| vec![pair; rank]);
    }
    let length = listed(&parts[0])?.len();
    let each = parts.iter().map(|part| listed(part).filter(|part| part.len() == length).and_then(|part| pair(&part)));
    let mut each = each.collect::<Option<Vec<[T; 2]>>>()?;
    if each.len() == 1 {
        each = vec![each[0]; rank];
    }
    (each.len() == rank).then_some(each)
}

/// The parts of a tuple or a list.
fn listed<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    match object.cast_exact::<PyTuple>() {
        Ok(tuple) => Some(tuple.iter().collect()),
        Err(_) => object.cast_exact::<PyList>().ok().map(|list| list.iter().collect()),
    }
}

/// Borders of numbers, or of the array's own elements.
pub fn pad<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let (arguments, py) = (&call.arguments, call.py());
    let (array, widths, mode) = match arguments.unnamed() {
        [array, widths] => (array, widths, None),
        [array, widths, mode] => (array, widths, Some(mode.bind(py))),
        _ => return Ok(None),
    };
    let (named, numbers) = (arguments.get(intern!(py, "mode")), arguments.get(intern!(py, "constant_values")));
    let known = usize::from(named.is_some()) + usize::from(numbers.is_some());
    if known != arguments.named() || mode.is_some() && named.is_some() {
        return Ok(None);
    }
    let list;
    let array = match array.bind(py).cast_exact::<Array>() {
        Ok(array) => array,
        Err(_) => match numbers_of_list(context::current(py)?, array.bind(py), None) {
            Some(made) => {
                list = made;
                &list
            }
            None => return Ok(None),
        },
    };
    let borders = Borders { array: array.get(), widths: widths.bind(py), mode: mode.or(named), numbers };
    let Some(assembly) = Some(borders).filter(|borders| is_plain(borders.array)).and_then(|all| all.assembly()) else {
        return Ok(None);
    };
    let sources = [array.get()];
    let hand = hand_for(sources.into_iter());
    let made = hand.and_then(|hand| at_hand(hand, &sources, &assembly, Hand::make_moved));
    served(py, made.map_or_else(|| recorded(py, &sources, &assembly), Ok)?)
}

/// As [`pad`], recorded. `None` for what NumPy's code has to look at.
#[pyfunction]
#[pyo3(signature = (array, widths, mode, numbers=None))]
fn padded<'py>(
    py: Python<'py>,
    array: &Array,
    widths: &Bound<'py, PyAny>,
    mode: &Bound<'py, PyAny>,
    numbers: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Array>> {
    let borders = Borders { array, widths, mode: Some(mode), numbers };
    borders.assembly().map(|assembly| recorded(py, &[array], &assembly)).transpose()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(roll_each, module)?)?;
    module.add_function(wrap_pyfunction!(padded, module)?)
}

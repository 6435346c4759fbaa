//! `array` and `asarray`: copies, and arrays of the numbers in lists and tuples, also nested ones, or of the arrays in a
//! list, whose data is computed immediately.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::context::{Shared, current};
use crate::create::{copy, filled};
use crate::foreign::copied;
use crate::numpy_types::element_type;
use crate::operand::{Number, Operand, classify, code};
use crate::shared_view::contiguous;
use crate::strided::sized;
use crate::text::intern;
use bh_bytecode::{Constant, DType};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

/// The most numbers that are looked at, and the deepest nesting.
const MOST: usize = 1024;
const DEEPEST: usize = 4;

/// The numbers found so far.
struct Found {
    numbers: Vec<Number>,
    /// The type that all of them have together.
    dtype: DType,
    /// The lengths of the sequences at each depth.
    shape: Vec<i64>,
    /// At which depth numbers are.
    rank: usize,
}

/// The types that lists of numbers have, each of which holds the numbers of those before it.
const TYPES: [DType; 4] = [DType::Bool, DType::I64, DType::F64, DType::C128];

/// A number, and the type of an array of it.
fn number(object: &Bound<'_, PyAny>) -> Option<(DType, Number)> {
    let (kind, Operand::Number(number)) = classify(object)? else { return None };
    let dtype = match kind {
        code::INT => DType::I64,
        code::FLOAT => DType::F64,
        code::COMPLEX => DType::C128,
        other => TYPES.into_iter().find(|&dtype| dtype as u8 == other)?,
    };
    (!matches!(number, Number::Traced(..))).then_some((dtype, number))
}

impl Found {
    fn sequence(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
        if let Ok(list) = object.cast_exact::<PyList>() {
            return self.parts(list.len(), list.iter(), depth);
        }
        let tuple = object.cast_exact::<PyTuple>().ok()?;
        self.parts(tuple.len(), tuple.iter(), depth)
    }

    /// `None` if it is no box of numbers.
    fn parts<'py>(&mut self, count: usize, parts: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> Option<()> {
        if depth == self.shape.len() && self.numbers.is_empty() && depth < DEEPEST {
            self.shape.push(count as i64);
        }
        if self.shape.get(depth) != Some(&(count as i64)) || count == 0 {
            return None;
        }
        for part in parts {
            match number(&part) {
                Some((dtype, number)) if self.numbers.is_empty() || self.rank == depth + 1 => {
                    let order = |one: DType| TYPES.iter().position(|&dtype| dtype == one);
                    if order(dtype) > order(self.dtype) {
                        self.dtype = dtype;
                    }
                    self.rank = depth + 1;
                    self.numbers.push(number);
                }
                Some(_) => return None,
                None if self.rank == depth + 1 => return None,
                None => self.sequence(&part, depth + 1)?,
            }
            if self.numbers.len() > MOST {
                return None;
            }
        }
        Some(())
    }
}

/// An array of the numbers in a list or tuple: of `dtype`, or of the type that they have together. `None` if there is something
/// else, or a number that the type does not hold.
pub fn numbers<'py>(context: Shared, source: &Bound<'py, PyAny>, dtype: Option<DType>) -> Option<Bound<'py, Array>> {
    if !is_sequence(source) || !crate::shortcut::taken() {
        return None;
    }
    let mut found = Found { numbers: Vec::new(), dtype: DType::Bool, shape: Vec::new(), rank: 0 };
    found.sequence(source, 0)?;
    let (dtype, view) = (dtype.unwrap_or(found.dtype), contiguous(&found.shape).ok()?);
    let elements: Vec<Constant> = found.numbers.iter().map(|number| number.assigned(dtype)).collect::<Option<_>>()?;
    let id = {
        let mut hand = context.recorder.hand()?;
        let (id, to) = hand.make(dtype, view.shape(), &[])?;
        sized!(dtype, put(&elements, to));
        id
    };
    Bound::new(source.py(), Array::new(context, id, dtype, view)).ok()
}

/// Writes the elements to `to`, which has room for all of them.
fn put<T: Copy>(elements: &[Constant], to: *mut u8) {
    for (place, element) in elements.iter().enumerate() {
        // SAFETY: a constant has as many bytes as any element; there is room for all elements.
        unsafe { to.cast::<T>().add(place).write_unaligned(element.bits.as_ptr().cast::<T>().read_unaligned()) };
    }
}

/// An array of a number, without dimensions.
fn one(py: Python<'_>, (dtype, number): (DType, Number)) -> Served<'_> {
    match number.constant(dtype) {
        Some(value) => filled(py, current(py)?, Arc::default(), value),
        None => Ok(None),
    }
}

/// Is it a list or a tuple, and of no other class?
pub fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>()
}

/// An array of the numbers in a list, or of the arrays in it, which have one shape and type.
fn listed<'py>(call: &Call<'_, 'py>, source: &Bound<'py, PyAny>) -> Served<'py> {
    match numbers(current(call.py())?, source, None) {
        None => crate::join::stack(call),
        made => Ok(made.map(Bound::into_any)),
    }
}

/// An array of the numbers in a list, in a type that is given, too.
fn typed<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((source, Some(dtype))) = call.pair(intern!(call.py(), "dtype")) else { return Ok(None) };
    let Some(dtype) = element_type(dtype) else { return Ok(None) };
    Ok(numbers(current(call.py())?, source, Some(dtype)).map(Bound::into_any))
}

/// A copy of an array, or an array of the numbers in lists.
pub fn array<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    if call.arguments.all().len() == 2 {
        return typed(call);
    }
    let Some([source]) = call.plain() else { return Ok(None) };
    if is_sequence(source) {
        return listed(call, source);
    }
    if let Some(copy) = copied(current(call.py())?, source) {
        return Ok(Some(copy.into_any()));
    }
    if let Some(number) = number(source) {
        return one(call.py(), number);
    }
    copy(call)
}

/// An array as it is, or an array of the numbers in lists.
pub fn asarray<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    if call.arguments.all().len() == 2 {
        return typed(call);
    }
    let Some([source]) = call.plain() else { return Ok(None) };
    if is_sequence(source) {
        return listed(call, source);
    }
    let is_array = source.cast_exact::<Array>().is_ok_and(|array| !array.borrow().is_scalar());
    Ok(is_array.then(|| source.clone()))
}

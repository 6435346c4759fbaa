//! `array` and `asarray`: copies, and arrays of the numbers in lists and tuples, also nested ones, or of the arrays in a list, whose data
//! is at hand at once.

use crate::array::Array;
use crate::call::{Call, Served};
use crate::context::current;
use crate::create::{copy, filled, shaped};
use crate::foreign::copied;
use crate::numpy_types::{element_type, scalar_type};
use crate::shared_view::contiguous;
use crate::text::intern;
use bh_bytecode::{Constant, DType};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};
use std::sync::Arc;

/// The most numbers that are looked at, and the deepest nesting.
const MOST: usize = 1024;
const DEEPEST: usize = 4;

#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Float(f64),
}

/// What was found so far.
#[derive(Default)]
struct Found {
    numbers: Vec<Number>,
    /// The lengths of the sequences at each depth.
    shape: Vec<i64>,
    /// At which depth numbers are.
    rank: usize,
}

/// A number that makes an array of 64-bit integers or floats.
fn number(object: &Bound<'_, PyAny>) -> Option<Number> {
    if object.is_exact_instance_of::<PyFloat>() {
        return object.extract().ok().map(Number::Float);
    }
    if object.is_exact_instance_of::<PyInt>() {
        return object.extract().ok().map(Number::Whole);
    }
    match scalar_type(object)? {
        DType::F64 => object.extract().ok().map(Number::Float),
        DType::I64 => object.extract().ok().map(Number::Whole),
        _ => None,
    }
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
                Some(number) if self.numbers.is_empty() || self.rank == depth + 1 => {
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

/// An array of the numbers in a list or tuple, as floats or whole numbers of 64 bits: of `dtype`, or of the type that they have.
fn numbers<'py>(source: &Bound<'py, PyAny>, dtype: Option<DType>) -> Served<'py> {
    let mut found = Found::default();
    if found.sequence(source, 0).is_none() {
        return Ok(None);
    }
    let Ok(view) = contiguous(&found.shape) else { return Ok(None) };
    let are_whole = found.numbers.iter().all(|number| matches!(number, Number::Whole(_)));
    let whole = match dtype {
        None => are_whole,
        Some(DType::F64) => false,
        Some(DType::I64) if are_whole => true,
        Some(_) => return Ok(None),
    };
    let bits = found.numbers.into_iter().map(|number| match number {
        Number::Whole(number) if whole => number.cast_unsigned(),
        Number::Whole(number) => (number as f64).to_bits(),
        Number::Float(number) => number.to_bits(),
    });
    shaped(source.py(), if whole { DType::I64 } else { DType::F64 }, view, bits)
}

/// An array of a number, without dimensions.
fn one(py: Python<'_>, number: Number) -> Served<'_> {
    let value = match number {
        Number::Whole(number) => Constant::from_value(number),
        Number::Float(number) => Constant::from_value(number),
    };
    filled(py, current(py)?, Arc::default(), value)
}

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>()
}

/// An array of the numbers in a list, or of the arrays in it, which have one shape and type.
fn listed<'py>(call: &Call<'_, 'py>, source: &Bound<'py, PyAny>) -> Served<'py> {
    match numbers(source, None)? {
        None => crate::join::stack(call),
        made => Ok(made),
    }
}

/// An array of the numbers in a list, in a type that is given, too.
fn typed<'py>(call: &Call<'_, 'py>) -> Served<'py> {
    let Some((source, Some(dtype))) = call.pair(intern!(call.py(), "dtype")) else { return Ok(None) };
    match element_type(dtype) {
        Some(dtype) if is_sequence(source) => numbers(source, Some(dtype)),
        _ => Ok(None),
    }
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

//! Operands beside an array in an operation: arrays, numbers of Python, scalars of NumPy.

use crate::array::Array;
use crate::numpy_types::scalar_type;
use bh_bytecode::{Complex, Constant, DType};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use std::sync::OnceLock;

/// Codes of operand types in tables of operations: those of [`DType`], then Python's numbers, whose type gives way.
pub mod code {
    /// A Python int.
    pub const INT: u8 = 13;
    /// A Python float.
    pub const FLOAT: u8 = 14;
    /// A Python complex.
    pub const COMPLEX: u8 = 15;
}

/// A number beside an array.
#[derive(Clone, Copy)]
pub enum Number {
    Bool(bool),
    /// Between the least i64 and the largest u64.
    Int(i128),
    Float(f64),
    Complex(f64, f64),
    /// A number that a traced function was given, or has made of such ones: its value, whether that is a whole number, and by
    /// which mark the constant that it becomes is known.
    Traced(f64, bool, u16),
}

impl Number {
    /// As [`Number::constant`], for assignments: a float beyond those of the type is NumPy's to warn of.
    pub fn assigned(self, dtype: DType) -> Option<Constant> {
        let beyond = |value: f64| value.is_finite() && value.abs() > f64::from(f32::MAX);
        let lost = match self {
            Number::Float(value) => beyond(value),
            Number::Complex(re, im) => beyond(re) || beyond(im),
            Number::Traced(value, ..) => beyond(value),
            Number::Bool(_) | Number::Int(_) => false,
        };
        if lost && matches!(dtype, DType::F32 | DType::C64) { None } else { self.constant(dtype) }
    }

    /// The number as a constant of a type; `None` if the type cannot hold it.
    pub fn constant(self, dtype: DType) -> Option<Constant> {
        match self {
            Number::Float(value) if dtype == DType::F64 => Some(Constant::from_value(value)),
            Number::Bool(value) => Some(Constant::from_value(u8::from(value)).cast(dtype)),
            Number::Float(value) if dtype.is_float() || dtype.is_complex() => {
                Some(Constant::from_value(value).cast(dtype))
            }
            Number::Float(_) => None,
            Number::Complex(re, im) if dtype.is_complex() => {
                Some(Constant::from_value(Complex::new(re, im)).cast(dtype))
            }
            Number::Complex(..) => None,
            Number::Traced(value, is_whole, mark) => {
                let plain = if is_whole { Number::Int(value as i128) } else { Number::Float(value) };
                let [low, high] = mark.to_ne_bytes();
                let reserved = [low, high, 0, 0, 0, 0, 0];
                plain.constant(dtype).map(|constant| Constant { reserved, ..constant })
            }
            Number::Int(value) if dtype.is_int() => {
                let constant = match i64::try_from(value) {
                    Ok(value) => Constant::from_value(value).cast(dtype),
                    Err(_) => Constant::from_value(u64::try_from(value).ok()?).cast(dtype),
                };
                let back = if dtype == DType::U64 {
                    i128::from(constant.to::<u64>())
                } else {
                    i128::from(constant.to::<i64>())
                };
                (back == value).then_some(constant)
            }
            Number::Int(_) if dtype == DType::Bool => None,
            Number::Int(value) => Some(Constant::from_value(value as f64).cast(dtype)),
        }
    }
}

/// An operand that needs no conversion in Python.
pub enum Operand<'a> {
    Array(&'a Array),
    Number(Number),
}

impl<'a> Operand<'a> {
    /// The array, if it is one.
    pub fn array(&self) -> Option<&'a Array> {
        if let Operand::Array(array) = self { Some(array) } else { None }
    }
}

/// The operand and its code; `None` for what needs Python's help.
#[inline]
pub fn classify<'a>(object: &'a Bound<'_, PyAny>) -> Option<(u8, Operand<'a>)> {
    if let Ok(array) = object.cast_exact::<Array>() {
        let array = array.get();
        array.refresh(object.py()).ok()?;
        return Some((array.dtype as u8, Operand::Array(array)));
    }
    if object.is_exact_instance_of::<PyFloat>() {
        return Some((code::FLOAT, Operand::Number(Number::Float(object.extract().ok()?))));
    }
    if object.is_exact_instance_of::<PyInt>() {
        return Some((code::INT, Operand::Number(Number::Int(whole(object)?))));
    }
    if object.is_exact_instance_of::<PyBool>() {
        return Some((DType::Bool as u8, Operand::Number(Number::Bool(object.is_truthy().ok()?))));
    }
    if object.is_exact_instance_of::<PyComplex>() {
        return Some((code::COMPLEX, Operand::Number(complex(object)?)));
    }
    let Some(dtype) = scalar_type(object) else {
        return traced(object);
    };
    Some((dtype as u8, Operand::Number(scalar(object, dtype)?)))
}

/// Is it a number of Python, or a scalar of NumPy of a type that arrays have?
#[inline]
pub fn is_number(object: &Bound<'_, PyAny>) -> bool {
    // Most scalars of NumPy are of classes derived from Python's.
    object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyComplex>()
        || scalar_type(object).is_some()
}

/// The class of what stands for numbers in a traced function.
static SYMBOL: OnceLock<Py<PyAny>> = OnceLock::new();

/// Tells the class of what stands for numbers in a traced function.
#[pyfunction]
pub fn set_symbol(class: Py<PyAny>) {
    // A second call, of a reloaded package, changes nothing.
    let _ = SYMBOL.set(class);
}

/// The operand for a number's symbol in a traced function.
#[cold]
fn traced<'py>(object: &Bound<'py, PyAny>) -> Option<(u8, Operand<'py>)> {
    if !SYMBOL.get()?.is(object.get_type()) {
        return None;
    }
    let (value, is_whole) =
        (object.getattr("value").ok()?.extract().ok()?, object.getattr("is_whole").ok()?.is_truthy().ok()?);
    let (code, mark) = (object.getattr("code").ok()?.extract().ok()?, object.getattr("mark").ok()?.extract().ok()?);
    Some((code, Operand::Number(Number::Traced(value, is_whole, mark))))
}

/// A scalar of NumPy of this type.
fn scalar(object: &Bound<'_, PyAny>, dtype: DType) -> Option<Number> {
    match dtype {
        DType::Bool => Some(Number::Bool(object.is_truthy().ok()?)),
        DType::F32 | DType::F64 => Some(Number::Float(object.extract().ok()?)),
        DType::C64 | DType::C128 => complex(object),
        _ => whole(object).map(Number::Int),
    }
}

fn whole(object: &Bound<'_, PyAny>) -> Option<i128> {
    match object.extract::<i64>() {
        Ok(value) => Some(i128::from(value)),
        Err(_) => object.extract::<u64>().ok().map(i128::from),
    }
}

fn complex(object: &Bound<'_, PyAny>) -> Option<Number> {
    let part = |name| object.getattr(name).ok()?.extract::<f64>().ok();
    Some(Number::Complex(part("real")?, part("imag")?))
}

/// A number of any of these kinds.
pub fn number(object: &Bound<'_, PyAny>) -> Option<Number> {
    match classify(object) {
        Some((_, Operand::Number(number))) => Some(number),
        _ => None,
    }
}

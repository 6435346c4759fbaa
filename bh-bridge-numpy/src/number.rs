//! Arithmetic operators of arrays.

use crate::array::Array;
use crate::by_class;
use crate::foreign;
use crate::scalar::give;
use crate::ufunc::Ufunc;
use bh_bytecode::DType;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyFloat, PyInt};
use std::sync::OnceLock;

/// The functions behind the operators, of which others are composed.
pub struct Operators {
    pub add: Py<Ufunc>,
    pub subtract: Py<Ufunc>,
    pub multiply: Py<Ufunc>,
    pub divide: Py<Ufunc>,
    floor_divide: Py<Ufunc>,
    remainder: Py<Ufunc>,
    power: Py<Ufunc>,
    left_shift: Py<Ufunc>,
    right_shift: Py<Ufunc>,
    bitwise_and: Py<Ufunc>,
    bitwise_or: Py<Ufunc>,
    bitwise_xor: Py<Ufunc>,
    less: Py<Ufunc>,
    less_equal: Py<Ufunc>,
    pub equal: Py<Ufunc>,
    not_equal: Py<Ufunc>,
    greater: Py<Ufunc>,
    greater_equal: Py<Ufunc>,
    pub negative: Py<Ufunc>,
    positive: Py<Ufunc>,
    pub absolute: Py<Ufunc>,
    invert: Py<Ufunc>,
    sqrt: Py<Ufunc>,
    reciprocal: Py<Ufunc>,
    square: Py<Ufunc>,
    pub exp: Py<Ufunc>,
    pub exp2: Py<Ufunc>,
    pub log1p: Py<Ufunc>,
    pub maximum: Py<Ufunc>,
    minimum: Py<Ufunc>,
    divmod: Py<PyAny>,
    matmul: Py<PyAny>,
    /// `f(ufunc, a, b)`: the result, or NotImplemented where the other operand is to say what happens.
    binary: Py<PyAny>,
    /// `f(ufunc, a, b)`: into a, or a new array where a cannot be changed.
    inplace: Py<PyAny>,
}

static OPERATORS: OnceLock<Operators> = OnceLock::new();

pub fn operators() -> PyResult<&'static Operators> {
    OPERATORS.get().ok_or_else(|| PyRuntimeError::new_err("the package bh is not imported"))
}

/// Tells the functions behind the operators.
#[pyfunction]
#[pyo3(signature = (**functions))]
fn set_operators(functions: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let functions = functions.ok_or_else(|| PyRuntimeError::new_err("no functions are given"))?;
    let object = |name: &str| -> PyResult<Py<PyAny>> { Ok(functions.as_any().get_item(name)?.unbind()) };
    let ufunc =
        |name: &str| -> PyResult<Py<Ufunc>> { Ok(functions.as_any().get_item(name)?.cast_into::<Ufunc>()?.unbind()) };
    let all = Operators {
        add: ufunc("add")?,
        subtract: ufunc("subtract")?,
        multiply: ufunc("multiply")?,
        divide: ufunc("divide")?,
        floor_divide: ufunc("floor_divide")?,
        remainder: ufunc("remainder")?,
        power: ufunc("power")?,
        left_shift: ufunc("left_shift")?,
        right_shift: ufunc("right_shift")?,
        bitwise_and: ufunc("bitwise_and")?,
        bitwise_or: ufunc("bitwise_or")?,
        bitwise_xor: ufunc("bitwise_xor")?,
        less: ufunc("less")?,
        less_equal: ufunc("less_equal")?,
        equal: ufunc("equal")?,
        not_equal: ufunc("not_equal")?,
        greater: ufunc("greater")?,
        greater_equal: ufunc("greater_equal")?,
        negative: ufunc("negative")?,
        positive: ufunc("positive")?,
        absolute: ufunc("absolute")?,
        invert: ufunc("invert")?,
        sqrt: ufunc("sqrt")?,
        reciprocal: ufunc("reciprocal")?,
        square: ufunc("square")?,
        exp: ufunc("exp")?,
        exp2: ufunc("exp2")?,
        log1p: ufunc("log1p")?,
        maximum: ufunc("maximum")?,
        minimum: ufunc("minimum")?,
        divmod: object("divmod")?,
        matmul: object("matmul")?,
        binary: object("binary")?,
        inplace: object("inplace")?,
    };
    // A second call, of a reloaded package, changes nothing.
    let _ = OPERATORS.set(all);
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_operators, module)?)
}

/// The larger and the smaller of two elements.
pub fn extremes() -> PyResult<[&'static Ufunc; 2]> {
    let all = operators()?;
    Ok([all.maximum.get(), all.minimum.get()])
}

type Any<'py> = Bound<'py, PyAny>;

#[inline]
fn unary<'py>(ufunc: &Py<Ufunc>, a: &Bound<'py, Array>) -> PyResult<Any<'py>> {
    let py = a.py();
    match ufunc.get().call(py, [a.as_any()])? {
        Some(result) => give(py, result),
        None => ufunc.bind(py).call1((a,)),
    }
}

#[inline]
fn binary<'py>(ufunc: &Py<Ufunc>, a: &Any<'py>, b: &Any<'py>) -> PyResult<Any<'py>> {
    let py = a.py();
    if let Some(result) = ufunc.get().call(py, [a, b])? {
        return give(py, result);
    }
    if let Some([a, b]) = foreign::pair(a, b)
        && let Some(result) = ufunc.get().call(py, [&a, &b])?
    {
        return give(py, result);
    }
    if let Some(result) = crate::by_numpy::of_few(py, ufunc.get(), [a, b])? {
        return Ok(result);
    }
    match by_class::operator(ufunc.get(), a, b)? {
        Some(result) => Ok(result),
        None => operators()?.binary.bind(py).call1((ufunc, a, b)),
    }
}

#[inline]
fn inplace<'py>(ufunc: &Py<Ufunc>, a: &Bound<'py, Array>, b: &Any<'py>) -> PyResult<Any<'py>> {
    let py = a.py();
    let out = a.get();
    if out.is_scalar() {
        return binary(ufunc, a.as_any(), b);
    }
    let into = |b: &Any<'py>| ufunc.get().call_into(py, [a.as_any(), b], out);
    if out.is_writeable() && !out.warns() {
        let copy = |b: &Any<'py>| foreign::copied(out.context, b).map(Bound::into_any);
        if into(b)? || copy(b).map_or(Ok(false), |copy| into(&copy))? {
            return Ok(a.clone().into_any());
        }
    }
    operators()?.inplace.bind(py).call1((ufunc, a, b))
}

// Methods that begin with `_inplace` get the special names of operators in place from Python, as they may return another
// object than the one they are called on.

#[pymethods]
impl Array {
    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.add, slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.add, other, slf.as_any())
    }

    fn _inplace_add<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.add, slf, other)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.subtract, slf.as_any(), other)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.subtract, other, slf.as_any())
    }

    fn _inplace_sub<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.subtract, slf, other)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.multiply, slf.as_any(), other)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.multiply, other, slf.as_any())
    }

    fn _inplace_mul<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.multiply, slf, other)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.divide, slf.as_any(), other)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.divide, other, slf.as_any())
    }

    fn _inplace_truediv<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.divide, slf, other)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.floor_divide, slf.as_any(), other)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.floor_divide, other, slf.as_any())
    }

    fn _inplace_floordiv<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.floor_divide, slf, other)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.remainder, slf.as_any(), other)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.remainder, other, slf.as_any())
    }

    fn _inplace_mod<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.remainder, slf, other)
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.left_shift, slf.as_any(), other)
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.left_shift, other, slf.as_any())
    }

    fn _inplace_lshift<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.left_shift, slf, other)
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.right_shift, slf.as_any(), other)
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.right_shift, other, slf.as_any())
    }

    fn _inplace_rshift<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.right_shift, slf, other)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.bitwise_and, slf.as_any(), other)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.bitwise_and, other, slf.as_any())
    }

    fn _inplace_and<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.bitwise_and, slf, other)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.bitwise_or, slf.as_any(), other)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.bitwise_or, other, slf.as_any())
    }

    fn _inplace_or<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.bitwise_or, slf, other)
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.bitwise_xor, slf.as_any(), other)
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        binary(&operators()?.bitwise_xor, other, slf.as_any())
    }

    fn _inplace_xor<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        inplace(&operators()?.bitwise_xor, slf, other)
    }
}

#[pymethods]
impl Array {
    fn __pow__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>, modulo: &Any<'py>) -> PyResult<Any<'py>> {
        if !modulo.is_none() {
            return Ok(slf.py().NotImplemented().into_bound(slf.py()));
        }
        match power_of_one(slf.get(), other)? {
            Some(function) => unary(function, slf),
            None => binary(&operators()?.power, slf.as_any(), other),
        }
    }

    fn __rpow__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>, modulo: &Any<'py>) -> PyResult<Any<'py>> {
        if !modulo.is_none() {
            return Ok(slf.py().NotImplemented().into_bound(slf.py()));
        }
        binary(&operators()?.power, other, slf.as_any())
    }

    fn _inplace_pow<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        let (py, out) = (slf.py(), slf.get());
        if let Some(function) = power_of_one(out, other)? {
            let plain = out.is_writeable() && !out.warns();
            if !(plain && function.get().call_into(py, [slf.as_any()], out)?) {
                function.bind(py).call((slf,), Some(&[("out", slf)].into_py_dict(py)?))?;
            }
            return Ok(slf.clone().into_any());
        }
        inplace(&operators()?.power, slf, other)
    }

    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operators()?.divmod.bind(slf.py()).call1((slf, other))
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operators()?.divmod.bind(slf.py()).call1((other, slf))
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        product(slf.as_any(), other)
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        product(other, slf.as_any())
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        unary(&operators()?.negative, slf)
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        unary(&operators()?.positive, slf)
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        unary(&operators()?.absolute, slf)
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        unary(&operators()?.invert, slf)
    }

    fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>, compare: CompareOp) -> PyResult<Any<'py>> {
        let all = operators()?;
        let ufunc = match compare {
            CompareOp::Lt => &all.less,
            CompareOp::Le => &all.less_equal,
            CompareOp::Eq => &all.equal,
            CompareOp::Ne => &all.not_equal,
            CompareOp::Gt => &all.greater,
            CompareOp::Ge => &all.greater_equal,
        };
        binary(ufunc, slf.as_any(), other)
    }

    /// The hash of a scalar's value; arrays have none.
    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
        let array = slf.get();
        if !array.is_scalar() {
            return Err(pyo3::exceptions::PyTypeError::new_err("unhashable type: 'ndarray'"));
        }
        crate::transfer::item(slf.py(), array)?.bind(slf.py()).hash()
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let array = slf.get();
        let text = match array.len() {
            1 => return crate::transfer::item(slf.py(), array)?.bind(slf.py()).is_truthy(),
            0 => {
                "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
            }
            _ => "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
        };
        Err(pyo3::exceptions::PyValueError::new_err(text))
    }

    fn __float__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        python_number(slf, "float")
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        python_number(slf, "int")
    }

    fn __complex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Any<'py>> {
        python_number(slf, "complex")
    }

    fn __index__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let array = slf.get();
        if array.view.rank() != 0 || !array.dtype.is_int() {
            return Err(pyo3::exceptions::PyTypeError::new_err(no_index(array)));
        }
        crate::transfer::item(slf.py(), array)
    }
}

/// The function of one operand that NumPy calls for a power of floats or complex numbers: the square root for Python's number
/// 0.5, the reciprocal for -1, and the square for 2, which warnings name.
fn power_of_one(array: &Array, exponent: &Any<'_>) -> PyResult<Option<&'static Py<Ufunc>>> {
    let is_whole = exponent.is_exact_instance_of::<PyInt>();
    let inexact = array.dtype.is_float() || array.dtype.is_complex();
    if !inexact || array.is_scalar() || !(is_whole || exponent.is_exact_instance_of::<PyFloat>()) {
        return Ok(None);
    }
    let operators = operators()?;
    // Only operations that run where they are called warn.
    let is_square = || array.dtype.is_complex() || crate::warning::is_little(array) && array.context.recorder.is_open();
    Ok(match exponent.extract::<f64>() {
        Ok(0.5) => Some(&operators.sqrt),
        Ok(-1.0) if is_whole => Some(&operators.reciprocal),
        Ok(2.0) if is_whole && is_square() => Some(&operators.square),
        _ => None,
    })
}

fn product<'py>(a: &Any<'py>, b: &Any<'py>) -> PyResult<Any<'py>> {
    let py = a.py();
    match crate::product::product(py, "matmul", a, b)? {
        Some(result) => give(py, result),
        None => operators()?.matmul.bind(py).call1((a, b)),
    }
}

/// Why an array is no index.
fn no_index(array: &Array) -> String {
    match (array.is_scalar(), array.dtype) {
        (false, _) => "only integer scalar arrays can be converted to a scalar index".to_owned(),
        // Functions in C ask for an integer, too, where they take floats.
        (true, DType::F64) => "'numpy.float64' object cannot be interpreted as an integer; \
            `float(x)` makes a float of a result that is not computed yet"
            .to_owned(),
        (true, dtype) => format!("'numpy.{}' object cannot be interpreted as an integer", dtype.numpy_name()),
    }
}

/// The one element as a Python number of this type.
fn python_number<'py>(array: &Bound<'py, Array>, name: &str) -> PyResult<Any<'py>> {
    let py = array.py();
    let this = array.get();
    if this.view.rank() > 0 {
        let text = "only 0-dimensional arrays can be converted to Python scalars";
        return Err(pyo3::exceptions::PyTypeError::new_err(text));
    }
    let mut item = crate::transfer::item(py, this)?;
    if this.dtype.is_complex() && name != "complex" {
        // As NumPy's do, complex numbers become real ones.
        py.import("bh._array.conversion")?.call_method0("warn_of_lost_parts")?;
        item = item.getattr(py, "real")?;
    }
    py.import("builtins")?.getattr(name)?.call1((item,))
}

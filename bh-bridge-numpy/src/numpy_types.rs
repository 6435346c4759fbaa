//! NumPy's objects: types of elements, classes of scalars and arrays.

use bh_bytecode::DType;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};
use std::sync::OnceLock;

/// NumPy's objects for the element types, in the order of their codes.
struct NumpyTypes {
    dtypes: Vec<Py<PyAny>>,
    /// Its second names of integers of 64 bits: with a sign, and without one.
    long_long: [Py<PyAny>; 2],
    scalars: Vec<Py<PyAny>>,
    /// NumPy's marker for an argument that is not given (`numpy._NoValue`).
    no_value: Py<PyAny>,
    array: Py<PyType>,
    memmap: Py<PyType>,
    /// The class of types of elements.
    dtype: Py<PyType>,
}

static NUMPY: OnceLock<NumpyTypes> = OnceLock::new();

fn numpy(py: Python<'_>) -> PyResult<&'static NumpyTypes> {
    if let Some(types) = NUMPY.get() {
        return Ok(types);
    }
    let module = py.import("numpy")?;
    let (mut dtypes, mut scalars) = (Vec::new(), Vec::new());
    for dtype in DType::ALL {
        let object = module.getattr("dtype")?.call1((dtype.numpy_name(),))?;
        scalars.push(object.getattr("type")?.unbind());
        dtypes.push(object.unbind());
    }
    let named = |name: &str| -> PyResult<Py<PyAny>> { Ok(module.getattr("dtype")?.call1((name,))?.unbind()) };
    let long_long = [named("q")?, named("Q")?];
    let no_value = module.getattr("_NoValue")?.unbind();
    let class = |name: &str| -> PyResult<Py<PyType>> { Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind()) };
    let (array, memmap, dtype) = (class("ndarray")?, class("memmap")?, class("dtype")?);
    Ok(NUMPY.get_or_init(|| NumpyTypes { dtypes, long_long, scalars, no_value, array, memmap, dtype }))
}

/// NumPy's object for an element type.
pub fn numpy_dtype(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    Ok(numpy(py)?.dtypes[dtype as usize].bind(py).clone())
}

/// The element type of a dtype of NumPy's, if it is bh's object for that.
pub fn of_dtype(py: Python<'_>, object: *mut ffi::PyObject) -> Option<DType> {
    let dtypes = &numpy(py).ok()?.dtypes;
    DType::ALL.into_iter().find(|&dtype| dtypes[dtype as usize].as_ptr() == object)
}

/// NumPy's second object for integers of 64 bits.
pub fn long_long(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    Ok(numpy(py)?.long_long[usize::from(dtype == DType::U64)].bind(py).clone())
}

/// NumPy's class of scalars of an element type.
pub fn numpy_scalar(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    Ok(numpy(py)?.scalars[dtype as usize].bind(py).clone())
}

/// The element type that a text names, of those that mean the same everywhere: `float64`, `f8`, `float`.
fn type_named(name: &str) -> Option<DType> {
    match name {
        "?" => return Some(DType::Bool),
        "float" => return Some(DType::F64),
        "int" => return Some(DType::I64),
        _ => (),
    }
    let (kind, bytes) = name.split_at_checked(1)?;
    match bytes.parse::<u8>() {
        // Short names count bytes, where bh's count bits.
        Ok(bytes) => DType::from_name(&format!("{kind}{}", u32::from(bytes) * 8)),
        Err(_) => DType::ALL.into_iter().find(|dtype| dtype.numpy_name() == name),
    }
}

/// The element type that one of NumPy's dtypes or classes of scalars, a class of numbers of Python, or a text names.
pub fn element_type(object: &Bound<'_, PyAny>) -> Option<DType> {
    let py = object.py();
    let names = |kind: Bound<'_, PyType>| object.is(&kind);
    match () {
        () if names(py.get_type::<PyFloat>()) => return Some(DType::F64),
        () if names(py.get_type::<PyInt>()) => return Some(DType::I64),
        () if names(py.get_type::<PyBool>()) => return Some(DType::Bool),
        () if names(py.get_type::<PyComplex>()) => return Some(DType::C128),
        () => (),
    }
    if let Ok(text) = object.cast_exact::<PyString>() {
        return type_named(text.to_str().ok()?);
    }
    let types = numpy(py).ok()?;
    let same = |dtype: DType| object.is(&types.scalars[dtype as usize]) || object.is(&types.dtypes[dtype as usize]);
    DType::ALL.into_iter().find(|&dtype| same(dtype))
}

/// NumPy's class of arrays.
pub fn numpy_array(py: Python<'_>) -> PyResult<&Py<PyType>> {
    Ok(&numpy(py)?.array)
}

/// Is it an instance of a class derived from NumPy's arrays, which decides what functions do?
pub fn is_derived(object: &Bound<'_, PyAny>) -> bool {
    let Ok(known) = numpy(object.py()) else { return false };
    let class = object.get_type();
    !class.is(&known.array)
        && !class.is(&known.memmap)
        && object.is_instance(known.array.bind(object.py())).unwrap_or(false)
}

/// Is it one of NumPy's types of elements, of any kind?
pub fn is_dtype(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    numpy(py).is_ok_and(|known| object.is_instance(known.dtype.bind(py)).unwrap_or(false))
}

/// NumPy's object for an argument that is not given.
pub fn no_value(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    Ok(&numpy(py)?.no_value)
}

/// The element type of a scalar of NumPy.
pub fn scalar_type(object: &Bound<'_, PyAny>) -> Option<DType> {
    let (scalars, kind) = (&numpy(object.py()).ok()?.scalars, object.get_type());
    DType::ALL.into_iter().find(|&dtype| scalars[dtype as usize].is(&kind))
}

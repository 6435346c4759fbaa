//! Data in and out: elements as Python objects, and copies from and to the buffers of other libraries.

use crate::array::Array;
use crate::context::{self, Shared, Stack};
use crate::error::{exception, reading, value_error};
use crate::interrupt::detached;
use crate::shared_view::contiguous;
use bh_bytecode::{Constant, DType, Truth, View, c128};
use bh_core::strided::{self, Side};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};

/// A pointer that is used while the interpreter is detached.
struct SendPtr(*mut u8);

// SAFETY: only the thread that waits for the transfer uses it.
unsafe impl Send for SendPtr {}
// SAFETY: as above.
unsafe impl Sync for SendPtr {}

impl SendPtr {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(item_of, module)?)?;
    module.add_function(wrap_pyfunction!(copy_buffer, module)?)?;
    module.add_function(wrap_pyfunction!(write_buffer, module)?)?;
    module.add_function(wrap_pyfunction!(read_buffer, module)?)
}

/// The one element as a Python number. Waits for it.
pub fn item(py: Python<'_>, array: &Array) -> PyResult<Py<PyAny>> {
    if array.len() != 1 {
        return Err(PyValueError::new_err("can only convert an array of size 1 to a Python scalar"));
    }
    python_number(py, value(py, array)?)
}

/// The one element of an array that has one. Waits for it, unless its value is computed.
pub fn value(py: Python<'_>, array: &Array) -> PyResult<Constant> {
    let recorder = &array.context.recorder;
    if let Some(value) = array.here().and_then(|here| recorder.element_here(here, array.view.start())) {
        return Ok(value);
    }
    let id = array.current(py)?;
    if let Some(value) = recorder.value_of(id).map_err(exception)? {
        return Ok(value);
    }
    let mut bytes = [0u8; 16];
    let target = SendPtr(bytes.as_mut_ptr());
    // SAFETY: an element has at most 16 bytes.
    reading(py, |patience| unsafe { recorder.read_with(id, target.get(), None, patience) })?;
    Ok(Constant::from_bytes(array.dtype, &bytes))
}

/// A constant as a Python number.
pub fn python_number(py: Python<'_>, value: Constant) -> PyResult<Py<PyAny>> {
    Ok(match value.dtype() {
        DType::Bool => PyBool::new(py, value.to::<Truth>().get()).to_owned().into_any().unbind(),
        DType::F32 | DType::F64 => PyFloat::new(py, value.to::<f64>()).into_any().unbind(),
        DType::C64 | DType::C128 => {
            let value = value.to::<c128>();
            PyComplex::from_doubles(py, value.re, value.im).into_any().unbind()
        }
        DType::U64 => value.to::<u64>().into_pyobject(py)?.into_any().unbind(),
        _ => PyInt::new(py, value.to::<i64>()).into_any().unbind(),
    })
}

/// The element of an array of one element, as a Python number.
#[pyfunction]
fn item_of(py: Python<'_>, array: &Bound<'_, Array>) -> PyResult<Py<PyAny>> {
    item(py, &array.borrow())
}

/// The memory of a buffer whose elements are numbers of the size of a type: address and strides in bytes.
fn memory(buffer: &PyUntypedBuffer, dtype: DType, shape: &[i64]) -> PyResult<(SendPtr, Vec<i64>)> {
    if buffer.item_size() != dtype.size() {
        let text = format!("the buffer's elements have {} bytes, not {}", buffer.item_size(), dtype.size());
        return Err(PyTypeError::new_err(text));
    }
    // References to Python's objects would be read, and overwritten, as numbers.
    if buffer.format().to_bytes().contains(&b'O') {
        return Err(PyTypeError::new_err("the buffer's elements are Python objects, not numbers"));
    }
    if buffer.suboffsets().is_some_and(|offsets| offsets.iter().any(|&offset| offset >= 0)) {
        return Err(PyValueError::new_err("the buffer's rows lie behind pointers, and not at strides"));
    }
    let extents: Vec<i64> = buffer.shape().iter().map(|&extent| extent as i64).collect();
    // Python's buffers without dimensions come as one of one element.
    if shape.is_empty() && extents == [1] {
        return Ok((SendPtr(buffer.buf_ptr().cast()), Vec::new()));
    }
    if extents != shape {
        return Err(PyValueError::new_err(format!("the buffer has shape {extents:?}, not {shape:?}")));
    }
    let strides = buffer.strides().iter().map(|&stride| stride as i64).collect();
    Ok((SendPtr(buffer.buf_ptr().cast()), strides))
}

/// A new array with a copy of a buffer, whose elements are of the type with the number `code`; without dimensions if
/// `single`, in which case the buffer has one element.
#[pyfunction]
#[pyo3(signature = (source, code, stack=None, single=false))]
fn copy_buffer(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    code: u8,
    stack: Option<&Stack>,
    single: bool,
) -> PyResult<Array> {
    let dtype =
        DType::from_code(code).ok_or_else(|| PyTypeError::new_err(format!("there is no element type {code}")))?;
    let buffer = PyUntypedBuffer::get(source)?;
    let extents = buffer.shape().iter().map(|&extent| extent as i64);
    let shape: Vec<i64> = if single { Vec::new() } else { extents.collect() };
    let context = match stack {
        Some(stack) => stack.context(),
        None => context::current(py)?,
    };
    if let Some(array) = little_copy(context, dtype, &shape, &buffer)? {
        return Ok(array);
    }
    let array = Array::empty(context, dtype, &shape)?;
    write(py, &array, &buffer)?;
    Ok(array)
}

/// A new little array with a copy of a buffer. `None` if there can be none.
fn little_copy(context: Shared, dtype: DType, shape: &[i64], buffer: &PyUntypedBuffer) -> PyResult<Option<Array>> {
    let (from, strides) = memory(buffer, dtype, shape)?;
    let view = contiguous(shape).map_err(value_error)?;
    let Some(mut hand) = context.recorder.hand().filter(|_| crate::shortcut::taken()) else { return Ok(None) };
    let Some((made, to)) = hand.make(dtype, shape, &[]) else { return Ok(None) };
    if !view.is_empty() {
        let own = byte_stride(&view, dtype);
        // SAFETY: the new array is nobody else's, and the buffer is held; both have the elements at their strides.
        unsafe {
            strided::copy(dtype, shape, Side { data: to, stride: &own }, Side { data: from.get(), stride: &strides })
        };
    }
    drop(hand);
    Ok(Some(Array::new(context, made, dtype, view)))
}

/// The strides of a view in bytes.
pub fn byte_stride(view: &View, dtype: DType) -> Vec<i64> {
    view.stride().iter().map(|stride| stride * dtype.size() as i64).collect()
}

/// The address of the first element of a little array, whose elements nobody else uses while the caller is attached to Python.
fn little_data(array: &Array) -> Option<*mut u8> {
    let here = array.here().filter(|_| crate::shortcut::taken())?;
    array.context.recorder.look_here(here, array.view.start())
}

/// Overwrites an array with the elements of a buffer of the same type and shape.
#[pyfunction]
fn write_buffer(py: Python<'_>, array: &Bound<'_, Array>, source: &Bound<'_, PyAny>) -> PyResult<()> {
    write(py, &array.borrow(), &PyUntypedBuffer::get(source)?)
}

fn write(py: Python<'_>, array: &Array, buffer: &PyUntypedBuffer) -> PyResult<()> {
    let (data, strides) = memory(buffer, array.dtype, array.view.shape())?;
    if array.len() == 0 {
        return Ok(());
    }
    if let Some(to) = little_data(array).filter(|_| array.view.is_injective()) {
        let own = byte_stride(&array.view, array.dtype);
        let from = Side { data: data.get(), stride: &strides };
        // SAFETY: both have the elements at their strides; the buffer is held until this returns.
        unsafe { strided::copy(array.dtype, array.view.shape(), Side { data: to, stride: &own }, from) };
        return Ok(());
    }
    let (recorder, id) = (&array.context.recorder, array.current(py)?);
    // SAFETY: the buffer is held until this returns, and its numbers, of the shape and the element size of the array, lie at the
    // strides; Python leaves it to the program that nothing else writes to a buffer meanwhile.
    detached(py, || unsafe { recorder.write(id, data.get(), Some(&strides)) }).map_err(exception)?;
    array.written(py)
}

/// Copies an array into a buffer of the same type and shape. Waits for the elements.
#[pyfunction]
fn read_buffer(py: Python<'_>, array: &Bound<'_, Array>, target: &Bound<'_, PyAny>) -> PyResult<()> {
    let array = array.borrow();
    let buffer = PyUntypedBuffer::get(target)?;
    if buffer.readonly() {
        return Err(PyValueError::new_err("the buffer is read-only"));
    }
    let (data, strides) = memory(&buffer, array.dtype, array.view.shape())?;
    if array.len() == 0 {
        return Ok(());
    }
    if let Some(from) = little_data(&array) {
        let (own, shape) = (byte_stride(&array.view, array.dtype), array.view.shape());
        let (to, from) = (Side { data: data.get(), stride: &strides }, Side { data: from, stride: &own });
        // SAFETY: both have the elements at their strides; the buffer is held until this returns.
        unsafe { strided::copy(array.dtype, shape, to, from) };
        return Ok(());
    }
    let (recorder, id) = (&array.context.recorder, array.current(py)?);
    // SAFETY: the buffer is held until this returns, is writeable, and its numbers, of the array's shape and element size, lie at
    // the strides; Python leaves it to the program that nothing else uses a buffer meanwhile.
    reading(py, |patience| unsafe { recorder.read_with(id, data.get(), Some(&strides), patience) })
}

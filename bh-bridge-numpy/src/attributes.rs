//! NumPy's attributes of arrays.

use crate::array::{Array, derive};
use crate::error::{exception, value_error};
use crate::numpy_types;
use crate::shared_view::made;
use bh_bytecode::MAX_RANK;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The functions on the parts of complex numbers.
fn parts(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("bh._functions.complex_parts")
}

#[pymethods]
impl Array {
    /// Extents of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.view.shape())
    }

    /// Gives the elements another shape in place, which must need no copy.
    #[setter]
    fn set_shape(&self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let shape = crate::sequence::shape_for(shape, self.len())?;
        let view = self.view.reshape(&shape).map_err(value_error)?;
        let incompatible =
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape.";
        let view = view.ok_or_else(|| PyAttributeError::new_err(incompatible))?;
        self.show(self.id(), &view, false)
    }

    /// Bytes from one element to the next in each dimension.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.len() == 0 && self.base.is_none() {
            // As in NumPy, a new array without elements has none to go on to.
            return PyTuple::new(py, vec![0; self.view.rank()]);
        }
        // Between the parts of complex numbers lie the other ones.
        let apart = if self.link.is_some() { 2 } else { 1 };
        PyTuple::new(py, self.strides_in_bytes().into_iter().map(|stride| stride * apart))
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.view.rank()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> i64 {
        self.len()
    }

    /// Bytes of an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.dtype.size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> i64 {
        self.len() * self.dtype.size() as i64
    }

    /// The element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy_dtype(py)
    }

    /// Another type in place, which arrays have not; NumPy says what no array could have.
    #[setter(dtype)]
    fn set_dtype(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
        let shown = slf.call_method0("__array__")?.call_method1("view", (dtype,))?;
        match shown.getattr("dtype")?.eq(slf.getattr("dtype")?)? {
            true => Ok(()),
            false => Err(PyAttributeError::new_err(
                "an array of bh keeps its type: `a.view(dtype)` shows its memory as another one",
            )),
        }
    }

    /// The array whose memory this is a view of, or None.
    #[getter]
    fn base(&self, py: Python<'_>) -> Option<Py<Array>> {
        self.base.as_ref().map(|base| base.clone_ref(py))
    }

    /// The array with its dimensions reversed.
    #[getter(T)]
    pub fn transposed(slf: &Bound<'_, Self>) -> PyResult<Array> {
        let view = &slf.get().view;
        let (mut shape, mut stride, rank) = ([0; MAX_RANK], [0; MAX_RANK], view.rank());
        for (at, (&extent, &step)) in view.shape().iter().zip(view.stride()).rev().enumerate() {
            (shape[at], stride[at]) = (extent, step);
        }
        let reversed = made(view.start(), &shape[..rank], &stride[..rank]);
        derive(slf, reversed.map_err(value_error)?)
    }

    /// The real parts as a view; of real numbers the array itself.
    #[getter]
    fn real<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().dtype.is_complex() {
            true => parts(slf.py())?.call_method1("real", (slf,)),
            false => Ok(slf.clone().into_any()),
        }
    }

    #[setter]
    fn set_real(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        parts(slf.py())?.call_method1("set_part", (slf, value, "real")).map(drop)
    }

    /// The number of the element type in bh's table of types.
    #[getter]
    fn _code(&self) -> u8 {
        self.dtype as u8
    }

    /// Is this the result of an operation that gives a scalar in NumPy?
    #[getter]
    fn _scalar(&self) -> bool {
        self.is_scalar()
    }

    #[setter(_scalar)]
    fn put_scalar(&self, scalar: bool) {
        self.set_scalar(scalar);
    }

    /// The class that `isinstance` sees: of scalars NumPy's, as programs ask whether they have numbers.
    #[getter(__class__)]
    fn class<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        if this.is_scalar() { numpy_types::numpy_scalar(slf.py(), this.dtype) } else { Ok(slf.get_type().into_any()) }
    }

    #[getter]
    fn _writeable(&self) -> bool {
        self.is_writeable()
    }

    #[setter(_writeable)]
    fn put_writeable(&self, writeable: bool) {
        self.set_writeable(writeable);
    }

    #[getter]
    fn _warns(&self) -> bool {
        self.warns()
    }

    #[setter(_warns)]
    fn put_warns(&self, warns: bool) {
        self.set_warns(warns);
    }

    /// Warns of an assignment, if that is to be done.
    fn _warn_of_write(&self, py: Python<'_>) -> PyResult<()> {
        self.warn_of_write(py)
    }

    #[setter(_long_long)]
    fn put_long_long(&self, long_long: bool) {
        self.set_long_long(long_long);
    }

    /// Distance of the first element from the beginning of the memory, in elements.
    #[getter]
    fn _start(&self) -> i64 {
        self.view.start()
    }

    /// Distances from one element to the next, in elements.
    #[getter]
    fn _stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.view.stride())
    }

    /// A number that arrays share whose memory is the same.
    #[getter]
    fn _memory(&self) -> PyResult<u64> {
        let id = self.link.as_ref().map_or_else(|| self.anchor(), |link| link.whole.get().id());
        self.context.recorder.info(id).map(|info| info.base).map_err(exception)
    }

    /// The name of the stack that the array belongs to.
    #[getter]
    fn _stack(&self) -> &str {
        &self.context.name
    }

    /// Becomes another view of another array's memory; views of the own memory stay as they are, unless it is `alone`, without any.
    #[pyo3(signature = (other, alone=false))]
    fn _become(&self, other: &Bound<'_, Array>, alone: bool) -> PyResult<()> {
        let other = other.get();
        if self.dtype != other.dtype {
            return Err(PyTypeError::new_err("arrays keep their type"));
        }
        self.show(other.id(), &other.view, alone)
    }

    /// Is it the real or imaginary part of a complex array?
    #[getter]
    fn _is_part(&self) -> bool {
        self.link.is_some()
    }

    #[getter]
    fn _contiguous(&self) -> bool {
        self.view.is_contiguous() && (self.link.is_none() || self.len() < 2)
    }

    #[allow(clippy::unused_self)] // Python calls it with one.
    fn __concat__(&self, _other: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = "Concatenation operation is not implemented for NumPy arrays, use np.concatenate() instead.";
        Err(PyTypeError::new_err(text))
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.view.shape().first() {
            Some(&extent) => Ok(extent as usize),
            None => Err(PyTypeError::new_err("len() of unsized object")),
        }
    }
}

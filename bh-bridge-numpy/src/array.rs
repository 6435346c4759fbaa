//! The array type: a view of a base that the recorder holds, with NumPy's attributes.

use crate::context::Context;
use crate::error::exception;
use crate::operand;
use crate::part::Link;
use bh_bytecode::{DType, View};
use bh_recorder::ArrayId;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use std::sync::Arc;

/// An array of numbers that bh holds. Operations on it are recorded, and run when a result is looked at.
#[pyclass(name = "ndarray", module = "bh", weakref)]
pub struct Array {
    pub context: Arc<Context>,
    pub id: ArrayId,
    pub dtype: DType,
    /// Shared by arrays of the same shape: results have the view of what they are made of, where that is their own.
    pub view: Arc<View>,
    /// The result of an operation that gives a scalar in NumPy: in-place operators make a new one, and it has a hash.
    pub scalar: bool,
    /// May it be assigned to?
    pub writeable: bool,
    /// The array whose memory this is a view of.
    pub base: Option<Py<Array>>,
    /// Set for the parts of complex arrays and their views, whose elements are those of another array.
    pub link: Option<Arc<Link>>,
}

impl Drop for Array {
    fn drop(&mut self) {
        self.context.recorder.free_later(self.id);
    }
}

impl Array {
    /// A new base in C order behind `id`.
    pub fn new(context: Arc<Context>, id: ArrayId, dtype: DType, view: impl Into<Arc<View>>) -> Array {
        Array { context, id, dtype, view: view.into(), scalar: false, writeable: true, base: None, link: None }
    }

    /// The result of an operation: NumPy makes those without dimensions scalars.
    pub fn result(context: Arc<Context>, id: ArrayId, dtype: DType, view: impl Into<Arc<View>>) -> Array {
        let mut array = Array::new(context, id, dtype, view);
        array.scalar = array.view.rank() == 0;
        array
    }

    /// A new array with undefined elements.
    pub fn empty(context: &Arc<Context>, dtype: DType, shape: &[i64]) -> PyResult<Array> {
        let view = View::contiguous(shape).map_err(|error| PyValueError::new_err(error.0))?;
        let id = context.recorder.empty(dtype, shape).map_err(exception)?;
        Ok(Array::new(Arc::clone(context), id, dtype, view))
    }

    /// Fails unless it may be assigned to.
    pub fn check_writeable(&self) -> PyResult<()> {
        match (self.writeable, self.scalar) {
            (false, _) => Err(PyValueError::new_err("assignment destination is read-only")),
            (_, true) if !crate::scalar::follows_array_api() => {
                let text = format!("'numpy.{}' object does not support item assignment", self.dtype.numpy_name());
                Err(PyTypeError::new_err(text))
            }
            _ => Ok(()),
        }
    }

    /// The number of elements.
    pub fn len(&self) -> i64 {
        self.view.len()
    }

    /// Is the memory its own, to be assigned to?
    pub fn is_shared(&self) -> bool {
        self.writeable && !self.scalar && self.link.is_none()
    }
}

/// Another view of the same memory.
pub fn derive(array: &Bound<'_, Array>, view: View) -> PyResult<Array> {
    let this = array.borrow();
    let id = this.context.recorder.window(this.id, &view).map_err(exception)?;
    let base = match &this.base {
        Some(base) => base.clone_ref(array.py()),
        None => array.clone().unbind(),
    };
    Ok(Array {
        context: Arc::clone(&this.context),
        id,
        dtype: this.dtype,
        view: view.into(),
        scalar: false,
        writeable: this.writeable && !this.scalar,
        base: Some(base),
        link: this.link.clone(),
    })
}

/// The same view of the same memory.
pub fn alias(array: &Array) -> PyResult<Array> {
    let id = array.context.recorder.window(array.id, &array.view).map_err(exception)?;
    Ok(Array::new(Arc::clone(&array.context), id, array.dtype, Arc::clone(&array.view)))
}

/// Gives the class of arrays a class of its own, which decides what calls of it, checks of instances and derived classes do.
#[pyfunction]
pub fn set_class_of_arrays(py: Python<'_>, class: Bound<'_, PyType>) -> PyResult<()> {
    let size = |class: &Bound<'_, PyType>| class.getattr("__basicsize__")?.extract::<usize>();
    if !class.is_subclass_of::<PyType>()? || size(&class)? != size(&py.get_type::<PyType>())? {
        return Err(PyTypeError::new_err(
            "the class of a class has to be derived from `type`, without fields of its own",
        ));
    }
    let arrays = py.get_type::<Array>().into_ptr();
    // SAFETY: the new class has the layout of `type`, which is static and counts no references; the class of arrays keeps a
    // reference to the new one, as each object does to its class, and lives as long as the module.
    unsafe { (*arrays).ob_type = class.into_ptr().cast() };
    Ok(())
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
    fn set_shape(&mut self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let shape = crate::sequence::shape_for(shape, self.len())?;
        let view = self.view.reshape(&shape).map_err(|error| PyValueError::new_err(error.0))?;
        let incompatible =
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape.";
        let view = view.ok_or_else(|| pyo3::exceptions::PyAttributeError::new_err(incompatible))?;
        let id = self.context.recorder.window(self.id, &view).map_err(exception)?;
        let before = std::mem::replace(&mut self.id, id);
        self.view = view.into();
        self.context.recorder.free(before).map_err(exception)
    }

    /// Bytes from one element to the next in each dimension.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        // As in NumPy, a new array without elements has none to go on to.
        let size = if self.len() == 0 && self.base.is_none() { 0 } else { self.dtype.size() as i64 };
        PyTuple::new(py, self.view.stride().iter().map(|stride| stride * size))
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
        operand::numpy_dtype(py, self.dtype)
    }

    /// The array whose memory this is a view of, or None.
    #[getter]
    fn base(&self, py: Python<'_>) -> Option<Py<Array>> {
        self.base.as_ref().map(|base| base.clone_ref(py))
    }

    /// The array with its dimensions reversed.
    #[getter(T)]
    fn transposed(slf: &Bound<'_, Self>) -> PyResult<Array> {
        let view = Arc::clone(&slf.borrow().view);
        let axes: Vec<usize> = (0..view.rank()).rev().collect();
        derive(slf, view.transpose(&axes).map_err(|error| PyValueError::new_err(error.0))?)
    }

    /// The number of the element type in bh's table of types.
    #[getter]
    fn _code(&self) -> u8 {
        self.dtype as u8
    }

    /// Is this the result of an operation that gives a scalar in NumPy?
    #[getter]
    fn _scalar(&self) -> bool {
        self.scalar
    }

    #[setter(_scalar)]
    fn set_scalar(&mut self, scalar: bool) {
        self.scalar = scalar;
    }

    /// The class that `isinstance` sees: of scalars NumPy's, as programs ask whether they have numbers.
    #[getter(__class__)]
    fn class<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.borrow();
        if this.scalar { operand::numpy_scalar(slf.py(), this.dtype) } else { Ok(slf.get_type().into_any()) }
    }

    #[getter]
    fn _writeable(&self) -> bool {
        self.writeable
    }

    #[setter(_writeable)]
    fn set_writeable(&mut self, writeable: bool) {
        self.writeable = writeable;
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
    fn _memory(&self, py: Python<'_>) -> PyResult<u64> {
        let id = self.link.as_ref().map_or(self.id, |link| link.whole.borrow(py).id);
        self.context.recorder.info(id).map(|info| info.base).map_err(exception)
    }

    /// The name of the stack that the array belongs to.
    #[getter]
    fn _stack(&self) -> &str {
        &self.context.name
    }

    /// Becomes another view of another array's memory; views of the own memory stay as they are.
    fn _become(slf: &Bound<'_, Self>, other: &Bound<'_, Array>) -> PyResult<()> {
        let other = other.borrow();
        let id = other.context.recorder.window(other.id, &other.view).map_err(exception)?;
        let mut this = slf.borrow_mut();
        let before = std::mem::replace(&mut this.id, id);
        (this.view, this.dtype) = (Arc::clone(&other.view), other.dtype);
        this.context.recorder.free(before).map_err(exception)
    }

    #[getter]
    fn _contiguous(&self) -> bool {
        self.view.is_contiguous()
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.view.shape().first() {
            Some(&extent) => Ok(extent as usize),
            None => Err(PyTypeError::new_err("len() of unsized object")),
        }
    }
}

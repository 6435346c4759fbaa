//! NumPy's C interface: the functions of its table that are called here, and the fields of its arrays, whose places its ABI fixes.

use crate::numpy_types::{numpy_array, numpy_dtype};
use bh_bytecode::{Constant, DType, MAX_RANK};
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// `PyArray_Scalar`: a scalar with the value at an address, of a type given as a dtype.
type MakeScalar = unsafe extern "C" fn(*mut c_void, *mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// `PyArray_NewFromDescr`: an array of a class and a dtype, whose reference it takes: rank, shape, strides, data, flags, object.
type MakeArray = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    *mut ffi::PyObject,
    c_int,
    *const isize,
    *const isize,
    *mut c_void,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// Places in the table, which are the same in all versions.
const SCALAR: usize = 60;
const ARRAY: usize = 94;

struct Functions {
    scalar: MakeScalar,
    array: MakeArray,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

fn functions(py: Python<'_>) -> PyResult<&'static Functions> {
    if let Some(functions) = FUNCTIONS.get() {
        return Ok(functions);
    }
    let table = py.import("numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?;
    let table = table.cast::<PyCapsule>()?.pointer_checked(None)?.cast::<*const c_void>();
    // SAFETY: the capsule's pointer is that of NumPy's table of functions, which has more places.
    let (scalar, array) = unsafe { (*table.as_ptr().add(SCALAR), *table.as_ptr().add(ARRAY)) };
    if scalar.is_null() || array.is_null() {
        return Err(PyImportError::new_err("NumPy's C interface lacks PyArray_Scalar or PyArray_NewFromDescr"));
    }
    // SAFETY: NumPy documents the functions at these places with these types.
    let functions = unsafe {
        Functions {
            scalar: std::mem::transmute::<*const c_void, MakeScalar>(scalar),
            array: std::mem::transmute::<*const c_void, MakeArray>(array),
        }
    };
    Ok(FUNCTIONS.get_or_init(|| functions))
}

/// A value as a scalar of NumPy.
pub fn scalar<'py>(py: Python<'py>, value: &Constant) -> PyResult<Bound<'py, PyAny>> {
    let (make, dtype) = (functions(py)?.scalar, numpy_dtype(py, value.dtype())?);
    let data = value.bits.as_ptr().cast_mut().cast();
    // SAFETY: the data is an element of the dtype, and only read; the result is a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, make(data, dtype.as_ptr(), std::ptr::null_mut())) }
}

/// The order of the elements in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    C,
    Fortran,
}

/// A new array of NumPy whose elements are undefined.
pub fn new_array<'py>(
    py: Python<'py>,
    dtype: Bound<'py, PyAny>,
    shape: &[i64],
    order: Order,
) -> PyResult<Bound<'py, PyAny>> {
    let make = functions(py)?.array;
    let class = numpy_array(py)?.as_ptr().cast::<ffi::PyTypeObject>();
    // `npy_intp` has the size of an address.
    let mut extents = [0isize; MAX_RANK];
    extents.iter_mut().zip(shape).for_each(|(to, &extent)| *to = extent as isize);
    let flags = c_int::from(order == Order::Fortran) * IS_FORTRAN;
    let (none, nothing) = (std::ptr::null(), std::ptr::null_mut());
    // SAFETY: the class is that of arrays and the dtype one of NumPy's, whose reference goes to the function; there are as
    // many extents as the call says; without strides and data it makes them itself. The result is a new reference, or null
    // with an exception.
    unsafe {
        let made = make(
            class,
            dtype.into_ptr(),
            shape.len() as c_int,
            extents.as_ptr(),
            none,
            std::ptr::null_mut(),
            flags,
            nothing,
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Flags of arrays: elements lie in C's order or in Fortran's, without gaps, and the memory is aligned.
const IS_C: c_int = 1;
const IS_FORTRAN: c_int = 2;
const IS_ALIGNED: c_int = 0x100;

/// `PyArrayObject_fields`.
#[repr(C)]
struct Fields {
    head: ffi::PyObject,
    data: *mut u8,
    rank: c_int,
    shape: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    dtype: *mut ffi::PyObject,
    flags: c_int,
    weak_references: *mut ffi::PyObject,
}

/// An array of NumPy's own class.
#[derive(Clone, Copy)]
pub struct HostArray<'a, 'py>(&'a Bound<'py, PyAny>);

impl<'a, 'py> HostArray<'a, 'py> {
    /// `None` for objects of other classes.
    #[inline]
    pub fn of(object: &'a Bound<'py, PyAny>) -> Option<HostArray<'a, 'py>> {
        let class = numpy_array(object.py()).ok()?;
        std::ptr::eq(object.get_type_ptr().cast(), class.as_ptr()).then_some(HostArray(object))
    }

    #[inline]
    fn fields(&self) -> &Fields {
        // SAFETY: an object of NumPy's class of arrays begins with these fields.
        unsafe { &*self.0.as_ptr().cast::<Fields>() }
    }

    /// The address of its first element.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.fields().data
    }

    /// Extents of the dimensions.
    pub fn shape(&self) -> &[isize] {
        let fields = self.fields();
        match fields.rank {
            0 => &[],
            // SAFETY: there are as many extents as dimensions.
            rank => unsafe { std::slice::from_raw_parts(fields.shape, rank as usize) },
        }
    }

    /// Bytes from one element to the next in each dimension.
    pub fn strides(&self) -> &[isize] {
        let fields = self.fields();
        match fields.rank {
            0 => &[],
            // SAFETY: there are as many strides as dimensions.
            rank => unsafe { std::slice::from_raw_parts(fields.strides, rank as usize) },
        }
    }

    /// Do its elements follow each other in C's order, each where its type has to be?
    pub fn is_plain(&self) -> bool {
        self.fields().flags & (IS_C | IS_ALIGNED) == IS_C | IS_ALIGNED
    }

    /// The type of its elements, if bh has it under its first name.
    pub fn dtype(&self) -> Option<DType> {
        crate::numpy_types::of_dtype(self.0.py(), self.fields().dtype)
    }

    /// Does nobody but the caller, who has one reference, refer to it, and is the memory its own?
    pub fn is_alone(&self) -> bool {
        let fields = self.fields();
        // SAFETY: the object lives, and the thread is attached.
        let references = unsafe { ffi::Py_REFCNT(self.0.as_ptr()) };
        references == 1 && self.owns_memory() && fields.weak_references.is_null()
    }

    /// Is the memory its own?
    pub fn owns_memory(&self) -> bool {
        self.fields().base.is_null()
    }
}

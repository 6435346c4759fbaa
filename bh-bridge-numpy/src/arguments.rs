//! Calls as Python's own functions get them: the arguments where they lie, without a tuple and a dict of them (PEP 590).
//!
//! PyO3 gives the objects of a class only the older form of calls. The newer one is two fields of a type's object, which
//! `PyType_FromSpec` would fill. They are filled here, if they lie where they do in all versions so far; else calls go the
//! older way.

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use std::ffi::{c_ulong, c_void};
use std::slice;
use std::sync::LazyLock;

/// A native function: the object, its arguments, how many of them have no names, and the names of the others.
pub type EntryPoint = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// The arguments of a call, first those without names.
#[derive(Clone, Copy)]
pub struct Arguments<'a, 'py> {
    all: &'a [Py<PyAny>],
    names: Option<Borrowed<'a, 'py, PyTuple>>,
    py: Python<'py>,
}

impl<'a, 'py> Arguments<'a, 'py> {
    /// The arguments of an [`EntryPoint`].
    ///
    /// # Safety
    /// `all` must lead to `count` objects and as many more as there are names, and `names` be null or a tuple, as
    /// Python's call of an entry gives them; both must live as long as the result.
    #[inline]
    pub unsafe fn new(
        py: Python<'py>,
        all: *const *mut ffi::PyObject,
        count: ffi::Py_ssize_t,
        names: *mut ffi::PyObject,
    ) -> Arguments<'a, 'py> {
        // Callers may set the highest bit, which says that the place before the arguments is free.
        let count = (count & ffi::Py_ssize_t::MAX) as usize;
        // SAFETY: the names are a tuple, or null where there are none; as many arguments as names follow those without names.
        unsafe {
            let names = Borrowed::from_ptr_or_opt(py, names).map(|names| names.cast_unchecked::<PyTuple>());
            let count = count + names.map_or(0, |names| names.len());
            // An object is a pointer that is not null. There may be no address where there are no arguments.
            let all = if count == 0 { &[] } else { slice::from_raw_parts(all.cast::<Py<PyAny>>(), count) };
            Arguments { all, names, py }
        }
    }

    pub fn py(&self) -> Python<'py> {
        self.py
    }

    /// All of them, those with names last.
    #[inline]
    pub fn all(&self) -> &'a [Py<PyAny>] {
        self.all
    }

    /// How many have names.
    #[inline]
    pub fn named(&self) -> usize {
        self.names.map_or(0, |names| names.len())
    }

    /// Those without names.
    #[inline]
    pub fn unnamed(&self) -> &'a [Py<PyAny>] {
        &self.all[..self.all.len() - self.named()]
    }

    /// The argument of this name.
    pub fn get(&self, name: &Bound<'py, PyString>) -> Option<&'a Bound<'py, PyAny>> {
        let named = &self.all[self.unnamed().len()..];
        let place = self.names?.iter_borrowed().position(|other| other.is(name) || other.eq(name).unwrap_or(false))?;
        named.get(place).map(|object| object.bind(self.py))
    }

    /// The name of the argument with a name at a place among those.
    pub fn name(&self, place: usize) -> Option<Bound<'py, PyAny>> {
        self.names?.get_item(place).ok()
    }

    /// Other arguments, as many as these, of which the last have the same names.
    pub fn with<'b>(&self, all: &'b [Py<PyAny>]) -> Arguments<'b, 'py>
    where
        'a: 'b,
    {
        Arguments { all, ..*self }
    }

    /// Those without names as a tuple, and the others as a dict.
    pub fn as_objects(&self) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
        let unnamed = PyTuple::new(self.py, self.unnamed().iter().map(|object| object.bind(self.py)))?;
        let Some(names) = self.names else { return Ok((unnamed, None)) };
        let keywords = PyDict::new(self.py);
        for (name, object) in names.iter_borrowed().zip(&self.all[self.unnamed().len()..]) {
            keywords.set_item(name, object)?;
        }
        Ok((unnamed, Some(keywords)))
    }

    /// Calls another object with the same arguments.
    pub fn call(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some(call) = *CALL else {
            let (unnamed, keywords) = self.as_objects()?;
            return object.call(unnamed, keywords.as_ref());
        };
        let names = self.names.map_or(std::ptr::null_mut(), |names| names.as_ptr());
        // SAFETY: all are objects, and the names a tuple of as many as there are named arguments, or null; the result is a new
        // reference, or null with an exception.
        unsafe {
            let result = call(object.as_ptr(), self.all.as_ptr().cast(), self.unnamed().len(), names);
            Bound::from_owned_ptr_or_err(self.py, result)
        }
    }
}

/// Calls `f` with the arguments of a call of the older form.
pub fn with<'py, R>(
    arguments: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
    f: impl FnOnce(Arguments<'_, 'py>) -> PyResult<R>,
) -> PyResult<R> {
    let py = arguments.py();
    let named = keywords.into_iter().flatten();
    let (names, objects): (Vec<_>, Vec<_>) = named.map(|(name, object)| (name, object.unbind())).unzip();
    let all: Vec<Py<PyAny>> = arguments.iter().map(Bound::unbind).chain(objects).collect();
    let names = if names.is_empty() { None } else { Some(PyTuple::new(py, names)?) };
    f(Arguments { all: &all, names: names.as_ref().map(Bound::as_borrowed), py })
}

/// `PyObject_Vectorcall`, which every Python has, but not in the stable ABI of the oldest one.
pub type Call = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

static CALL: LazyLock<Option<Call>> = LazyLock::new(|| {
    // SAFETY: the name ends with a zero; Python's documentation gives the function this type, and null is `None`.
    unsafe {
        std::mem::transmute::<*mut c_void, Option<_>>(libc::dlsym(libc::RTLD_DEFAULT, c"PyObject_Vectorcall".as_ptr()))
    }
});

/// That function, if this Python has it.
pub fn vectorcall() -> Option<Call> {
    *CALL
}

/// Places of the fields of a type's object, in words.
const SIZE: usize = 4;
const ENTRY: usize = 7;
const CALLED: usize = 16;
const FLAGS: usize = 21;

/// Objects of the class are called by an entry, which is a field of theirs.
const HAS_ENTRY: usize = 1 << 11;
/// As an attribute of a class, an object need not be bound to an instance before it is called with it.
const IS_METHOD: usize = 1 << 17;

/// Has the objects of a class called by the [`EntryPoint`] that lies `offset` bytes from their beginning. `native`: the class of this
/// module that it is, or is derived from.
pub fn enter(class: &Bound<'_, PyType>, native: &Bound<'_, PyType>, offset: usize, is_method: bool) -> PyResult<()> {
    let (object, size) = (class.as_type_ptr(), class.getattr("__basicsize__")?.extract::<usize>()?);
    if offset + size_of::<EntryPoint>() > size {
        return Err(PyRuntimeError::new_err("the objects are too small"));
    }
    let words = object.cast::<usize>();
    // SAFETY: a type's object has more words than that. They are changed only where the functions of the stable ABI say that the
    // others are what they are taken for; the thread is attached, and the class lives.
    unsafe {
        let (flags, called) =
            (ffi::PyType_GetFlags(object), ffi::PyType_GetSlot(native.as_type_ptr(), ffi::Py_tp_call));
        let known = *words.add(SIZE) == size
            && *words.add(FLAGS) as c_ulong == flags
            && *words.add(CALLED) == called as usize
            && [0, offset].contains(&*words.add(ENTRY));
        if known {
            *words.add(ENTRY) = offset;
            *words.add(FLAGS) |= if is_method { HAS_ENTRY | IS_METHOD } else { HAS_ENTRY };
            ffi::PyType_Modified(object);
        }
    }
    Ok(())
}

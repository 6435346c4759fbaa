//! The functions that the program's own modules call for each call of theirs (`python/bh/_numpy/rewriting.py`): the common
//! answers, without Python. Python (`_numpy/foreign.py`) decides once, and notes its answers where these functions look.
//!
//! They are Python's own kind of functions, with nothing of PyO3 in between: what they answer takes 10 to 30 ns.

use crate::arguments::{self, Call};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PySet, PyString, PyType};
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

/// Functions of Python's interface that the stable one lacks.
struct Symbols {
    /// The global names of a function.
    globals: unsafe extern "C" fn(*mut PyObject) -> *mut PyObject,
    /// The cells of a function, or null.
    closure: unsafe extern "C" fn(*mut PyObject) -> *mut PyObject,
    /// The defaults of a function, or null.
    defaults: unsafe extern "C" fn(*mut PyObject) -> *mut PyObject,
    /// The function of a bound method.
    inner: unsafe extern "C" fn(*mut PyObject) -> *mut PyObject,
    /// Looks an attribute up in a class and its bases; null if there is none.
    lookup: unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject,
    call: Call,
}

/// A function of Python's interface, if this Python has it.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

impl Symbols {
    fn find() -> Option<Symbols> {
        type One = unsafe extern "C" fn(*mut PyObject) -> *mut PyObject;
        type Two = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
        // SAFETY: Python's documentation and headers give the functions of these names these types.
        let one = |name| symbol(name).map(|address| unsafe { std::mem::transmute::<*mut c_void, One>(address) });
        // SAFETY: as above.
        let two = |name| symbol(name).map(|address| unsafe { std::mem::transmute::<*mut c_void, Two>(address) });
        Some(Symbols {
            globals: one(c"PyFunction_GetGlobals")?,
            closure: one(c"PyFunction_GetClosure")?,
            defaults: one(c"PyFunction_GetDefaults")?,
            inner: one(c"PyMethod_Function")?,
            lookup: two(c"_PyType_Lookup")?,
            call: arguments::vectorcall()?,
        })
    }
}

/// The objects that the functions use. All of them live as long as the process.
struct Known {
    symbols: Symbols,
    name: Py<PyString>,
    module: Py<PyString>,
    /// The names of modules: do their functions get arrays of bh?
    direct: Py<PyDict>,
    /// The classes of Python's own objects, whose methods keep whatever they get.
    plain: Py<PyFrozenSet>,
    /// Functions and classes that are called themselves, and found by their names.
    called: Py<PySet>,
    /// Classes whose instances are called themselves: all (`True`), or those that say a module for which that holds.
    callable: Py<PyDict>,
    /// The part of names of functions that live in others.
    local: Py<PyString>,
    qualname: Py<PyString>,
    function: Py<PyType>,
    method: Py<PyType>,
    builtin: Py<PyType>,
    /// The functions that decide.
    see: Py<PyAny>,
    receiver: Py<PyAny>,
    subscripted: Py<PyAny>,
}

static KNOWN: OnceLock<Known> = OnceLock::new();

/// The answer of a lookup in a set or a dictionary of Python's; false if it failed, and the exception is cleared.
#[inline]
fn holds(answer: std::ffi::c_int) -> bool {
    if answer < 0 {
        // SAFETY: the caller is attached.
        unsafe { ffi::PyErr_Clear() };
    }
    answer == 1
}

impl Known {
    /// Do functions of the module of this name get arrays of bh? `false` if that is not known yet.
    ///
    /// # Safety
    /// `name` must be null or an object that lives, and the thread be attached.
    #[inline]
    unsafe fn is_direct(&self, name: *mut PyObject) -> bool {
        // SAFETY: both are objects, as `# Safety` asks; a look-up before this one may have left an exception.
        unsafe {
            let direct = match name.is_null() {
                true => std::ptr::null_mut(),
                false => ffi::PyDict_GetItemWithError(self.direct.as_ptr(), name),
            };
            if direct.is_null() {
                ffi::PyErr_Clear();
            }
            direct == ffi::Py_True()
        }
    }

    /// As [`Known::is_direct`], of the module of a function in Python.
    ///
    /// # Safety
    /// `function` must be a function in Python that lives, and the thread be attached.
    #[inline]
    unsafe fn is_of_direct(&self, function: *mut PyObject) -> bool {
        // SAFETY: a function has a dictionary of global names, which it keeps alive, as that does with its values.
        unsafe {
            let globals = (self.symbols.globals)(function);
            self.is_direct(ffi::PyDict_GetItemWithError(globals, self.name.as_ptr()))
        }
    }

    /// Is an object known to be called itself?
    ///
    /// # Safety
    /// `object` must be an object that lives, and the thread be attached.
    #[inline]
    unsafe fn is_itself(&self, object: *mut PyObject) -> bool {
        // SAFETY: the object and its class live, and are of the classes for which the functions are.
        unsafe {
            let class = ffi::Py_TYPE(object);
            if class.cast() == self.function.as_ptr() {
                return self.is_of_direct(object);
            }
            if class.cast() == self.method.as_ptr() {
                let inner = (self.symbols.inner)(object);
                return ffi::Py_TYPE(inner).cast() == self.function.as_ptr() && self.is_of_direct(inner);
            }
            if class.cast() == self.builtin.as_ptr() {
                let owner = ffi::PyCFunction_GetSelf(object);
                let is_plain = |owner| ffi::PySet_Contains(self.plain.as_ptr(), ffi::Py_TYPE(owner).cast());
                return !owner.is_null() && holds(is_plain(owner))
                    || holds(ffi::PySet_Contains(self.called.as_ptr(), object));
            }
            if class == &raw mut ffi::PyType_Type {
                return holds(ffi::PySet_Contains(self.called.as_ptr(), object));
            }
            let all = ffi::PyDict_GetItemWithError(self.callable.as_ptr(), class.cast());
            if all.is_null() || all == ffi::Py_True() {
                ffi::PyErr_Clear();
                return !all.is_null();
            }
            let module = ffi::PyObject_GetAttr(object, self.module.as_ptr());
            let direct = self.is_direct(module);
            ffi::Py_XDECREF(module);
            direct
        }
    }

    /// Notes an object that is called itself at its site, if it lives as long as its module or keeps nothing alive; the site
    /// of another one gets `False`, so that this is found out once.
    ///
    /// # Safety
    /// As [`Known::is_itself`].
    #[inline]
    unsafe fn note(&self, object: *mut PyObject, sites: *mut PyObject, site: *mut PyObject) {
        // SAFETY: the objects live; the list gets a reference of its own, and drops that of what it had.
        unsafe {
            let Some(place) = place(sites, site) else { return };
            let noted = if ffi::Py_TYPE(object).cast() == self.function.as_ptr() {
                self.keeps_nothing(object)
                    || ffi::PyList_GetItem(sites, place) == ffi::Py_None() && !self.is_local(object)
            } else {
                ffi::PyList_GetItem(sites, place) == ffi::Py_None()
                    && holds(ffi::PySet_Contains(self.called.as_ptr(), object))
            };
            if noted {
                ffi::PyList_SetItem(sites, place, new_reference(object));
            } else if ffi::PyList_GetItem(sites, place) == ffi::Py_None() {
                ffi::PyList_SetItem(sites, place, new_reference(ffi::Py_False()));
            }
        }
    }

    /// Has a function in Python neither cells nor defaults?
    ///
    /// # Safety
    /// As [`Known::is_of_direct`].
    #[inline]
    unsafe fn keeps_nothing(&self, function: *mut PyObject) -> bool {
        // SAFETY: as `# Safety` asks.
        unsafe { (self.symbols.closure)(function).is_null() && (self.symbols.defaults)(function).is_null() }
    }

    /// Does a function in Python live in another one?
    ///
    /// # Safety
    /// As [`Known::is_of_direct`].
    #[cold]
    unsafe fn is_local(&self, function: *mut PyObject) -> bool {
        // SAFETY: as `# Safety` asks; the name is a string, as Python sees to.
        unsafe {
            let name = ffi::PyObject_GetAttr(function, self.qualname.as_ptr());
            let is_local = name.is_null() || ffi::PyUnicode_Contains(name, self.local.as_ptr()) != 0;
            ffi::PyErr_Clear();
            ffi::Py_XDECREF(name);
            is_local
        }
    }

    /// Has a module, or an object that no class of which has this name, a function of this name that is called itself?
    ///
    /// # Safety
    /// As [`Known::is_itself`]; `name` must be a string.
    #[inline]
    unsafe fn holds_itself(&self, owner: *mut PyObject, name: *mut PyObject) -> bool {
        // SAFETY: the objects live. No code of the program runs for objects whose class finds attributes in Python's way.
        unsafe {
            let class = ffi::Py_TYPE(owner);
            if class != &raw mut ffi::PyModule_Type {
                let find = ffi::PyType_GetSlot(class, ffi::Py_tp_getattro).cast_const();
                let is_common = find == ffi::PyObject_GenericGetAttr as *const c_void;
                if !is_common || !(self.symbols.lookup)(class.cast(), name).is_null() {
                    return false;
                }
            }
            let value = ffi::PyObject_GetAttr(owner, name);
            if value.is_null() {
                ffi::PyErr_Clear();
                return false;
            }
            let is_itself = self.is_itself(value);
            ffi::Py_DECREF(value);
            is_itself
        }
    }
}

/// The place in the list of sites.
///
/// # Safety
/// Both must be objects that live, and the thread be attached.
#[inline]
unsafe fn place(sites: *mut PyObject, site: *mut PyObject) -> Option<ffi::Py_ssize_t> {
    // SAFETY: the objects live; the list is asked for its size only if it is one.
    unsafe {
        if ffi::Py_TYPE(sites) != &raw mut ffi::PyList_Type {
            return None;
        }
        let place = ffi::PyLong_AsSsize_t(site);
        if place == -1 {
            ffi::PyErr_Clear();
        }
        (0..ffi::PyList_Size(sites)).contains(&place).then_some(place)
    }
}

/// Is the class of an object noted at a site?
///
/// # Safety
/// As [`place`].
#[inline]
unsafe fn is_noted(owner: *mut PyObject, sites: *mut PyObject, site: *mut PyObject) -> Option<bool> {
    // SAFETY: the objects live, and the place is one of the list.
    unsafe {
        let noted = ffi::PyList_GetItem(sites, place(sites, site)?);
        (ffi::Py_TYPE(noted) == &raw mut ffi::PySet_Type)
            .then(|| holds(ffi::PySet_Contains(noted, ffi::Py_TYPE(owner).cast())))
    }
}

/// A function of this file: its arguments, without names.
type Fast = unsafe extern "C" fn(*mut PyObject, *mut *mut PyObject, ffi::Py_ssize_t) -> *mut PyObject;

/// A new reference to an object.
///
/// # Safety
/// The object must live, and the thread be attached.
#[inline]
unsafe fn new_reference(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: as `# Safety` asks.
    unsafe { ffi::Py_INCREF(object) };
    object
}

/// The answer of `fast` to the arguments of a call, otherwise the answer of `decides`.
///
/// # Safety
/// `all` must lead to `count` objects that live, and the thread be attached: as Python calls such functions.
#[inline]
unsafe fn answer(
    all: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
    fast: impl FnOnce(&Known, &[*mut PyObject]) -> Option<*mut PyObject>,
    decides: impl FnOnce(&Known) -> &Py<PyAny>,
) -> *mut PyObject {
    let Some(known) = KNOWN.get() else {
        // SAFETY: the thread is attached.
        unsafe { ffi::PyErr_BadInternalCall() };
        return std::ptr::null_mut();
    };
    // SAFETY: as `# Safety` asks; there may be no address where there are no arguments.
    let arguments = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(all, count as usize) } };
    match fast(known, arguments) {
        // SAFETY: the object is an argument, which lives.
        Some(object) => unsafe { new_reference(object) },
        // SAFETY: all are objects.
        None => unsafe { (known.symbols.call)(decides(known).as_ptr(), all, count as usize, std::ptr::null_mut()) },
    }
}

/// `see(function, sites=None, site=0)`.
unsafe extern "C" fn see(_: *mut PyObject, all: *mut *mut PyObject, count: ffi::Py_ssize_t) -> *mut PyObject {
    let fast = |known: &Known, arguments: &[*mut PyObject]| {
        let (&function, noted) = arguments.split_first()?;
        // SAFETY: the arguments live during the call, in which the thread is attached.
        unsafe {
            if !known.is_itself(function) {
                return None;
            }
            if let [sites, site] = *noted {
                known.note(function, sites, site);
            }
        }
        Some(function)
    };
    // SAFETY: Python calls this with its arguments.
    unsafe { answer(all, count, fast, |known| &known.see) }
}

/// `receiver(owner, path, sites, site)`.
unsafe extern "C" fn receiver(_: *mut PyObject, all: *mut *mut PyObject, count: ffi::Py_ssize_t) -> *mut PyObject {
    let fast = |known: &Known, arguments: &[*mut PyObject]| {
        let [owner, path, sites, site] = *arguments else { return None };
        // SAFETY: the arguments live during the call, in which the thread is attached; a tuple is one of names.
        let is_itself = unsafe {
            is_noted(owner, sites, site)?
                || ffi::Py_TYPE(path) == &raw mut ffi::PyTuple_Type
                    && ffi::PyTuple_Size(path) == 1
                    && known.holds_itself(owner, ffi::PyTuple_GetItem(path, 0))
        };
        is_itself.then_some(owner)
    };
    // SAFETY: Python calls this with its arguments.
    unsafe { answer(all, count, fast, |known| &known.receiver) }
}

/// `subscripted(owner, sites, site)`.
unsafe extern "C" fn subscripted(_: *mut PyObject, all: *mut *mut PyObject, count: ffi::Py_ssize_t) -> *mut PyObject {
    let fast = |_: &Known, arguments: &[*mut PyObject]| {
        let [owner, sites, site] = *arguments else { return None };
        // SAFETY: the arguments live during the call, in which the thread is attached.
        unsafe { is_noted(owner, sites, site) }.filter(|noted| *noted).map(|_| owner)
    };
    // SAFETY: Python calls this with its arguments.
    unsafe { answer(all, count, fast, |known| &known.subscripted) }
}

/// The functions that answer where they can, and otherwise ask those that decide; these themselves, if this Python lacks something.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is a name of `_numpy/foreign.py`, given by name")]
#[pyo3(signature = (*, see, receiver, subscripted, direct, plain, called, callable, function, method, builtin))]
fn site_functions(
    py: Python<'_>,
    see: Py<PyAny>,
    receiver: Py<PyAny>,
    subscripted: Py<PyAny>,
    direct: Py<PyDict>,
    plain: Py<PyFrozenSet>,
    called: Py<PySet>,
    callable: Py<PyDict>,
    function: Py<PyType>,
    method: Py<PyType>,
    builtin: Py<PyType>,
) -> PyResult<[Py<PyAny>; 3]> {
    let python = [see.clone_ref(py), receiver.clone_ref(py), subscripted.clone_ref(py)];
    let Some(symbols) = Symbols::find() else { return Ok(python) };
    let [name, module, qualname, local] =
        ["__name__", "__module__", "__qualname__", "<locals>"].map(|name| PyString::intern(py, name).unbind());
    let known = Known {
        symbols,
        name,
        module,
        direct,
        plain,
        called,
        callable,
        local,
        qualname,
        function,
        method,
        builtin,
        see,
        receiver,
        subscripted,
    };
    // Of a package that is imported anew, the functions decide themselves.
    if KNOWN.set(known).is_err() {
        return Ok(python);
    }
    let native: [(&CStr, Fast); 3] =
        [(c"see", self::see), (c"receiver", self::receiver), (c"subscripted", self::subscripted)];
    let made: Vec<Py<PyAny>> =
        native.into_iter().map(|(name, function)| install(py, name, function)).collect::<PyResult<_>>()?;
    made.try_into().map_err(|_| pyo3::exceptions::PyRuntimeError::new_err("there are three functions"))
}

/// A function of Python's own kind.
fn install(py: Python<'_>, name: &'static CStr, function: Fast) -> PyResult<Py<PyAny>> {
    // It lives as long as the process, as the function refers to it.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: function },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: std::ptr::null(),
    }));
    let module = PyString::new(py, "bh._numpy.foreign");
    // SAFETY: the definition and its name live on, and the flags are those of the function's type.
    unsafe {
        let made = ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), module.as_ptr());
        Bound::from_owned_ptr_or_err(py, made).map(Bound::unbind)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(site_functions, module)?)
}

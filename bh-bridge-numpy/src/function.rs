//! Functions of the package whose common calls on computed data are served without Python.

use crate::arguments::{self, Arguments, EntryPoint};
use crate::by_class::Asking;
use crate::by_numpy::ByNumpy;
use crate::call::{Call, Served};
use crate::ufunc::Ufunc;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::ffi::c_void;
use std::sync::{LazyLock, OnceLock};

/// Serves a call; `None` if it needs Python.
type Server = for<'a, 'py> fn(&Call<'a, 'py>) -> Served<'py>;

/// Functions by name.
const SERVERS: [(&str, Server); 88] = [
    ("zeros", crate::create::zeros),
    ("ones", crate::create::ones),
    ("full", crate::create::full),
    ("empty", crate::create::empty),
    ("zeros_like", crate::create::zeros_like),
    ("ones_like", crate::create::ones_like),
    ("empty_like", crate::create::empty_like),
    ("full_like", crate::create::full_like),
    ("arange", crate::create::arange),
    ("linspace", crate::create::linspace),
    ("array", crate::from_lists::array),
    ("asarray", crate::from_lists::asarray),
    ("asanyarray", crate::from_lists::asarray),
    ("copy", crate::create::copy),
    ("sum", crate::array_functions::folded_as),
    ("prod", crate::array_functions::folded_as),
    ("max", crate::array_functions::folded),
    ("min", crate::array_functions::folded),
    ("any", crate::array_functions::folded),
    ("all", crate::array_functions::folded),
    ("cumsum", crate::array_functions::cumsum),
    ("cumprod", crate::array_functions::cumprod),
    ("trace", crate::array_functions::trace),
    ("clip", crate::array_functions::clip),
    ("vdot", crate::array_functions::vdot),
    ("dot", crate::array_functions::dot),
    ("matmul", crate::array_functions::matmul),
    ("count_nonzero", crate::array_functions::count_nonzero),
    ("flatnonzero", crate::array_functions::flatnonzero),
    ("take", crate::array_functions::take),
    ("argmax", crate::order::argmax),
    ("argmin", crate::order::argmin),
    ("sort", crate::order::sort),
    ("argsort", crate::order::argsort),
    ("interp", crate::interpolation::interp),
    ("meshgrid", crate::create::meshgrid),
    ("gradient", crate::gradient::gradient),
    ("eye", crate::create::eye),
    ("nonzero", crate::array_functions::nonzero),
    ("inner", crate::array_functions::inner),
    ("where", crate::array_functions::choice),
    ("concatenate", crate::join::concatenate),
    ("stack", crate::join::stack),
    ("hstack", crate::join::hstack),
    ("vstack", crate::join::vstack),
    ("column_stack", crate::join::column_stack),
    ("reshape", crate::shape::reshape),
    ("ravel", crate::shape::ravel),
    ("squeeze", crate::shape::squeeze),
    ("transpose", crate::shape::transpose),
    ("expand_dims", crate::shape::expand_dims),
    ("swapaxes", crate::shape::swapaxes),
    ("diagonal", crate::shape::diagonal),
    ("fill_diagonal", crate::shape::fill_diagonal),
    ("diag", crate::shape::diag),
    ("flip", crate::shape::flip),
    ("flipud", crate::shape::flipud),
    ("fliplr", crate::shape::fliplr),
    ("ufunc.outer", crate::array_functions::outer_of),
    ("atleast_1d", crate::shape::atleast_1d),
    ("atleast_2d", crate::shape::atleast_2d),
    ("atleast_3d", crate::shape::atleast_3d),
    ("roll", crate::arrange::roll),
    ("pad", crate::arrange::pad),
    ("repeat", crate::repeat::repeat),
    ("outer", crate::array_functions::outer),
    ("var", crate::statistics::var),
    ("std", crate::statistics::std),
    ("mean", crate::statistics::mean),
    ("nansum", crate::without_nan::folded),
    ("nanprod", crate::without_nan::folded),
    ("nancumsum", crate::without_nan::cumsum),
    ("nanmean", crate::without_nan::mean),
    ("nanvar", crate::without_nan::var),
    ("nanstd", crate::without_nan::std),
    ("linalg.norm", crate::statistics::norm),
    ("fft.fft", crate::fourier::fft),
    ("fft.ifft", crate::fourier::ifft),
    ("fft.rfft", crate::fourier::rfft),
    ("fft.irfft", crate::fourier::irfft),
    ("fft.fft2", crate::fourier::fft2),
    ("fft.ifft2", crate::fourier::ifft2),
    ("fft.rfft2", crate::fourier::rfft2),
    ("fft.irfft2", crate::fourier::irfft2),
    ("fft.fftn", crate::fourier::fftn),
    ("fft.ifftn", crate::fourier::ifftn),
    ("fft.rfftn", crate::fourier::rfftn),
    ("fft.irfftn", crate::fourier::irfftn),
];

/// Methods of arrays by name, besides functions that are methods, too.
const METHODS: [(&str, Server); 11] = [
    ("item", crate::element::item),
    ("astype", crate::shape::astype),
    ("flatten", crate::shape::flatten),
    ("copy", crate::create::copy),
    ("reshape", crate::shape::reshape_method),
    ("clip", crate::array_functions::clip),
    ("conj", crate::array_functions::conjugate),
    ("conjugate", crate::array_functions::conjugate),
    ("tobytes", crate::dump::tobytes),
    ("tolist", crate::dump::tolist),
    ("transpose", crate::shape::transpose_method),
];

static METHOD: OnceLock<Py<PyAny>> = OnceLock::new();

/// `PyMethod_New`, which every Python has, but not in the stable ABI: calling the class takes longer than many methods do.
type BindMethod = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

static BIND: LazyLock<Option<BindMethod>> = LazyLock::new(|| {
    // SAFETY: the name ends with a zero; Python's documentation gives the function this type, and null is `None`.
    unsafe { std::mem::transmute::<*mut c_void, Option<_>>(libc::dlsym(libc::RTLD_DEFAULT, c"PyMethod_New".as_ptr())) }
});

/// A function in Python, and what serves most calls of it.
#[pyclass(frozen, dict, weakref, subclass, module = "bh._native")]
pub struct Function {
    entry: EntryPoint,
    serve: Server,
    python: Py<PyAny>,
    ufunc: Option<Py<Ufunc>>,
    by_numpy: Option<ByNumpy>,
    asking: Option<Asking>,
    /// How many of the leading arguments may be arrays, and so lists of numbers.
    lists: usize,
    /// As an attribute of a class, does it become a method of the instances?
    binds: bool,
}

/// A function that is a method of arrays.
#[pyclass(frozen, extends = Function, module = "bh._native")]
pub struct Method;

/// Serves the calls that are all Python's.
fn nothing<'py>(_: &Call<'_, 'py>) -> Served<'py> {
    Ok(None)
}

/// The server of calls of `name` in one of the tables.
fn server(tables: &[&[(&str, Server)]], name: &str) -> PyResult<Server> {
    let found = tables.iter().copied().flatten().find(|(known, _)| *known == name);
    found.map(|(_, serve)| *serve).ok_or_else(|| PyValueError::new_err(format!("nothing serves calls of '{name}'")))
}

/// The entry of calls.
///
/// # Safety
/// `function` must be an object of this class, and the arguments be as [`Arguments::new`] asks: this is called by
/// Python only.
unsafe fn call_function(
    py: Python<'_>,
    function: *mut ffi::PyObject,
    all: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: the object is a function, and the arguments are those of Python's call, which outlives them, as
    // `# Safety` asks.
    let (function, arguments) = unsafe {
        (Borrowed::from_ptr(py, function).cast_unchecked::<Function>(), Arguments::new(py, all, count, names))
    };
    function.get().call(arguments).map(Bound::into_ptr)
}

const ENTRY: EntryPoint =
    pyo3::impl_::trampoline::get_trampoline_function!(fastcall_cfunction_with_keywords, call_function);

/// A function as a method of an object.
pub fn bind<'py>(function: &Bound<'py, PyAny>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    if let Some(bind) = *BIND {
        // SAFETY: both are objects, and the thread is attached; the result is a new reference, or null with an exception.
        return unsafe { Bound::from_owned_ptr_or_err(py, bind(function.as_ptr(), object.as_ptr())) };
    }
    let method = match METHOD.get() {
        Some(method) => method,
        None => {
            let method = py.import("types")?.getattr("MethodType")?.unbind();
            METHOD.get_or_init(|| method)
        }
    };
    method.bind(py).call1((function, object))
}

impl Function {
    #[inline]
    fn call<'py>(&self, arguments: Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        if crate::shortcut::taken()
            && let Some(result) = self.served(arguments)?
        {
            return Ok(result);
        }
        arguments.call(self.python.bind(arguments.py()))
    }

    #[inline]
    fn served<'py>(&self, arguments: Arguments<'_, 'py>) -> Served<'py> {
        let (py, ufunc) = (arguments.py(), self.ufunc.as_ref().map(Py::get));
        if let Some(result) = (self.serve)(&Call { arguments, ufunc })? {
            return Ok(Some(result));
        }
        if let Some(by_numpy) = &self.by_numpy
            && let Some(result) = by_numpy.serve(arguments)?
        {
            return Ok(Some(result));
        }
        if self.lists > 0 {
            let count = self.lists.min(arguments.unnamed().len());
            if let Some(all) = crate::foreign::of_lists(py, crate::context::current(py)?, arguments.all(), count) {
                return (self.serve)(&Call { arguments: arguments.with(&all), ufunc });
            }
        }
        self.asking.as_ref().map_or(Ok(None), |asking| asking.serve(arguments))
    }
}

#[pymethods]
impl Method {
    /// The method `name`, whose other calls go to `python`; without a name, `by_numpy` alone serves calls. The first `lists`
    /// arguments may be lists of numbers.
    #[new]
    #[pyo3(signature = (name, python, ufunc=None, by_numpy=None, lists=0))]
    fn new(
        name: Option<&str>,
        python: Py<PyAny>,
        ufunc: Option<Py<Ufunc>>,
        by_numpy: Option<ByNumpy>,
        lists: usize,
    ) -> PyResult<PyClassInitializer<Method>> {
        let serve = name.map_or(Ok(nothing as Server), |name| server(&[&METHODS, &SERVERS], name))?;
        let function = Function { entry: ENTRY, serve, python, ufunc, by_numpy, asking: None, lists, binds: true };
        Ok(PyClassInitializer::from(function).add_subclass(Method))
    }
}

#[pymethods]
impl Function {
    /// The function `name`, whose other calls go to `python`; without a name, `by_numpy` alone serves calls. The first `lists`
    /// arguments may be lists of numbers. `asking`: NumPy's function, if that asks classes of arguments what to do.
    #[new]
    #[pyo3(signature = (name, python, ufunc=None, binds=true, by_numpy=None, lists=0, asking=None))]
    fn new(
        name: Option<&str>,
        python: Py<PyAny>,
        ufunc: Option<Py<Ufunc>>,
        binds: bool,
        by_numpy: Option<ByNumpy>,
        lists: usize,
        asking: Option<Py<PyAny>>,
    ) -> PyResult<Function> {
        let serve = name.map_or(Ok(nothing as Server), |name| server(&[&SERVERS], name))?;
        let asking = asking.map(Asking::new);
        Ok(Function { entry: ENTRY, serve, python, ufunc, by_numpy, asking, lists, binds })
    }

    /// Calls of the older form.
    #[pyo3(signature = (*arguments, **keywords))]
    fn __call__<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arguments::with(arguments, keywords, |arguments| self.call(arguments))
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        object: &Bound<'py, PyAny>,
        _class: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if object.is_none() || !slf.get().binds {
            return Ok(slf.clone().into_any());
        }
        bind(slf.as_any(), object)
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.python.bind(py).getattr(name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.python.bind(py).repr().map(|text| text.to_string())
    }

    /// Pickled by name, as functions are.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let home = slf.as_any().getattr_opt("_home")?.unwrap_or_else(|| PyString::new(py, "bh").into_any());
        let name = slf.get().python.bind(py).getattr("__name__")?;
        let named = py.import("bh._numpy.native_calls")?.getattr("named")?;
        PyTuple::new(py, [named, PyTuple::new(py, [name, home])?.into_any()])
    }
}

/// The names of functions that something serves, and those of the methods that are no such functions.
#[pyfunction]
fn served() -> (Vec<&'static str>, Vec<&'static str>) {
    let names = |table: &[(&'static str, Server)]| table.iter().map(|(name, _)| *name).collect();
    (names(&SERVERS), names(&METHODS))
}

/// Has functions called without tuples of their arguments.
fn enter(py: Python<'_>) -> PyResult<()> {
    let example = Bound::new(py, Function::new(None, py.None(), None, false, None, 0, None)?)?;
    let offset = (&raw const example.get().entry).addr() - example.as_ptr().addr();
    let functions = py.get_type::<Function>();
    arguments::enter(&functions, &functions, offset, false)?;
    arguments::enter(&py.get_type::<Method>(), &functions, offset, true)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Function>()?;
    module.add_class::<Method>()?;
    enter(module.py())?;
    module.add_function(wrap_pyfunction!(served, module)?)
}

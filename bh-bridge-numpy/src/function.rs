//! Functions of the package whose common calls on data at hand are served without Python.

use crate::array::Array;
use crate::strided::is_plain;
use crate::ufunc::Ufunc;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_void;
use std::sync::{LazyLock, OnceLock};

/// What a call gave.
pub type Served<'py> = PyResult<Option<Bound<'py, PyAny>>>;

/// Serves a call; `None` if it needs Python.
type Server = for<'a, 'py> fn(&Call<'a, 'py>) -> Served<'py>;

/// A call of a function.
pub struct Call<'a, 'py> {
    arguments: &'a Bound<'py, PyTuple>,
    keywords: Option<&'a Bound<'py, PyDict>>,
    /// The universal function that the function is made of.
    pub ufunc: Option<&'a Ufunc>,
}

impl<'py> Call<'_, 'py> {
    pub fn py(&self) -> Python<'py> {
        self.arguments.py()
    }

    /// The arguments, if they are so many and none has a name.
    pub fn plain<const N: usize>(&self) -> Option<[Bound<'py, PyAny>; N]> {
        if self.arguments.len() != N || self.keywords.is_some_and(|keywords| !keywords.is_empty()) {
            return None;
        }
        let mut all = self.arguments.iter();
        let all = [(); N].map(|()| all.next());
        all.iter().all(Option::is_some).then(|| all.map(|one| one.expect("they were counted")))
    }

    /// All arguments, if none has a name.
    pub fn unnamed(&self) -> Option<&Bound<'py, PyTuple>> {
        self.keywords.is_none_or(|keywords| keywords.is_empty()).then_some(self.arguments)
    }

    /// The only argument, if it is an array whose data may be at hand.
    pub fn array(&self) -> Option<PyRef<'py, Array>> {
        let [array] = self.plain()?;
        let array = array.cast_into_exact::<Array>().ok()?.try_borrow().ok()?;
        is_plain(&array).then_some(array)
    }

    /// One or two arguments, of which the second may be named.
    pub fn pair(&self, name: &str) -> Option<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let named = match self.keywords.filter(|keywords| !keywords.is_empty()) {
            Some(keywords) if keywords.len() == 1 => Some(keywords.get_item(name).ok()??),
            Some(_) => return None,
            None => None,
        };
        match (self.arguments.len(), named) {
            (1, named) => Some((self.arguments.get_item(0).ok()?, named)),
            (2, None) => Some((self.arguments.get_item(0).ok()?, self.arguments.get_item(1).ok())),
            _ => None,
        }
    }
}

/// Functions by name.
const SERVERS: [(&str, Server); 44] = [
    ("zeros", crate::create::zeros),
    ("ones", crate::create::ones),
    ("full", crate::create::full),
    ("empty", crate::create::empty),
    ("zeros_like", crate::create::zeros_like),
    ("ones_like", crate::create::ones_like),
    ("empty_like", crate::create::empty_like),
    ("arange", crate::create::arange),
    ("array", crate::create::array),
    ("asarray", crate::create::asarray),
    ("asanyarray", crate::create::asarray),
    ("copy", crate::create::copy),
    ("sum", crate::whole::folded),
    ("prod", crate::whole::folded),
    ("max", crate::whole::folded),
    ("min", crate::whole::folded),
    ("any", crate::whole::folded),
    ("all", crate::whole::folded),
    ("dot", crate::whole::product),
    ("matmul", crate::whole::product),
    ("count_nonzero", crate::whole::count_nonzero),
    ("flatnonzero", crate::whole::flatnonzero),
    ("take", crate::whole::take),
    ("argmax", crate::order::argmax),
    ("argmin", crate::order::argmin),
    ("sort", crate::order::sort),
    ("eye", crate::create::eye),
    ("nonzero", crate::whole::nonzero),
    ("inner", crate::whole::inner),
    ("where", crate::whole::choice),
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
    ("roll", crate::join::roll),
    ("outer", crate::whole::outer),
    ("var", crate::moment::var),
    ("std", crate::moment::std),
];

/// Methods of arrays by name, besides functions that are methods, too.
const METHODS: [(&str, Server); 4] = [
    ("astype", crate::shape::astype),
    ("flatten", crate::shape::flatten),
    ("copy", crate::create::copy),
    ("reshape", crate::shape::reshape_method),
];

static METHOD: OnceLock<Py<PyAny>> = OnceLock::new();

/// `PyMethod_New`, which every Python has, but not in the stable ABI: calling the class takes longer than many methods do.
type BindMethod = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

static BIND: LazyLock<Option<BindMethod>> = LazyLock::new(|| {
    // SAFETY: the name ends with a zero; Python's documentation gives the function this type, and null is `None`.
    unsafe { std::mem::transmute::<*mut c_void, Option<_>>(libc::dlsym(libc::RTLD_DEFAULT, c"PyMethod_New".as_ptr())) }
});

/// A function in Python, and what serves most calls of it.
#[pyclass(frozen, dict, weakref, module = "bh._native")]
pub struct Function {
    serve: Server,
    python: Py<PyAny>,
    ufunc: Option<Py<Ufunc>>,
    /// As an attribute of a class, does it become a method of the instances?
    binds: bool,
}

/// Serves the calls that are all Python's.
fn nothing<'py>(_: &Call<'_, 'py>) -> Served<'py> {
    Ok(None)
}

#[pymethods]
impl Function {
    /// The function, or method, `name`, whose other calls go to `python`; without a name all of them.
    #[new]
    #[pyo3(signature = (name, python, ufunc=None, method=false, binds=true))]
    fn new(
        name: Option<&str>,
        python: Py<PyAny>,
        ufunc: Option<Py<Ufunc>>,
        method: bool,
        binds: bool,
    ) -> PyResult<Function> {
        let methods = if method { &METHODS[..] } else { &[] };
        let served = |name| methods.iter().chain(&SERVERS).find(|(known, _)| *known == name);
        let unknown = |name| PyValueError::new_err(format!("nothing serves calls of '{name}'"));
        let serve = match name {
            Some(name) => served(name).ok_or_else(|| unknown(name))?.1,
            None => nothing,
        };
        Ok(Function { serve, python, ufunc, binds })
    }

    #[pyo3(signature = (*arguments, **keywords))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = Call { arguments, keywords, ufunc: self.ufunc.as_ref().map(Py::get) };
        if crate::shortcut::taken()
            && let Some(result) = (self.serve)(&call)?
        {
            return Ok(result);
        }
        self.python.bind(py).call(arguments, keywords)
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        object: &Bound<'py, PyAny>,
        _class: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if object.is_none() || !slf.get().binds {
            return Ok(slf.clone().into_any());
        }
        if let Some(bind) = *BIND {
            // SAFETY: both are objects, and the thread is attached; the result is a new reference, or null with an exception.
            return unsafe { Bound::from_owned_ptr_or_err(py, bind(slf.as_ptr(), object.as_ptr())) };
        }
        let method = match METHOD.get() {
            Some(method) => method,
            None => {
                let method = py.import("types")?.getattr("MethodType")?.unbind();
                METHOD.get_or_init(|| method)
            }
        };
        method.bind(py).call1((slf, object))
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.python.bind(py).getattr(name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.python.bind(py).repr().map(|text| text.to_string())
    }

    /// Pickled by name, as functions are.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        Ok((py.import("bh._served")?.getattr("named")?, (self.python.bind(py).getattr("__name__")?,)))
    }
}

/// The names of functions that something serves.
#[pyfunction]
fn served_functions() -> Vec<&'static str> {
    SERVERS.iter().map(|(name, _)| *name).collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Function>()?;
    module.add_function(wrap_pyfunction!(served_functions, module)?)
}

//! Functions of other libraries, which get NumPy's arrays for those of bh. Calls without any go straight on: the libraries call
//! their functions themselves, and most of these calls have nothing of bh.

use crate::arguments::{self, Arguments, EntryPoint};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

/// Longer lists and tuples hold numbers, unless the first element says otherwise.
const SHORT: usize = 1000;
/// Boxes in boxes are looked into as deep as this.
const DEEPEST: usize = 16;

/// A library's function, and the arguments that it should see in another way. The function is called from here: no frame of Python
/// lies between it and its caller, so it finds the caller's variables.
#[pyclass(frozen, dict, weakref, module = "bh._native")]
pub struct Taught {
    entry: EntryPoint,
    function: Py<PyAny>,
    /// `f(args, kwargs)`: the arguments in the form in which the library sees them, and a function of the result, or None.
    exchange: Py<PyAny>,
    /// The classes of what it sees in another way, besides lists, tuples and dictionaries with such elements.
    classes: Vec<Py<PyType>>,
}

/// Does a library see the object as it is? `false` if that takes long to find.
fn is_plain(object: Borrowed<'_, '_, PyAny>, classes: &[Py<PyType>], depth: usize) -> bool {
    let class = object.get_type_ptr();
    if classes.iter().any(|known| known.as_ptr() == class.cast()) {
        return false;
    }
    let all = |count: usize, parts: &mut dyn Iterator<Item = Bound<'_, PyAny>>| {
        let looked_at = if count <= SHORT { count } else { 1 };
        depth < DEEPEST && parts.take(looked_at).all(|part| is_plain(part.as_borrowed(), classes, depth + 1))
    };
    if let Ok(list) = object.cast_exact::<PyList>() {
        return all(list.len(), &mut list.iter());
    }
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return all(tuple.len(), &mut tuple.iter());
    }
    match object.cast_exact::<PyDict>() {
        Ok(dict) => dict.len() <= SHORT && all(dict.len(), &mut dict.iter().map(|(_, value)| value)),
        Err(_) => true,
    }
}

/// The entry of calls.
///
/// # Safety
/// `taught` must be an object of this class, and the arguments be as [`Arguments::new`] asks: this is called by Python
/// only.
unsafe fn call_taught(
    py: Python<'_>,
    taught: *mut ffi::PyObject,
    all: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: the object is of this class, and the arguments are those of Python's call, which outlives them, as `# Safety`
    // asks.
    let (taught, arguments) =
        unsafe { (Borrowed::from_ptr(py, taught).cast_unchecked::<Taught>(), Arguments::new(py, all, count, names)) };
    taught.get().call(arguments).map(Bound::into_ptr)
}

const ENTRY: EntryPoint =
    pyo3::impl_::trampoline::get_trampoline_function!(fastcall_cfunction_with_keywords, call_taught);

/// Arguments in another form, and the function of the result.
type Exchanged<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>, Bound<'py, PyAny>);

impl Taught {
    #[inline]
    fn call<'py>(&self, arguments: Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        let is_plain = arguments.all().iter().all(|object| is_plain(object.bind_borrowed(py), &self.classes, 0));
        let function = self.function.bind(py);
        if is_plain {
            return arguments.call(function);
        }
        let (unnamed, keywords) = arguments.as_objects()?;
        let keywords = keywords.unwrap_or_else(|| PyDict::new(py));
        let exchanged = self.exchange.bind(py).call1((unnamed, keywords))?;
        let (unnamed, keywords, back): Exchanged<'py> = exchanged.extract()?;
        let result = function.call(unnamed, Some(&keywords))?;
        if back.is_none() { Ok(result) } else { back.call1((result,)) }
    }
}

#[pymethods]
impl Taught {
    /// A function that goes on to `function`, with the arguments that `exchange` gives if one of them is of one of the classes.
    #[new]
    fn new(function: Py<PyAny>, exchange: Py<PyAny>, classes: Vec<Py<PyType>>) -> Taught {
        Taught { entry: ENTRY, function, exchange, classes }
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
        match object.is_none() {
            true => Ok(slf.clone().into_any()),
            false => crate::function::bind(slf.as_any(), object),
        }
    }

    /// The class that `isinstance` sees: that of the function, which libraries ask for.
    #[getter(__class__)]
    fn class<'py>(&self, py: Python<'py>) -> Bound<'py, PyType> {
        self.function.bind(py).get_type()
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr(name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.function.bind(py).repr().map(|text| text.to_string())
    }

    /// Pickled by name, as functions are.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__qualname__")
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<Taught>()?;
    let example = Bound::new(py, Taught::new(py.None(), py.None(), Vec::new()))?;
    let offset = (&raw const example.get().entry).addr() - example.as_ptr().addr();
    let class = py.get_type::<Taught>();
    arguments::enter(&class, &class, offset, true)
}

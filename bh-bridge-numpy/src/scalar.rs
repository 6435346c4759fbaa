//! Computed elements and results, as NumPy's scalars.
//!
//! Only the program gets them. This package composes operations of arrays, also of such without dimensions, so the names that
//! the calling code sees distinguish its own calls. A program that follows the array API gets none: there, results without
//! dimensions are arrays.

use crate::array::Array;
use crate::array_api::follows_array_api;
pub use crate::numpy_api::scalar as numpy_scalar;
use crate::text::intern;
use bh_bytecode::Constant;
use bh_recorder::Store;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString, PyWeakrefReference};
use std::cell::RefCell;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scalar_at_hand, module)?)
}

/// A module outside of this package. Nothing of it is kept alive but its name.
struct Program {
    /// The address of the names that its code sees, if they are those of a module; they live at least as long as that.
    names: *const ffi::PyObject,
    module: Option<Py<PyWeakrefReference>>,
    name: Py<PyAny>,
}

thread_local! {
    /// The last module outside of this package that called.
    static PROGRAM: RefCell<Option<Program>> = const { RefCell::new(None) };
}

/// Is the code that runs the program's, and not this package's, and does it take numbers for results without dimensions?
#[inline]
pub fn asked_by_program(py: Python<'_>) -> bool {
    !follows_array_api() && is_in_program(py)
}

/// Is the code that runs the program's, and not this package's?
#[inline]
pub fn is_in_program(py: Python<'_>) -> bool {
    // SAFETY: the thread is attached; the result is borrowed, or null where no code of Python runs.
    let names = unsafe { ffi::PyEval_GetGlobals() };
    if names.is_null() {
        return true;
    }
    let known = PROGRAM.with(|known| {
        let Ok(known) = known.try_borrow() else { return false };
        known.as_ref().is_some_and(|known| known.has(py, names))
    });
    // SAFETY: a borrowed reference, as above, to what the code that runs keeps alive.
    known || is_program(&unsafe { Bound::from_borrowed_ptr(py, names) })
}

impl Program {
    /// Are these its names, or those of another module of its name?
    #[inline]
    fn has(&self, py: Python<'_>, names: *mut ffi::PyObject) -> bool {
        if let (Some(module), true) = (&self.module, self.names == names) {
            // SAFETY: the thread is attached, and the object is a weak reference; the result is borrowed, and only compared.
            return unsafe { ffi::PyWeakref_GetObject(module.as_ptr()) != ffi::Py_None() };
        }
        // SAFETY: the names are a dict and the key is a text; the result is borrowed, only compared, or null without an exception.
        let name = unsafe { ffi::PyDict_GetItemWithError(names, intern!(py, "__name__").as_ptr()) };
        name == self.name.as_ptr()
    }
}

/// Are these the names of a module outside of this package?
#[cold]
fn is_program(names: &Bound<'_, PyAny>) -> bool {
    let py = names.py();
    let Ok(names) = names.cast::<PyDict>() else { return true };
    let Ok(Some(name)) = names.get_item(intern!(py, "__name__")) else { return true };
    if is_own(&name) {
        return false;
    }
    let module = module_of(&name, names).and_then(|module| PyWeakrefReference::new(&module).ok()).map(Bound::unbind);
    let program = Program { names: names.as_ptr(), module, name: name.unbind() };
    let before = PROGRAM.with(|known| Some(known.try_borrow_mut().ok()?.replace(program)));
    drop(before);
    true
}

/// The module of this name, if these are its names.
fn module_of<'py>(name: &Bound<'py, PyAny>, names: &Bound<'py, PyDict>) -> Option<Bound<'py, PyModule>> {
    let py = name.py();
    // SAFETY: the thread is attached; the result is a new reference, or null, with an exception if the name cannot be one.
    let Some(module) = (unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyImport_GetModule(name.as_ptr())) }) else {
        drop(PyErr::take(py));
        return None;
    };
    let module = module.cast_into::<PyModule>().ok()?;
    module.dict().is(names).then_some(module)
}

/// Is it the name of a module of this package?
fn is_own(name: &Bound<'_, PyAny>) -> bool {
    let Ok(name) = name.cast::<PyString>() else { return false };
    let name = name.to_string_lossy();
    name == "bh" || name.starts_with("bh.")
}

/// The result of an operation as the caller gets it: a scalar of NumPy, if the result is one and its value is computed.
#[inline]
pub fn give<'py>(py: Python<'py>, result: Array) -> PyResult<Bound<'py, PyAny>> {
    if result.is_scalar()
        && crate::shortcut::taken()
        && asked_by_program(py)
        && let Some(value) = taken(&result)
    {
        return numpy_scalar(py, &value);
    }
    Ok(Bound::new(py, result)?.into_any())
}

/// A scalar of NumPy, if the array is one and its value is computed; else the array.
#[pyfunction]
fn scalar_at_hand<'py>(array: &Bound<'py, Array>) -> PyResult<Bound<'py, PyAny>> {
    let value = if crate::shortcut::taken() { taken(array.get()) } else { None };
    value.map_or_else(|| Ok(array.clone().into_any()), |value| numpy_scalar(array.py(), &value))
}

/// The value of a result that is computed, or becomes so without waiting.
fn taken(result: &Array) -> Option<Constant> {
    let (recorder, store, place) = (&result.context.recorder, result.store(), result.view.start());
    let id = match store {
        Store::Here(here) => return here.value(place).filter(|_| recorder.is_open()),
        Store::Handle(id) => id,
    };
    let found = recorder.hand()?.value(store, place);
    if found.is_some() || !recorder.settle_part(id, 1) { found } else { recorder.hand()?.value(store, place) }
}

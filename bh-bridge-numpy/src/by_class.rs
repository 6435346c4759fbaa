//! Calls with operands of classes that decide what functions do: classes derived from NumPy's arrays, and classes with functions of their
//! own. NumPy's function asks the classes. The arrays of bh beside their operands have to be little and computed; other calls go to Python.

use crate::arguments::Arguments;
use crate::array::Array;
use crate::by_numpy::{Home, lifted, shown};
use crate::call::Served;
use crate::numpy_api::HostArray;
use crate::numpy_types::{is_derived, is_dtype, numpy_array};
use crate::operand::is_number;
use crate::strided::{hand_for, is_plain};
use crate::text::intern;
use crate::ufunc::Ufunc;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple, PyType};
use std::sync::OnceLock;

/// Python's functions that know classes, and NumPy's function that shows the memory of an array.
struct Classes {
    /// `f(values)`: has a class among those of the values functions of its own?
    decided: Py<PyAny>,
    /// `f(value)`: has the class, which is not derived from NumPy's, universal functions of its own?
    overrides: Py<PyAny>,
    show: Py<PyAny>,
}

static CLASSES: OnceLock<Classes> = OnceLock::new();

/// Makes known the functions of Python that are asked.
#[pyfunction]
fn set_classes(decided: Py<PyAny>, overrides: Py<PyAny>, show: Py<PyAny>) {
    // A second call, of a reloaded package, changes nothing.
    let _ = CLASSES.set(Classes { decided, overrides, show });
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_classes, module)?)
}

/// The most elements of a little array.
const LITTLE: i64 = 1 << 14;
/// The deepest nesting of lists that are looked into, and the longest.
const DEEPEST: usize = 3;
const LONGEST: usize = 64;

/// Is it neither an array of bh or of NumPy's own class, nor a number, a text, None, a class or a type of elements?
fn is_other(object: &Bound<'_, PyAny>) -> bool {
    let is_known = object.cast_exact::<Array>().is_ok()
        || HostArray::of(object).is_some()
        || object.is_none()
        || is_number(object)
        || object.is_exact_instance_of::<PyString>()
        || object.is_instance_of::<PyType>()
        || is_dtype(object);
    !is_known
}

/// An array that is little and computed, as NumPy's: a copy, or its memory.
fn given<'py>(classes: &Classes, array: &Bound<'py, Array>, is_memory: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !is_memory || array.get().is_scalar() {
        return shown(array, LITTLE);
    }
    memory_of(classes.show.bind(array.py()), array)
}

/// NumPy's array over the memory of an array that is little and computed; `show` is NumPy's function that makes it.
pub fn memory_of<'py>(show: &Bound<'py, PyAny>, array: &Bound<'py, Array>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let this = array.get();
    let fits = is_plain(this) && this.len() <= LITTLE && hand_for(std::iter::once(this)).is_some();
    fits.then(|| show.call1((array,))).transpose()
}

/// Is it an instance of a class derived from NumPy's, which has universal functions of its own?
fn sees_operands(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let name = intern!(py, "__array_ufunc__");
    Ok(is_derived(object) && !object.get_type().getattr(name)?.is(&numpy_array(py)?.bind(py).getattr(name)?))
}

/// A call of a universal function of NumPy's. `overriding`: may operands have universal functions of their own, without being derived from
/// NumPy's arrays?
pub fn universal<'py>(py: Python<'py>, ufunc: &Ufunc, operands: &[Py<PyAny>], overriding: bool) -> Served<'py> {
    let Some(classes) = CLASSES.get().filter(|_| crate::shortcut::taken() && !crate::warning::errors_asked()) else {
        return Ok(None);
    };
    if !operands.iter().any(|object| is_other(object.bind(py))) {
        return Ok(None);
    }
    let (mut is_memory, home) = (false, Home::default());
    for object in operands {
        let object = object.bind(py);
        if let Ok(array) = object.cast_exact::<Array>() {
            home.meet(array.get().context);
        } else if sees_operands(object)? {
            is_memory = true;
        } else if is_other(object)
            && !is_derived(object)
            && !(overriding && classes.overrides.bind(py).call1((object,))?.is_truthy()?)
        {
            return Ok(None);
        }
    }
    let mut all = Vec::with_capacity(operands.len());
    for object in operands {
        let object = object.bind(py);
        let one = match object.cast_exact::<Array>() {
            Ok(array) => given(classes, array, is_memory)?,
            Err(_) => Some(object.clone()),
        };
        let Some(one) = one else { return Ok(None) };
        all.push(one);
    }
    let Some(result) = called(ufunc.numpy(py).call1(PyTuple::new(py, &all)?))? else { return Ok(None) };
    // A class may return an operand: the program gets its own.
    match all.iter().position(|one| one.is(&result)) {
        Some(place) => Ok(Some(operands[place].bind(py).clone())),
        None => lifted(result, home.context(py)?).map(Some),
    }
}

/// The result of NumPy's function. `None` if it refuses objects that turn out to hold arrays of bh: Python shows them in another way.
fn called(result: PyResult<Bound<'_, PyAny>>) -> Served<'_> {
    match result {
        Err(error) => Python::attach(|py| {
            let is_refused = || error.value(py).to_string().contains("setting an array element with a sequence");
            if error.is_instance_of::<PyValueError>(py) && is_refused() { Ok(None) } else { Err(error.clone_ref(py)) }
        }),
        Ok(result) => Ok(Some(result)),
    }
}

/// An operator. A second operand of a class derived from NumPy's comes first: its reflected method says what the result is. Python
/// compares what NumPy's function does not, and leaves operators to classes without universal functions.
pub fn operator<'py>(ufunc: &Ufunc, a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> Served<'py> {
    let py = a.py();
    let Some(name) = ufunc.reflected().filter(|_| is_other(a) || is_other(b)) else { return Ok(None) };
    if a.cast_exact::<Array>().is_ok() && is_derived(b) {
        let result = b.get_type().getattr(name)?.call1((b, a))?;
        return Ok((!result.is(py.NotImplemented())).then_some(result));
    }
    let is_left = |object: &Bound<'_, PyAny>| -> PyResult<bool> {
        let known = object.get_type().getattr_opt(intern!(py, "__array_ufunc__"))?;
        Ok(is_derived(object) || known.is_some_and(|known| known.is_none()))
    };
    if name.bind(py) == "__eq__" || name.bind(py) == "__ne__" || is_left(a)? || is_left(b)? {
        return Ok(None);
    }
    universal(py, ufunc, &[a.clone().unbind(), b.clone().unbind()], true)
}

/// How a call of a function looks to the classes of its arguments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    /// None decides anything.
    Nobody,
    /// One is derived from NumPy's, so NumPy's function is to make arrays of it.
    Derived,
    /// One has functions of its own.
    Deciding,
}

/// A function of NumPy's that asks the classes of its arguments.
pub struct Asking {
    function: Py<PyAny>,
}

impl Asking {
    pub fn new(function: Py<PyAny>) -> Asking {
        Asking { function }
    }

    /// Calls NumPy's function. `None` for calls that Python has to look at.
    pub fn serve<'py>(&self, arguments: Arguments<'_, 'py>) -> Served<'py> {
        let py = arguments.py();
        let Some(classes) = CLASSES.get() else { return Ok(None) };
        let mut asked = Asked::Nobody;
        for object in arguments.all() {
            let Some(one) = asks(classes, object.bind(py), 0)? else { return Ok(None) };
            asked = asked.max(one);
        }
        let writes = || arguments.get(intern!(py, "out")).is_some_and(|out| !out.is_none());
        if asked == Asked::Nobody || arguments.named() > 0 && writes() {
            return Ok(None);
        }
        let home = Home::default();
        let mut all = Vec::with_capacity(arguments.all().len());
        for object in arguments.all() {
            let Some(one) = argument(classes, object.bind(py), asked, &home)? else { return Ok(None) };
            all.push(one.unbind());
        }
        let Some(result) = called(arguments.with(&all).call(self.function.bind(py)))? else { return Ok(None) };
        lifted(result, home.context(py)?).map(Some)
    }
}

/// The classes that are asked about an argument. `None` for calls that Python has to look at.
fn asks(classes: &Classes, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Option<Asked>> {
    if !is_other(object) {
        return Ok(Some(Asked::Nobody));
    }
    let parts: Vec<_> = match (object.cast_exact::<PyList>(), object.cast_exact::<PyTuple>()) {
        _ if depth == DEEPEST => return Ok(None),
        (Ok(list), _) if list.len() <= LONGEST => list.iter().collect(),
        (_, Ok(tuple)) if tuple.len() <= LONGEST => tuple.iter().collect(),
        (Err(_), Err(_)) => {
            if classes.decided.bind(object.py()).call1(((object,),))?.is_truthy()? {
                return Ok(Some(Asked::Deciding));
            }
            return Ok(is_derived(object).then_some(Asked::Derived));
        }
        _ => return Ok(None),
    };
    let mut asked = Asked::Nobody;
    for part in &parts {
        let Some(one) = asks(classes, part, depth + 1)? else { return Ok(None) };
        asked = asked.max(one);
    }
    Ok(Some(asked))
}

/// An argument as NumPy's function gets it: arrays of bh are given to classes with functions of their own as they are, and are copied
/// beside instances of derived classes. `None` if they are not little, or not computed.
fn argument<'py>(
    classes: &Classes,
    object: &Bound<'py, PyAny>,
    asked: Asked,
    home: &Home,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if let Ok(array) = object.cast_exact::<Array>() {
        home.meet(array.get().context);
        return if asked == Asked::Deciding { Ok(Some(object.clone())) } else { given(classes, array, false) };
    }
    let parts: Vec<_> = match (object.cast_exact::<PyList>(), object.cast_exact::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return Ok(Some(object.clone())),
    };
    let mut all = Vec::with_capacity(parts.len());
    for part in &parts {
        let Some(one) = argument(classes, part, asked, home)? else { return Ok(None) };
        all.push(one);
    }
    if all.iter().zip(&parts).all(|(one, part)| one.is(part)) {
        return Ok(Some(object.clone()));
    }
    Ok(Some(match object.is_exact_instance_of::<PyList>() {
        true => PyList::new(py, all)?.into_any(),
        false => PyTuple::new(py, all)?.into_any(),
    }))
}

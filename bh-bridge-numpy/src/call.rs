//! A call of a function that is served without Python.

use crate::arguments::Arguments;
use crate::array::Array;
use crate::strided::is_plain;
use crate::ufunc::Ufunc;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// What a call gave.
pub type Served<'py> = PyResult<Option<Bound<'py, PyAny>>>;

/// A call of a function.
pub struct Call<'a, 'py> {
    pub arguments: Arguments<'a, 'py>,
    /// The universal function that the function is made of.
    pub ufunc: Option<&'a Ufunc>,
}

impl<'a, 'py> Call<'a, 'py> {
    pub fn py(&self) -> Python<'py> {
        self.arguments.py()
    }

    /// The arguments, if there are `N` of them and none has a name.
    #[inline]
    pub fn plain<const N: usize>(&self) -> Option<[&'a Bound<'py, PyAny>; N]> {
        let all: &[Py<PyAny>; N] = self.unnamed()?.try_into().ok()?;
        Some(all.each_ref().map(|object| object.bind(self.py())))
    }

    /// All arguments, if none has a name.
    #[inline]
    pub fn unnamed(&self) -> Option<&'a [Py<PyAny>]> {
        (self.arguments.named() == 0).then(|| self.arguments.unnamed())
    }

    /// The only argument, if it is an array whose data may be at hand.
    #[inline]
    pub fn array(&self) -> Option<&'a Bound<'py, Array>> {
        let [array] = self.plain()?;
        array.cast_exact::<Array>().ok().filter(|array| is_plain(array.get()))
    }

    /// One or two arguments, of which the second may be named.
    pub fn pair(&self, name: &Bound<'py, PyString>) -> Option<(&'a Bound<'py, PyAny>, Option<&'a Bound<'py, PyAny>>)> {
        let object = |object: &'a Py<PyAny>| object.bind(self.py());
        match (self.arguments.unnamed(), self.arguments.named()) {
            ([first], 0) => Some((object(first), None)),
            ([first], 1) => Some((object(first), Some(self.arguments.get(name)?))),
            ([first, second], 0) => Some((object(first), Some(object(second)))),
            _ => None,
        }
    }
}

//! A call of a function that is served without Python.

use crate::arguments::Arguments;
use crate::array::Array;
use crate::fold::Given;
use crate::strided::is_plain;
use crate::text::intern;
use crate::ufunc::Ufunc;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The result of a call.
pub type Served<'py> = PyResult<Option<Bound<'py, PyAny>>>;

/// Arguments without names, and options, of which each may be missing.
pub type WithOptions<'a, 'py, const N: usize> = (&'a [Py<PyAny>], [Option<&'a Bound<'py, PyAny>>; N]);

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

    /// The only argument, if it is an array whose data may already be computed.
    #[inline]
    pub fn array(&self) -> Option<&'a Bound<'py, Array>> {
        let [array] = self.plain()?;
        array.cast_exact::<Array>().ok().filter(|array| is_plain(array.get()))
    }

    /// The arguments of a fold: the array, the axes, and whether these stay; `None` if there are others.
    /// `others` are arguments with names that the caller knows.
    pub fn fold_beside(&self, others: usize) -> Option<(&'a Bound<'py, PyAny>, Given<'py>, Given<'py>)> {
        let (arguments, py) = (&self.arguments, self.py());
        let (object, axis) = match arguments.unnamed() {
            [object] => (object, None),
            [object, axis] => (object, Some(axis.bind(py))),
            _ => return None,
        };
        let (named, keepdims) = (arguments.get(intern!(py, "axis")), arguments.get(intern!(py, "keepdims")));
        let known = usize::from(named.is_some()) + usize::from(keepdims.is_some()) + others;
        if known != arguments.named() || axis.is_some() && named.is_some() {
            return None;
        }
        let axis = axis.or(named).map_or_else(|| py.None().into_bound(py), Bound::clone);
        let keepdims = keepdims.map_or_else(Given::default, |keepdims| Given::new(keepdims.clone()));
        Some((object.bind(py), Given::new(axis), keepdims))
    }

    /// The first `count` arguments, which have no names, and the options of these names behind them, by their places or names.
    /// `None` if there are others.
    pub fn options<const N: usize>(
        &self,
        count: usize,
        names: [&Bound<'py, PyString>; N],
    ) -> Option<WithOptions<'a, 'py, N>> {
        let (arguments, py) = (&self.arguments, self.py());
        let (given, placed) = arguments.unnamed().split_at_checked(count)?;
        let (mut named, mut found) = (0, [None; N]);
        for (place, name) in names.into_iter().enumerate() {
            let by_name = if arguments.named() > 0 { arguments.get(name) } else { None };
            named += usize::from(by_name.is_some());
            found[place] = match (placed.get(place), by_name) {
                (Some(_), Some(_)) => return None,
                (Some(placed), None) => Some(placed.bind(py)),
                (None, by_name) => by_name,
            };
        }
        (placed.len() <= N && named == arguments.named()).then_some((given, found))
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

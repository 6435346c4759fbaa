"""NumPy programs' uses of the class of arrays itself: making arrays, checking instances, deriving classes.

The class of bh's arrays is native. A class derived from it is one derived from NumPy's arrays, whose instances NumPy computes
with: what such a class overrides has no place in a batch.
"""

import functools
import sys
import threading
import types

import numpy as np

from .. import _native
from .._functions import creation
from .._numpy import fallback, imports
from .._numpy.provided import equivalent, public
from .._numpy.registry import FUNCTIONS, METHODS
from .element_types import MOST_DIMENSIONS, code_of

native_class = _native.ndarray


class _Inherited:
    """NumPy's `__array_ufunc__`; to methods that call it of themselves one that takes bh's arrays and functions, too."""

    def __get__(self, instance, owner):
        if instance is None:
            # By this, NumPy knows that a class does not decide about functions.
            return np.ndarray.__array_ufunc__

        def inherited(function, method, *inputs, **keywords):
            show = lambda value: np.asarray(value) if type(value) is native_class and not value._scalar else fallback.lower(value)
            out = keywords.get("out")
            if out is not None:
                keywords["out"] = tuple(map(show, out)) if isinstance(out, tuple) else show(out)
            keywords = {name: value if name == "out" else show(value) for name, value in keywords.items()}
            return np.ndarray.__array_ufunc__(instance, show(function), method, *map(show, inputs), **keywords)

        return inherited


class Derived(np.ndarray):
    """The base of classes derived from the class of arrays: NumPy's class, in methods that ask for bh's."""

    def __init_subclass__(cls, **keywords):
        """Makes methods by which a class decides about functions meet what the program knows."""
        super().__init_subclass__(**keywords)
        for name, given in _DECIDING.items():
            if isinstance(vars(cls).get(name), types.FunctionType):
                setattr(cls, name, given(vars(cls)[name]))

    def view(self, /, *args, **kwargs):
        """Another view of the same memory; the class of arrays stands for NumPy's."""
        args = tuple(np.ndarray if arg is native_class else arg for arg in args)
        kwargs = {name: np.ndarray if value is native_class else value for name, value in kwargs.items()}
        return super().view(*args, **kwargs)

    @property
    def __class__(self):
        """The class of arrays as the program names it, for what is shown for one of NumPy's own arrays."""
        return native_class if type(self) is Derived else type(self)

    @__class__.setter
    def __class__(self, kind):
        object.__dict__["__class__"].__set__(self, kind)

    __array_ufunc__ = _Inherited()

    def nonzero(self):
        """The indices of elements that are not zero, as arrays of the class that this one is derived from."""
        return fallback.lift(super().nonzero())

    def __array_function__(self, function, types, args, kwargs):
        """Calls functions that the class does not override, by NumPy, which sees the memory of arrays of bh among the arguments."""
        if native_class in types:
            types, show = tuple(kind for kind in types if kind is not native_class), fallback.Shown()
            args, kwargs = tuple(map(show, args)), {name: show(value) for name, value in kwargs.items()}
        return super().__array_function__(_asked(function), types, args, kwargs)

    def __array_wrap__(self, array, /, *rest):
        """The array as an instance of the class."""
        return super().__array_wrap__(fallback.lower(array), *rest)


# Functions of this package by NumPy's as the program names them, and NumPy's by this package's.
named, originals = {}, {}


class _Deciding(threading.local):
    """The functions that classes decide about at present, innermost last: this package's, and NumPy's. Two of NumPy's may be one here."""

    def __init__(self):
        self.pairs = []


_deciding = _Deciding()


def _asked(function):
    """NumPy's function for one of this package's."""
    found = (original for mine, original in reversed(_deciding.pairs) if mine is function)
    return next(found, None) or originals.get(function, function)


def _given_own(method):
    """A class's `__array_function__`, given this package's functions for NumPy's: by those the program names them."""

    @functools.wraps(method)
    def decide(self, function, types, args, kwargs):
        mine = named.get(function) or equivalent(function) or function
        _deciding.pairs.append((mine, function))
        try:
            return method(self, mine, types, args, kwargs)
        finally:
            _deciding.pairs.pop()

    return decide


def _universal(function):
    """The universal function that the program knows by the name of NumPy's."""
    return public.get(function.__name__, function) if getattr(np, function.__name__, None) is function else function


def _given_universal(method):
    """A class's `__array_ufunc__`, given this package's universal functions for NumPy's."""

    @functools.wraps(method)
    def decide(self, function, how, *inputs, **keywords):
        return method(self, _universal(function), how, *inputs, **keywords)

    return decide


def _given_views(method):
    """A class's `__array_ufunc__`, given NumPy's own arrays in a form whose `view` knows the class of this package's arrays."""

    def seen(value):
        if type(value) is tuple:
            return tuple(map(seen, value))
        if type(value) is not np.ndarray:
            return value
        own = fallback.shown_by(value)
        return value.view(Derived) if own is None else own

    @functools.wraps(method)
    def decide(self, function, how, *inputs, **keywords):
        function = _universal(function)
        keywords = {name: seen(value) for name, value in keywords.items()}
        # NumPy's scalars know no view as an array of bh, so that results in here are not made such.
        taken = _native.set_shortcuts(False)
        try:
            result = method(self, function, how, *map(seen, inputs), **keywords)
        finally:
            _native.set_shortcuts(taken)
        return result.view(np.ndarray) if type(result) is Derived else result

    return decide


fallback.usual.add(Derived.__array_function__)

def _given_plain(method):
    """A class's `__array_finalize__`, given what has the class of arrays that the program names for one of NumPy's own arrays."""

    @functools.wraps(method)
    def finalize(self, source):
        return method(self, source.view(Derived) if type(source) is np.ndarray else source)

    return finalize


# The methods by which classes decide about functions, and about their instances.
_DECIDING = {"__array_function__": _given_own, "__array_ufunc__": _given_views, "__array_finalize__": _given_plain}


# The same of classes that are no arrays.
_CONTAINING = {"__array_function__": _given_own, "__array_ufunc__": _given_universal}


def _names_package(scope):
    """Is this package NumPy to the code of a module, which does not have NumPy itself as well?"""
    values = list(scope.values())
    is_own = any(value is sys.modules["bh"] or isinstance(value, (_native.Function, _native.Ufunc)) for value in values)
    return is_own and not any(value is np for value in values)


def _teach_container(kind):
    """Has a class that decides about functions, and is no array, find the functions that its module knows by NumPy's names."""
    for name, show in _CONTAINING.items():
        owner = next(one for one in (*kind.__mro__, None) if one is None or name in vars(one))
        method = owner and vars(owner)[name]
        if isinstance(method, types.FunctionType) and not hasattr(method, "_shows_own") and _names_package(method.__globals__):
            shown = show(method)
            shown._shows_own = True
            setattr(owner, name, shown)


fallback.teach = _teach_container


class ArrayClass(type):
    """The class of the class of arrays."""

    def __new__(mcs, name, bases, namespace, **keywords):
        bases = tuple(Derived if base is native_class else base for base in bases)
        return types.new_class(name, bases, keywords, lambda made: made.update(namespace))

    def __call__(cls, *arguments, **keywords):
        return new(cls, *arguments, **keywords)

    def __instancecheck__(cls, value):
        return isinstance(value, np.ndarray) or type.__instancecheck__(cls, value)

    def __subclasscheck__(cls, other):
        return issubclass(other, np.ndarray) or type.__subclasscheck__(cls, other)

    def __dir__(cls):
        # Attributes that only numbers have are not attributes of the class.
        return [name for name in super().__dir__() if name.startswith("_") or hasattr(np.ndarray, name)]


def taught(method):
    """A method of a class derived from NumPy's arrays, given NumPy's class for bh's and memory of bh's arrays for themselves."""

    @functools.wraps(method)
    def call(self, *arguments, **keywords):
        given = {}

        def plain(value):
            if type(value) is native_class and not value._scalar:
                shown = np.asarray(value)
                given[id(shown)] = value
                return shown
            return np.ndarray if value is native_class else value

        result = method(self, *map(plain, arguments), **{name: plain(value) for name, value in keywords.items()})
        return given.get(id(result), result)

    return call


def for_both(name, method):
    """A method of the class that takes instances of classes derived from NumPy's, too."""
    of_numpy = taught(getattr(np.ndarray, name))

    @functools.wraps(method)
    def call(self, /, *arguments, **keywords):
        return fallback.given((of_numpy if isinstance(self, np.ndarray) else method)(self, *arguments, **keywords))

    return call


def teach(kind, *names):
    """Makes methods of one of NumPy's own derived classes know the class of bh's arrays."""
    for name in names:
        setattr(kind, name, taught(getattr(kind, name)))


@functools.cache
def teach_masked():
    """The same, of masked arrays, once the program asks for them."""
    teach(np.ma.MaskedArray, "view", "round", "cumsum", "cumprod")


def _lifted(method):
    """A method of one of NumPy's derived classes that gives plain arrays: this package's, where code calls it whose NumPy this is."""

    @functools.wraps(method)
    def call(self, *arguments, **keywords):
        result = method(self, *arguments, **keywords)
        return fallback.lift(result) if imports.is_own(sys._getframe(1).f_globals) else result

    return call


for _kind in (np.matrix, np.memmap, np.recarray):
    teach(_kind, "view")
np.matrix.nonzero = _lifted(np.matrix.nonzero)
# Methods that write into an output.
teach(Derived, *(name for name, row in (FUNCTIONS | METHODS).items() if row.writes == "out" and (row.method or name in METHODS)))


def new(cls, shape, dtype=float, buffer=None, offset=0, strides=None, order=None):
    """An array of a shape, with undefined elements or a view of a buffer; of NumPy, if the class is derived from NumPy's."""
    shape = tuple(map(int, shape)) if type(shape) is native_class else fallback.lower(shape)
    if cls is native_class and buffer is None and strides is None and code_of(dtype) is not None:
        return creation.empty(shape, dtype, order)
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if cls is native_class and type(buffer) is native_class and code_of(dtype) == buffer._code:
        return window_on(buffer, shape, offset, strides, order)
    # NumPy's constructor keeps the object behind a buffer, but not the buffer itself, which holds the memory in its place.
    if type(buffer) is native_class or type(buffer) is memoryview and type(buffer.obj) is native_class:
        buffer = np.asarray(buffer)
    if cls is not native_class:
        return np.ndarray.__new__(cls, shape, dtype, buffer, offset, strides, order)
    made = np.ndarray(shape, dtype, buffer, offset, strides, order)
    # Memory that others write to stays theirs: an array of NumPy shows it.
    return made if buffer is not None and made.flags.writeable else fallback.from_numpy(made)


def window_on(buffer, shape, offset, strides, order):
    """A view of an array's memory, of elements of the same type; NumPy says what does not fit."""
    model = np.ndarray(shape, buffer.dtype, np.empty(buffer.size, buffer.dtype), offset, strides, order)
    steps = [stride // buffer.itemsize for stride in model.strides]
    if not buffer._contiguous or offset % buffer.itemsize or any(stride % buffer.itemsize for stride in model.strides):
        raise ValueError("the elements of the buffer have to lie side by side")
    return _native.window(buffer, buffer._start + offset // buffer.itemsize, list(shape), steps)


def as_strided(x, shape=None, strides=None, subok=False, writeable=True, *, check_bounds=None):
    """A view of an array's memory with any shape and strides, which have to lie inside of it."""
    shape = None if shape is None else np.broadcast_shapes(fallback.lower(shape))
    strides = None if strides is None else tuple(map(int, fallback.lower(strides)))
    if type(x) is not native_class or len(x.shape if shape is None else shape) > MOST_DIMENSIONS:
        x = np.asarray(x) if type(x) is native_class else x
        made = np.lib.stride_tricks.as_strided(x, shape, strides, subok, writeable)
        view = fallback.shown_by(made) if type(made) is np.ndarray else None
        return made if view is None else view
    shape = x.shape if shape is None else shape
    if strides is None:
        # Contiguous elements stay contiguous in the new shape.
        strides = np.empty(shape, x.dtype).strides if x._contiguous else x.strides
    strides = [stride // (1 + x._is_part) for stride in strides]
    # How far it is to elements that there are not does not matter.
    steps = [stride if extent > 1 else 0 for stride, extent in zip(strides, shape)]
    if len(shape) != len(strides) or any(step % x.itemsize for step in steps):
        fallback.note("numpy.lib.stride_tricks.as_strided", "the strides are no whole numbers of elements")
        return np.lib.stride_tricks.as_strided(np.asarray(x), shape, strides, subok, writeable)
    result = _native.window(x, x._start, list(shape), [step // x.itemsize for step in steps])
    result._writeable = writeable and x._writeable
    return result


def alias(cls, types_of):
    """The class with the types of shape and elements, for annotations; NumPy says what does not fit."""
    return types.GenericAlias(cls, np.ndarray[types_of].__args__)


native_class.__new__ = staticmethod(new)
native_class.__class_getitem__ = classmethod(alias)
_native.set_class_of_arrays(ArrayClass)

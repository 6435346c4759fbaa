"""NumPy's own compositions over bh's primitives.

Many functions of NumPy are Python code over other functions of NumPy. They are run here with bh's functions in the place
of NumPy's, so that their work stays in the stack. The code is NumPy's as it is installed; nothing of it is kept here.
"""

import functools
import sys
import types

import numpy as np

from .. import _native
from .._cluster import ranks as _ranks
from .._jit.symbols import here
from .._numpy import fallback, immediate
from .._numpy.registry import ADAPTED, COMPUTED, FUNCTIONS

_modules = {}

# Arrays of no more elements are on one rank anyway.
_FEW = 512


class _ArrayClass(type):
    """The class of what NumPy's code takes for the class of arrays: scalars of bh are no arrays there."""

    def __instancecheck__(cls, value):
        return isinstance(value, np.ndarray) or type(value) is _native.ndarray and not value._scalar


class _Array(metaclass=_ArrayClass):
    """Stands for the class of arrays, which NumPy's code asks values about."""


class _Converter:
    """NumPy's converter of arguments, for which bh's arrays are plain ones: what is made of them keeps its own class."""

    def __init__(self, numpys, *values):
        self._values, self._make = values, numpys

    @functools.cached_property
    def _numpys(self):
        return self._make(*self._values)

    def __getattr__(self, name):
        return getattr(self._numpys, name)

    def __getitem__(self, place):
        value = self._values[place]
        return value if _is_kept(value) else self._numpys[place]

    def as_arrays(self, **options):
        """The arguments as arrays."""
        return self._values if all(map(_is_kept, self._values)) else self._numpys.as_arrays(**options)

    def __len__(self):
        return len(self._values)

    def wrap(self, result, /, to_scalar=None):
        """The result as an instance of the class of an argument that asks for this."""
        own = isinstance(result, np.ndarray) and type(result) is not np.ndarray and all(type(value) is _native.ndarray for value in self._values)
        return result if own or all(map(_is_kept, self._values)) else self._numpys.wrap(result, to_scalar=to_scalar)


def _is_kept(array):
    """Is an array not converted to one of NumPy: as several ranks have it, or as its values are not read here?"""
    return type(array) is _native.ndarray and (here.records or _is_spread(array))


def _is_spread(array):
    """Do several ranks have an array?"""
    return type(array) is _native.ndarray and array.size > _FEW and _ranks.ranks() > 1


def _hashed(numpys, array, **options):
    """NumPy's table of the elements that an array has. It reads all of the array, which several ranks sort where it is."""
    return NotImplemented if _is_spread(array) else numpys(array, **options)


class _View:
    """A module of NumPy with bh's functions in the place of those it shares with the public namespace; its own inner functions
    are adapted."""

    def __init__(self, module, public, equivalent):
        self.__dict__.update(_module=module, _public=public, _equivalent=equivalent)

    def __getattr__(self, name):
        value = self._public[name] if name in self._public else getattr(self._module, name)
        if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy.lib"):
            return _View(value, self._public, self._equivalent)
        if name in self._public:
            return value
        mine = self._equivalent(value) if callable(value) else None
        if mine is not None or not name.startswith("_"):
            return value if mine is None else mine
        inner = python_code(value)
        if inner is None or inner.__module__ != self._module.__name__:
            return value
        return _copy(inner, _globals(inner.__globals__, self._public, self._equivalent))


def adapt(function, public, equivalent):
    """A copy of a function of NumPy that calls bh's functions. None if it is not written in Python."""
    inner = python_code(function)
    if inner is None:
        return None
    return _copy(inner, _globals(inner.__globals__, public, equivalent))


def _copy(function, globals_):
    made = types.FunctionType(function.__code__, globals_, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    return made


def _globals(original, public, equivalent):
    """The globals of a module of NumPy, with bh's functions and with its own functions adapted in turn."""
    name = original.get("__name__")
    if name in _modules:
        return _modules[name]
    made = _modules[name] = dict(original)
    for key, value in original.items():
        mine = _Array if value is np.ndarray else equivalent(value)
        inner = python_code(value)
        left = getattr(mine, "_bh_kind", "") == "falls back"
        if mine is not None and not left:
            made[key] = mine
        elif key == "_array_converter":
            made[key] = functools.partial(_Converter, value)
        elif key == "_unique_hash":
            made[key] = functools.partial(_hashed, value)
        elif isinstance(value, types.ModuleType) and value.__name__.startswith("numpy"):
            made[key] = _View(value, public, equivalent)
        elif inner is not None and inner.__module__ == name:
            made[key] = _copy(inner, made)
        elif left and inner is not None and _is_adapted(value):
            made[key] = adapt(value, public, equivalent)
        elif left:
            made[key] = mine
    return made


def _is_adapted(function):
    """Does the registry have NumPy's code of a function over bh's?"""
    row = FUNCTIONS.get(function.__name__)
    return row is not None and row.kind == ADAPTED


def _joined_at_once(numpys, original, key):
    """The arrays that an object of NumPy joins, if they are small and computed; else None."""
    parts = key if type(key) is tuple else (key,)
    try:
        shown = tuple(immediate.moved(part) for part in parts)
    except immediate.Later:
        return None
    if any(type(part) in (str, type(None)) for part in parts):
        return None
    return fallback.lift(numpys.__getitem__(original, shown), fallback.stack_of(parts))


def _numbered_at_once(original, key):
    """The grid that an object of NumPy makes of ranges of numbers, if it has few elements; else None."""
    parts, count = key if type(key) is tuple else (key,), len(key) if type(key) is tuple else 1
    for part in parts:
        if type(part) is not slice or not {type(part.start), type(part.stop), type(part.step)} <= _BOUNDS or part.stop is None:
            return None
        step = 1 if part.step is None else part.step
        count *= abs(step) if type(step) is complex else abs((part.stop - (part.start or 0)) / (step or 1))
    return fallback.lift(original[key]) if count <= immediate.MOST[COMPUTED] and not here.records else None


# The types of the bounds and the step of a range.
_BOUNDS = {int, float, complex, type(None), np.int64, np.float64}


def adapt_brackets(original, public, equivalent):
    """An object of NumPy that makes arrays of what stands in its brackets, as one that makes bh's."""
    numpys = type(original)
    code = numpys.__getitem__
    joins = hasattr(numpys, "concatenate")
    work = fallback.falls_back(_copy(code, _globals(code.__globals__, public, equivalent)), code)

    def getitem(self, key):
        if joins and type(key) is str:
            # Text names what the caller sees.
            frame = sys._getframe(1)
            return public["bmat"](key, frame.f_globals, frame.f_locals)
        little = _joined_at_once(numpys, original, key) if joins else _numbered_at_once(original, key)
        return work(self, key) if little is None else little

    members = {"__slots__": (), "__getitem__": getitem, "_bh_kind": "adapted", "__module__": numpys.__module__, "__doc__": numpys.__doc__}
    if joins:
        members["concatenate"] = staticmethod(public["concatenate"])
    return type(numpys.__name__, (numpys,), members)()


def python_code(function):
    """The Python function behind a public one; None if there is none."""
    inner = getattr(function, "_implementation", function)
    inner = getattr(inner, "__wrapped__", inner)
    return inner if isinstance(inner, types.FunctionType) else None

"""The names of the package: each public name of NumPy as its row of the registry says."""

import functools
import importlib
import types

import numpy as np

from .. import _native
from .._array import conversion, subclassing
from .._array.element_types import CODE
from .._array.text import of_text
from .._functions import arrangement, numpy_code, sorting
from .._ufunc.ufunc import UFUNCS
from . import documentation, fallback
from .immediate import at_hand
from .lapack import by_lapack
from .native_calls import served, unbound
from .provided import by_object, equivalent, name_of, public
from .registry import ADAPTED, BRACKETS, FUNCTIONS, HOST, LEFT, NUMPYS, OWN, QUESTION, TEXT, UNIVERSAL, Row

ndarray = _native.ndarray


class Info(type(np.__array_namespace_info__())):
    """The array API's `__array_namespace_info__`: NumPy's types, and bh's limits."""

    __module__ = "bh"

    def capabilities(self):
        """The library's capabilities: index arrays of truth values, shapes that depend on data, most dimensions."""
        return {**super().capabilities(), "max dimensions": 16}


def falling_back(function, name=None):
    """A function that runs in NumPy."""
    name = name or name_of(function)

    def wrapper(*args, **kwargs):
        return fallback.call_on_memory(function, args, kwargs, name)

    functools.update_wrapper(wrapper, function, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    wrapper._bh_numpy = function
    wrapper._bh_kind = "falls back"
    return wrapper


def on_host(function):
    """A function that reads or writes outside of the stack."""

    def wrapper(*args, **kwargs):
        kwargs.pop("like", None)
        return fallback.taken(function, fallback.lower(args), fallback.lower(kwargs))

    functools.update_wrapper(wrapper, function, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    wrapper._bh_numpy = function
    return wrapper


def _written(name, original, row):
    """An object of this package."""
    found = getattr(importlib.import_module(f"bh.{row.module}"), name)
    if isinstance(original, type):
        return found
    if row.changes:
        found = fallback.falls_back_in_place(found)
    elif not row.complete and not hasattr(found, "__wrapped__"):
        found = fallback.falls_back(found, original)
    found = at_hand(found, original, row)
    return _described(found, original) if isinstance(original, np.ufunc) else found


def _itself(name, original, row):
    return original


# The makers of the object under a name, by the kind of its row. Adapted functions are made when all others exist.
_MAKE = {
    OWN: _written, NUMPYS: _itself, BRACKETS: _itself,
    UNIVERSAL: lambda name, original, row: UFUNCS[original.__name__],
    QUESTION: lambda name, original, row: _plainly(original),
    HOST: lambda name, original, row: on_host(original),
    TEXT: lambda name, original, row: of_text(on_host(original)),
    LEFT: lambda name, original, row: UFUNCS[original.__name__] if isinstance(original, np.ufunc) else falling_back(original),
    ADAPTED: lambda name, original, row: falling_back(original),
}  # fmt: skip


def row_of(name, original, rows=FUNCTIONS):
    """The row of a name; versions of NumPy that the registry does not know have names without one."""
    if name in rows:
        return rows[name]
    if isinstance(original, np.ufunc):
        return Row(UNIVERSAL, {})
    return Row(LEFT if callable(original) and not isinstance(original, type) else NUMPYS, {})


def _add(name):
    """Makes the object under a name."""
    original = getattr(np, name)
    row = row_of(name, original)
    first = getattr(original, "__name__", name)
    if first != name and vars(np).get(first) is original:
        # Two names of one function are that here, too.
        if first not in public:
            _add(first)
        public[name] = public[first]
        return
    made = _MAKE[row.kind](name, original, row)
    if callable(original) and not isinstance(original, type):
        register(original, made)
    public[name] = unbound(name, served(name, made, row, original))


def build():
    """All names of the package that come from NumPy's."""
    # Modules that NumPy loads when they are asked for stay unloaded: see `__getattr__` of the package.
    names = [name for name in dir(np) if not name.startswith("_") and name not in ("fft", "linalg", "random", "testing") and name in vars(np)]
    for name in names:
        if name not in public:
            _add(name)
    register(np.lib.stride_tricks.sliding_window_view, arrangement.sliding_window_view)
    register(np.lib.stride_tricks.as_strided, subclassing.as_strided)
    register(np.lib._nanfunctions_impl._nanmedian, sorting.median_without_nan)
    register(np.lib._utils_impl._median_nancheck, sorting.with_nan)
    by_object[np.ndarray] = ndarray
    for name in names:
        kind = row_of(name, original := getattr(np, name)).kind
        if kind == BRACKETS:
            public[name] = numpy_code.adapt_brackets(original, public, equivalent)
        elif kind == ADAPTED and (made := adapt(original, FUNCTIONS[name])):
            public[name] = served(name, made, FUNCTIONS[name], original)
    for name, mine in public.items():
        # The program's object of a name, which may do more than the registered one.
        if callable(mine) and mine is not (original := getattr(np, name, None)) and not isinstance(original, (type, np.ufunc)):
            name_publicly(original, mine)
    return public


def name_publicly(original, mine):
    """Makes known the program's object for a function of NumPy, for classes that decide about functions."""
    subclassing.named[original], subclassing.originals[mine] = mine, original


def adapt(original, row):
    """NumPy's code of a function over functions of this package; None where it is not written in Python."""
    made = numpy_code.adapt(original, public, equivalent)
    if made is None:
        return None
    made = guarded(made, original, row)
    made = by_lapack(original)(made) if row.lapack else at_hand(made, original, row)
    made._bh_numpy, made._bh_kind = original, "adapted"
    register(original, made)
    return made


def _plainly(function):
    """A function of NumPy without its dispatcher, with its signature."""
    inner = getattr(function, "_implementation", function)
    if inner is function:
        return inner

    def plain(*args, **kwargs):
        if (len(args) > 1 or args and type(args[0]) is not ndarray) and fallback.decided(args):
            # The class of an argument says what it is.
            return function(*fallback.lower(args), **kwargs)
        return inner(*args, **kwargs)

    functools.update_wrapper(plain, function, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    documentation.show_parameters(plain, function)
    return plain


def _described(function, original):
    """A function of whole axes with the attributes of NumPy's universal function."""
    names = "nin nout nargs ntypes types identity signature reduce accumulate reduceat outer at resolve_dtypes __signature__"
    # Versions of NumPy before 2.4 have no signatures.
    for name in filter(lambda name: hasattr(original, name), names.split()):
        setattr(function, name, getattr(original, name))
    return function


def guarded(adapted, original, row):
    """An adapted function that leaves to NumPy what bh's functions cannot do, and arrays that decide what functions do."""
    makes = not row.arrays
    wrapped = fallback.falls_back_in_place(adapted) if row.changes else fallback.falls_back(adapted, original)

    @functools.wraps(adapted)
    def wrapper(*args, **kwargs):
        if not makes and args and type(args[0]) is not ndarray and isinstance(args[0], (int, float, complex, np.generic)):
            if not (fallback.holds_array(args) or fallback.holds_array(kwargs)):
                # Of numbers NumPy makes numbers.
                return fallback.lift(original(*args, **kwargs))
        if any(map(_dispatches, (*args, *kwargs.values()))):
            return original(*args, **kwargs)
        if fallback.decided(args) or fallback.decided(kwargs.values()):
            return fallback.lift(original(*args, **kwargs))
        if any(map(conversion.decides, args)) or args and type(args[0]) is np.ndarray and args[0].dtype not in CODE:
            return fallback.call(original, args, kwargs)
        return fallback.given(wrapped(*args, **kwargs))

    return wrapper


def _dispatches(value):
    """Has a value, or one in a list, functions of NumPy's own, without being an array?"""
    kind = type(value)
    if kind is list:
        return any(map(_dispatches, value))
    return hasattr(kind, "__array_function__") and kind is not ndarray and not isinstance(value, np.ndarray)


def _without_classes(function):
    """NumPy's function as classes with functions of their own call it: they do not decide again."""

    def shared(value):
        if type(value) in (list, tuple):
            return type(value)(map(shared, value))
        return np.asarray(value) if type(value) is ndarray else value

    def implementation(*args, **kwargs):
        return function._implementation(*map(shared, args), **{name: shared(value) for name, value in kwargs.items()})

    return functools.update_wrapper(implementation, function, updated=())


def register(original, mine):
    documentation.inherit(mine, original)
    documentation.show_parameters(mine, original)
    if callable(mine) and not isinstance(original, (type, np.ufunc)):
        subclassing.originals[mine] = original
    # NumPy's own code also calls the functions behind its public ones.
    if isinstance(mine, types.FunctionType) and hasattr(original, "_implementation"):
        mine._implementation = _without_classes(original)
    for function in (original, getattr(original, "_implementation", original), getattr(original, "__wrapped__", original)):
        try:
            by_object[function] = mine
        except TypeError:
            pass

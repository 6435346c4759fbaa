"""SQLite's functions that a program writes: results that are not computed yet are stored as NumPy's numbers, of which a `float64` is a
REAL. SQLite itself takes them for their bytes."""

import functools

from .fallback import lower, ndarray

# Where `connect` takes the class of connections without its name.
_FACTORY = 5


def _settled(function):
    """A function whose results are computed."""
    if not callable(function):
        return function

    @functools.wraps(function)
    def call(*args):
        result = function(*args)
        return lower(result) if type(result) is ndarray and result._scalar else result

    return call


class _Aggregate:
    """An object that collects values for SQLite, with the methods of a program's own one."""

    def __init__(self, own):
        self._own = own

    def __getattr__(self, name):
        return _settled(getattr(self._own, name))


def _collecting(make):
    """A class of such objects."""
    return (lambda: _Aggregate(make())) if callable(make) else make


# Methods that register functions, and wrappers for these functions.
_REGISTERING = {"create_function": _settled, "create_aggregate": _collecting, "create_window_function": _collecting}


def _registering(method, of):
    """A method that registers functions."""

    @functools.wraps(method)
    def register(self, *args, **kwargs):
        return method(self, *map(of, args), **{name: of(value) for name, value in kwargs.items()})

    return register


@functools.cache
def _kind(factory):
    """A class of connections by which functions are registered so. Functions that make connections stay as they are."""
    if not isinstance(factory, type):
        return factory
    methods = {name: _registering(getattr(factory, name), of) for name, of in _REGISTERING.items() if hasattr(factory, name)}
    return type(factory.__name__, (factory,), {"__module__": factory.__module__, "__doc__": factory.__doc__, **methods})


def connecting(module, connect):
    """`sqlite3.connect`, whose connections are of such a class."""
    if hasattr(connect, "_bh_taught"):
        return connect

    @functools.wraps(connect)
    def call(*args, **kwargs):
        if len(args) > _FACTORY:
            return connect(*args[:_FACTORY], _kind(args[_FACTORY]), *args[_FACTORY + 1 :], **kwargs)
        return connect(*args, **{**kwargs, "factory": _kind(kwargs.get("factory", module.Connection))})

    call._bh_taught = True
    return call

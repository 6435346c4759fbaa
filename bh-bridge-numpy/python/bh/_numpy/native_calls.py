"""Functions and methods whose common calls are served natively."""

import functools
import types

import numpy as np

from .. import _native
from .._ufunc.ufunc import UFUNCS


def served(name, function, made_of, method=False):
    """The function, or the method, with the native one before it, which is made of a universal function or, if True, of none."""
    ufunc = UFUNCS.get(made_of)
    native = _native.Method(name, function, ufunc) if method else _native.Function(name, function, ufunc, _binds(name))
    functools.update_wrapper(native, function)
    if isinstance(behind := getattr(function, "__wrapped__", None), types.BuiltinFunctionType):
        # Who asks for its parameters gets those of NumPy's.
        native.__wrapped__ = behind
    return native


def unbound(name, function):
    """The function; one that is no method of a class that has it in NumPy, is none here."""
    if _binds(name) or type(function) is not types.FunctionType:
        return function
    return functools.update_wrapper(_native.Function(None, function, binds=False), function)


def _binds(name):
    """Is NumPy's function, as an attribute of a class, a method of the instances?"""
    return hasattr(type(getattr(np, name)), "__get__")


def named(name):
    """The function of the package of this name, for pickles."""
    import bh

    return getattr(bh, name)

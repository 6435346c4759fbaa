"""Functions and methods whose common calls are served natively: by bh, or by NumPy's own function at once."""

import functools
import importlib
import types

import numpy as np

from .. import _native
from .._ufunc.ufunc import UFUNCS
from .immediate import MOST, MOST_SORTED, WORDS
from .lapack import LINALG
from .registry import AWAITED, COUNTED, SORTED


def served(name, function, row, original, method=False, home="bh"):
    """The function, or the method, with what serves common calls of it natively before it, as its row says; `original`: NumPy's.
    `home`: the module that has it."""
    ufunc, by_numpy = UFUNCS.get(row.native), _by_numpy(name, original, row, method)
    if not (row.native or by_numpy):
        return function
    known = f"{home}.{name}".removeprefix("bh.") if row.native else None
    lists = _lists(row) if known else 0
    if method:
        native = _native.Method(known, function, ufunc, by_numpy, lists)
    else:
        native = _native.Function(known, function, ufunc, _binds(original), by_numpy, lists, original if _asks(original, row) else None)
    functools.update_wrapper(native, function)
    native._home = home
    if isinstance(behind := getattr(function, "__wrapped__", None), types.BuiltinFunctionType):
        # Inspection shows the parameters of NumPy's function.
        native.__wrapped__ = behind
    return native


# Functions of several arrays whose results are the arrays, or views of them. Copies beside other classes would give views of the copies.
_VIEWING = {"atleast_1d", "atleast_2d", "atleast_3d"}


def _asks(original, row):
    """Does NumPy's function ask the classes of its arguments what to do, and bh's leave this to it?"""
    is_left = not row.complete or row.module == "_functions.reductions"
    return is_left and not row.changes and hasattr(original, "_implementation") and original.__name__ not in _VIEWING


def _lists(row):
    """How many of the leading arguments may be lists of numbers: none of a function that changes its first one. Arguments that are found
    by name do not count."""
    return 0 if row.changes else len([name for name in row.arrays.split() if name not in ("where", "mean")][:3])


def _by_numpy(name, original, row, method):
    """The native half's facts about calls that NumPy computes immediately."""
    # Arguments are NumPy's own, so no other class decides.
    function = getattr(original, "_implementation", original)
    names = row.arrays.split()[: row.operands]
    facts = {"function": function, "operands": names, "words": WORDS, "only_named": row.named, "in_process": row.lapack, "drawn": None, "products": None, "changed": None}
    if row.changes:
        # Behind the universal function that is applied in place, if it is that.
        place = int(names[:1] == ["function"])
        names.insert(place, row.changes)
        facts["changed"] = place, np.asarray
    facts["direct"] = getattr(np.ndarray, name) if row.method or method and hasattr(np.ndarray, name) else None
    if row.products:
        direct = getattr(np._core.multiarray, "c_einsum", None)
        return facts | {"most": row.products, "products": row.products, "takes_hosts": False, "in_process": True, "direct": direct}
    if row.lapack:
        return None if LINALG == "stack" else facts | {"most": MOST_SORTED, "takes_hosts": True}
    if not row.by_numpy:
        return None
    return facts | {"most": MOST[row.by_numpy], "takes_hosts": not method and row.by_numpy in (AWAITED, SORTED, COUNTED)}


# The arguments of methods that draw numbers which may be arrays: those before `size`.
_DRAWN = "a x low high loc scale lam mean cov p pvals alpha n".split()


def drawn(function, native, size=None, most=0):
    """A method `function` of a generator that draws numbers, with NumPy's own, `native`, before it for calls with numbers and with little
    arrays; where `size` is the place of that argument, for those that draw fewer than `most`."""
    facts = {"function": native, "operands": _DRAWN, "words": frozenset(), "only_named": False, "in_process": False, "takes_hosts": False, "products": None, "changed": None, "direct": None}
    made = _native.Function(None, function, binds=False, by_numpy=facts | {"drawn": (size, most), "most": MOST_SORTED})
    return functools.update_wrapper(made, function)


def unbound(name, function):
    """The function; one that is no method of a class that has it in NumPy, is none here."""
    if _binds(getattr(np, name)) or type(function) is not types.FunctionType:
        return function
    return functools.update_wrapper(_native.Function(None, function, binds=False), function)


def _binds(original):
    """Is NumPy's function, as an attribute of a class, a method of the instances?"""
    return hasattr(type(original), "__get__")


def named(name, home="bh"):
    """The function of this name in a module of the package, for pickles."""
    return getattr(importlib.import_module(home), name)

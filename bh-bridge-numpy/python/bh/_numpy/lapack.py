"""Factorisations by NumPy's LAPACK, which is written for each processor, where arrays are in the memory of this process. Devices, ranks
and siblings have methods of their own, and so has the processor for stacks of little matrices, which it computes side by side.
`BH_LINALG` is `little`, `numpy` for LAPACK with those stacks, too, or `stack` for methods everywhere. Where the results of a method
are NaN, NumPy computes them again: its values, or its errors, depend on its LAPACK."""

import functools
import os

import numpy as np

from .. import _native
from .._array.element_types import is_inexact
from .._array.memory import computes_little, in_process
from .._jit.symbols import here
from .._ufunc.ufunc import UFUNCS as _u
from .fallback import Fallback, falls_back, from_numpy, lower, stack_of, taken

LINALG = os.environ.get("BH_LINALG", "little")
if LINALG not in ("little", "numpy", "stack"):
    raise ValueError(f"BH_LINALG is '{LINALG}', but must be little, numpy or stack")

# The longest side of a little matrix.
_SIDE = 16
# Elements of a stack for which a batch takes less time than LAPACK.
_ELEMENTS = 1 << 11


def is_little(*operands):
    """Is the first operand, in the memory of this process, a stack of many matrices, and are those of all operands little?"""
    first = operands[0]
    return (
        LINALG != "numpy"
        and first.ndim > 2
        and first.size >= _ELEMENTS
        and all(0 < extent <= _SIDE for value in operands for extent in value.shape[-2:])
        and in_process(first._stack)
    )


def _stack_of(values):
    """The name of the stack of the first array among the values, or that of new arrays."""
    for value in values:
        if type(value) is _native.ndarray:
            return value._stack
    return _native.Stack().name


def _are_at_hand(values):
    """Are all arrays little and at hand, where NumPy may compute with them?"""
    arrays = [value for value in values if type(value) is _native.ndarray]
    return not here.records and bool(arrays) and all(map(_native.is_at_hand, arrays)) and computes_little(arrays[0]._stack)


def _as_arrays(value):
    """A result, or results, as arrays also without dimensions."""
    if isinstance(value, tuple):
        return getattr(value, "_make", tuple)(map(_as_arrays, value))
    return from_numpy(np.asarray(value)) if isinstance(value, np.generic) else value


def _has_nan(result):
    """Is any element NaN?"""
    if isinstance(result, tuple):
        return any(map(_has_nan, result))
    if type(result) is not _native.ndarray:
        return isinstance(result, np.inexact) and bool(np.isnan(result))
    return is_inexact(result._code) and bool(_u["logical_or"].reduce(_u["isnan"](result), None))


def by_lapack(original, has_little=False, finds_nan=False):
    """Makes a function by methods of the stack NumPy's `original` where arrays are in the memory of this process. `has_little`: do these
    methods compute stacks of little matrices side by side? `finds_nan`: does the function itself raise Fallback for NaN elsewhere?"""

    def is_by_method(args):
        if LINALG == "stack" or not (in_process(_stack_of(args)) or _are_at_hand(args)):
            return True
        return has_little and bool(args) and type(args[0]) is _native.ndarray and is_little(args[0])

    def decorate(function):
        @functools.wraps(function)
        def chosen(*args, **kwargs):
            if is_by_method(args):
                result = function(*args, **kwargs)
                is_known = finds_nan and not in_process(_stack_of(args))
                if not here.records and not is_known and _has_nan(result):
                    raise Fallback("a result that is not a number")
                return result
            result = taken(original, lower(args), lower(kwargs), stack_of(args, kwargs))
            return _as_arrays(result) if _native.follows_array_api() else result

        return falls_back(chosen, original)

    return decorate

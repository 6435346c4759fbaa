"""Factorisations by NumPy's LAPACK, which is written for each processor, where arrays are in the memory of this process. Devices, ranks
and siblings have methods of their own. `BH_LINALG` is `numpy`, or `stack` for these methods everywhere."""

import functools
import os

import numpy as np

from . import _native
from ._fallback import falls_back, from_numpy, lower, taken
from ._memory import in_process

_choice = os.environ.get("BH_LINALG", "numpy")
if _choice not in ("numpy", "stack"):
    raise ValueError(f"BH_LINALG is '{_choice}', but must be numpy or stack")


def _stack_of(values):
    """The name of the stack of the first array among the values, or that of new arrays."""
    for value in values:
        if type(value) is _native.ndarray:
            return value._stack
    return _native.Stack().name


def _as_arrays(value):
    """A result, or results, as arrays also without dimensions."""
    if isinstance(value, tuple):
        return getattr(value, "_make", tuple)(map(_as_arrays, value))
    return from_numpy(np.asarray(value)) if isinstance(value, np.generic) else value


def by_lapack(original):
    """Makes a function by methods of the stack NumPy's `original` where arrays are in the memory of this process."""

    def decorate(function):
        @functools.wraps(function)
        def chosen(*args, **kwargs):
            if not in_process(_stack_of(args)):
                return function(*args, **kwargs)
            result = taken(original, lower(args), lower(kwargs))
            return _as_arrays(result) if _native.follows_array_api() else result

        return falls_back(chosen if _choice == "numpy" else function, original)

    return decorate

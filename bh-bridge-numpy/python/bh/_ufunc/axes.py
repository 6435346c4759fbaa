"""The axes of a fold, and where its result goes."""

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .. import _native
from .._array.conversion import assigned, store
from .._numpy.fallback import Fallback

ndarray = _native.ndarray


def axes_of(axis, rank):
    """The axes as a tuple; None stands for all. As in NumPy's reductions, lists and truth values are no axes."""
    if axis is None:
        return tuple(range(rank))
    if type(axis) is not tuple:
        if isinstance(axis, (bool, np.bool_)):
            raise TypeError("an integer is required")
        return () if rank == 0 and axis in (0, -1) else (normalize_axis_index(operator.index(axis), rank),)
    axes = tuple(normalize_axis_index(one, rank) for one in axis)
    if len({*axes}) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return axes


def only_axis(axis, rank, method):
    """The axis of a method of universal functions that takes one; None stands for the only one that there is."""
    axes = axes_of(axis, rank)
    if rank == 0:
        raise TypeError(f"cannot {method} on a scalar")
    if len(axes) != 1:
        raise ValueError(f"{method} does not allow multiple axes")
    return axes[0]


def mask_of(axes):
    """The axes as a bit mask."""
    return sum(1 << axis for axis in axes)


def target_of(out):
    """The array that a result goes into; None for `None` and `...`, which ask for a new one."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
        if out is ...:
            raise TypeError("must use `...` as `out=...` and not per-operand/in a tuple")
    if out is None or out is ...:
        return None
    if type(out) is not ndarray:
        raise Fallback("the output is an array of NumPy")
    if not out._writeable:
        raise ValueError("output array is read-only")
    return out


def stand_in(array):
    """A view of NumPy with an array's shape and type that has one element in memory."""
    return np.broadcast_to(np.zeros((), array.dtype), array.shape)


def deliver(result, out, rule="same_kind", function=""):
    """The result itself, or `out` with the result in it, `...` asks for an array where there would be a scalar. Errors name the
    universal function."""
    target = target_of(out)
    if target is None:
        if out is ...:
            result._scalar = False
        return result
    if target.shape != result.shape:
        raise ValueError(f"output array has shape {target.shape}, but the result has {result.shape}")
    if not np.can_cast(result.dtype, target.dtype, rule):
        if function:
            raise np._core._exceptions._UFuncOutputCastingError(getattr(np._core.umath, function), rule, result.dtype, target.dtype, 0)
        raise TypeError(f"Cannot cast array data from {result.dtype!r} to {target.dtype!r} according to the rule '{rule}'")
    store(target, assigned(result, target.dtype))
    return target

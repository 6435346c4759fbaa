"""The axes of a fold, and where its result goes."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from . import _native
from ._convert import assigned
from ._fallback import Fallback

ndarray = _native.ndarray


def axes_of(axis, rank):
    """The axes as a tuple; None stands for all."""
    if axis is None:
        return tuple(range(rank))
    if rank == 0 and (axis in (0, -1) or axis == ()):
        return ()
    return normalize_axis_tuple(axis, rank, "axis")


def mask_of(axes):
    """The axes as a bit mask."""
    return sum(1 << axis for axis in axes)


def deliver(result, out, rule="same_kind", function=""):
    """The result itself, or `out` with the result in it, `...` asks for an array where there would be a scalar."""
    if out is None:
        return result
    if out is ...:
        result._scalar = False
        return result
    if isinstance(out, tuple):
        out = out[0]
    if type(out) is not ndarray:
        raise Fallback("the output is an array of NumPy")
    if not out._writeable:
        raise ValueError("output array is read-only")
    if out.shape != result.shape:
        of = f" for reduction operation {function}" if function else ""
        raise ValueError(f"output parameter{of} has shape {out.shape}, but the result has {result.shape}")
    if not np.can_cast(result.dtype, out.dtype, rule):
        raise TypeError(f"Cannot cast the result from {result.dtype!r} to {out.dtype!r} with casting rule '{rule}'")
    _native.assign(out, assigned(result, out.dtype))
    return out

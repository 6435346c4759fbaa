"""Rearranging, repeating and choosing elements by position."""

import builtins
import operator
from math import prod

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .. import _native
from .._array import indexing
from .._array.conversion import asarray, assigned, astype, in_order, native
from .._array.element_types import BOOL, INT64
from .._array.layout import axes_in_memory, axis_index, repeats as repeats_memory
from .._numpy import fallback
from .._numpy.fallback import falls_back
from .joining import concatenate
from .manipulation import expand_dims, ravel, reshape

ndarray = _native.ndarray


@falls_back
def flip(m, axis=None):
    """The elements in the other direction, as a view."""
    m = native(m)
    axes = range(m.ndim) if axis is None else normalize_axis_tuple(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if place in axes else slice(None) for place in range(m.ndim))] if m.ndim else m[()]


def fliplr(m):
    """The elements of rows in the other direction."""
    if asarray(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


def flipud(m):
    """The rows in the other direction."""
    if asarray(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


@falls_back
def rot90(m, k=1, axes=(0, 1)):
    """The plane of two dimensions turned by `k` right angles, from the first towards the second, as a view."""
    axes, m = tuple(axes), native(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = axes
    if first == second or builtins.abs(first - second) == m.ndim:
        raise ValueError("Axes must be different.")
    if not builtins.all(-m.ndim <= axis < m.ndim for axis in axes):
        raise ValueError(f"Axes={axes} out of range for array of ndim={m.ndim}.")
    first, second, turns, order = first % m.ndim, second % m.ndim, k % 4, list(range(m.ndim))
    order[first], order[second] = second, first
    back, key = slice(None, None, -1), [slice(None)] * m.ndim
    if turns in (1, 2):
        key[second] = back
    if turns in (2, 3):
        key[first] = back
    m = m[tuple(key)]
    return _native.transpose(m, order) if turns % 2 else m


@falls_back
def roll(a, shift, axis=None):
    """The elements moved along dimensions; what leaves at one end enters at the other."""
    a = native(a)
    if axis is None:
        return reshape(roll(reshape(a, (-1,)), int(np.sum(fallback.lower(shift))), 0), a.shape)
    total = [0] * a.ndim
    if type(axis) is type(shift) is int and -a.ndim <= axis < a.ndim:
        total[axis] = shift
    else:
        axes = normalize_axis_tuple(axis, a.ndim, allow_duplicate=True)
        distances, places = np.broadcast_arrays(np.asarray(fallback.lower(shift)), axes)
        if places.ndim > 1:
            raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
        for place, distance in zip(places.tolist(), distances.tolist()):
            total[place] += int(distance)
    distances = [distance % extent if extent else 0 for distance, extent in zip(total, a.shape)]
    axes = None if a._contiguous else axes_in_memory("K", a.shape, a._stride)
    if axes is None:
        return _native.roll(a, distances)
    return _native.turned_back(_native.roll(_native.transpose(a, axes), [distances[axis] for axis in axes]), axes)


@falls_back
def repeat(a, repeats, axis=None):
    """Each element `repeats` times, one after the other."""
    a = native(a)
    if axis is None or a.ndim == 0 and axis in (0, -1):
        a, axis = reshape(a, (-1,)), 0
    axis = axis_index(axis, a.ndim)
    counts = np.asarray(repeats)
    if not np.can_cast(counts.dtype, np.int64, "safe"):
        raise TypeError(f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'")
    if counts.ndim > 1:
        raise ValueError("object too deep for desired array")
    if counts.size == 1:
        count = int(counts.reshape(()))
        if count < 0 and a.shape[axis]:
            raise ValueError("repeats may not contain negative values." if a.size else "negative dimensions are not allowed")
        count = max(count, 0)
        wide = _native.broadcast_to(expand_dims(a, axis + 1), a.shape[: axis + 1] + (count,) + a.shape[axis + 1 :])
        flat = a.shape[:axis] + (a.shape[axis] * count,) + a.shape[axis + 1 :]
        return _native.reshape(_native.cast(wide, a._code), flat)
    numbers = np.repeat(np.arange(a.shape[axis]), counts)
    return a[(slice(None),) * axis + (native(numbers),)]


@falls_back
def tile(A, reps):
    """The array `reps` times along each dimension."""
    A = native(A)
    reps = (int(reps),) if np.ndim(reps) == 0 else tuple(int(count) for count in reps)
    rank = max(A.ndim, len(reps))
    if builtins.all(count == 1 for count in reps):
        return in_order(_native.reshape(A, (1,) * (rank - A.ndim) + A.shape), "K")
    reps = (1,) * (rank - len(reps)) + reps
    shape = (1,) * (rank - A.ndim) + A.shape
    inner = _native.reshape(A, tuple(part for extent in shape for part in (1, extent)))
    wide = _native.broadcast_to(inner, tuple(part for pair in zip(reps, shape) for part in pair))
    return _native.reshape(_native.cast(wide, A._code), tuple(count * extent for count, extent in zip(reps, shape)))


@falls_back
def append(arr, values, axis=None):
    """The values after the elements of an array."""
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


@falls_back
def resize(a, new_shape):
    """The elements, repeated as often as another shape needs."""
    shape = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    if builtins.any(extent < 0 for extent in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    a = ravel(native(a))
    size = int(np.prod(shape, dtype=np.int64))
    if a.size == 0 or size == 0:
        return _native.full(shape, a._code, False if a._code == BOOL else 0)
    return _native.reshape(tile(a, -(-size // a.size))[:size], shape)


@lambda f: falls_back(f, np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    """All windows of a shape on an array, as a view with the windows' dimensions last."""
    x = native(x)
    shape = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    if builtins.any(extent < 0 for extent in shape):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    if len(shape) != len(axes):
        if axis is None:
            given, known = "Since axis is `None`, must provide window_shape for all dimensions of `x`", f"`x.ndim` is {x.ndim}"
        else:
            given, known = "Must provide matching length window_shape and axis", f"{len(axes)} axes elements"
        raise ValueError(f"{given}; got {len(shape)} window_shape elements and {known}.")
    left = list(x.shape)
    for place, extent in zip(axes, shape):
        if left[place] < extent:
            raise ValueError("window shape cannot be larger than input array shape")
        left[place] -= extent - 1
    stride = list(x._stride)
    result = _native.window(x, x._start, [*left, *shape], stride + [stride[place] for place in axes])
    result._writeable = writeable and x._writeable
    return result


@falls_back
def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal of two dimensions, as a read-only view with it as last dimension."""
    a = native(a)
    if a.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    one, two = (normalize_axis_index(operator.index(axis), a.ndim, name) for axis, name in ((axis1, "axis1"), (axis2, "axis2")))
    if one == two:
        raise ValueError("axis1 and axis2 cannot be the same")
    result = _native.diagonal(a, offset, one, two)
    result._writeable = False
    return result


@falls_back
def diag(v, k=0):
    """The diagonal of a matrix, or a matrix with this diagonal."""
    v = native(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = v.size + abs(k)
    result = _native.full((size, size), v._code, False if v._code == BOOL else 0)
    _native.assign(_native.diagonal(result, k, 0, 1), v)
    return result


def diagflat(v, k=0):
    """A matrix with this diagonal."""
    return diag(ravel(v), k)


def fill_diagonal(a, val, wrap=False):
    """Assigns to the elements whose indices are all equal; the diagonal of a tall matrix may begin again below."""
    if type(a) is not ndarray:
        raise fallback.Fallback("an array of NumPy")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    end = a.shape[1] ** 2 if a.ndim == 2 and not wrap else None
    extent = builtins.min(a.shape)
    if not (a._writeable and extent) or a.ndim == 2 and wrap and a.shape[0] > extent + 1 or repeats_memory(a):
        a.flat[: end : builtins.sum(prod(a.shape[axis:]) for axis in range(1, a.ndim + 1))] = val
        return
    places = _native.window(a, a._start, [extent], [builtins.sum(a._stride)])
    if isinstance(val, (int, float, complex)):
        places[...] = val
        return
    values = assigned(val, a.dtype).reshape(-1)
    if values.size:
        places[...] = resize(values, extent) if values.size > 1 else values


def _triangle(m, k, lower):
    m = native(m)
    if m.ndim == 1:
        m = _native.broadcast_to(m, (m.size, m.size))
    rows = _native.reshape(_native.arange((m.shape[-2],), INT64, 0, 1), (-1, 1))
    below = rows >= _native.arange((m.shape[-1],), INT64, -k, 1)
    zero = _native.full((), m._code, False if m._code == BOOL else 0)
    below = _native.broadcast_to(below, m.shape)
    return _native.operate("where", [below, m, zero] if lower else [below, zero, m])


@falls_back
def tril(m, k=0):
    """The elements at and below a diagonal, others zero."""
    return _triangle(m, k, True)


@falls_back
def triu(m, k=0):
    """The elements at and above a diagonal, others zero."""
    return _triangle(m, k - 1, False)


@falls_back
def flatnonzero(a):
    """The flat indices of elements that are not zero."""
    return indexing.flatnonzero(astype(native(a), bool))

"""Shapes and orders of dimensions."""

import operator
from math import prod

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from .. import _native
from .._array.conversion import native, order_of
from .._array.element_types import MOST_DIMENSIONS
from .._numpy.fallback import falls_back, lower
from .._ufunc.axes import axes_of

ndarray = _native.ndarray


@falls_back
def reshape(a, /, shape=None, order="C", *, copy=None):
    """The elements in another shape, of which one extent may be -1."""
    a = native(a)
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    if shape is None:
        raise TypeError("reshape() missing 1 required positional argument: 'shape'")
    if reshape_order(a, order) == "F":
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        shape = np.empty(a.shape, np.int8).reshape(shape).shape
        return reshape(_reversed(a), shape[::-1], copy=copy).T
    result = _native.reshape(a, shape)
    if copy is False and result.base is None:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return _native.cast(result, result._code) if copy and result.base is not None else result


def reshape_order(a, order):
    """C or F: the order that elements are taken in."""
    letter = order_of(order, "C")
    if letter == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    return ("F" if a.T._contiguous and not a._contiguous else "C") if letter == "A" else letter


def _reversed(a):
    return _native.transpose(a, tuple(range(a.ndim))[::-1])


def _axes_as_read(strides):
    """The dimensions from the outermost on as NumPy goes over elements in memory; those of stride 0 stay where they are."""
    inner = []
    for axis in reversed(range(len(strides))):
        place = len(inner)
        for before in reversed(range(len(inner))):
            stride, other = abs(strides[axis]), abs(strides[inner[before]])
            if stride and other and other <= stride:
                break
            if stride and other:
                place = before
        inner.insert(place, axis)
    return inner[::-1]


@falls_back
def ravel(a, order="C"):
    """The elements with one dimension: a view where they lie side by side in this order, else a copy."""
    a = native(a)
    letter = order_of(order, "C")
    if letter == "K":
        a = _native.transpose(a, _axes_as_read(a._stride))
    elif reshape_order(a, letter) == "F":
        a = _reversed(a)
    if a._contiguous:
        return _native.reshape(a, (-1,))
    copy = _native.cast(a, a._code)
    copy.shape = (copy.size,)
    return copy


@falls_back
def transpose(a, axes=None):
    """The dimensions in another order; reversed without one."""
    a = native(a)
    if axes is None:
        return _reversed(a)
    axes = tuple(axes) if not isinstance(axes, int) else (axes,)
    if len(axes) != a.ndim:
        raise ValueError("axes don't match array")
    return _native.transpose(a, normalize_axis_tuple(axes, a.ndim))


permute_dims = transpose


@falls_back
def matrix_transpose(x, /):
    """The last two dimensions exchanged."""
    x = native(x)
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return swapaxes(x, -1, -2)


@falls_back
def swapaxes(a, axis1, axis2):
    """Two dimensions exchanged."""
    a = native(a)
    axes = list(range(a.ndim))
    one, two = (normalize_axis_index(operator.index(axis), a.ndim, name) for axis, name in ((axis1, "axis1"), (axis2, "axis2")))
    axes[one], axes[two] = axes[two], axes[one]
    return _native.transpose(a, axes)


@falls_back
def moveaxis(a, source, destination):
    """Some dimensions at other places."""
    a = native(a)
    source = normalize_axis_tuple(source, a.ndim, "source")
    destination = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(source) != len(destination):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(a.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return _native.transpose(a, order)


@falls_back
def rollaxis(a, axis, start=0):
    """One dimension before another one."""
    a = native(a)
    axis = normalize_axis_index(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    if not 0 <= start <= a.ndim:
        raise np.exceptions.AxisError(f"'start' arg requires {-a.ndim} <= start < {a.ndim + 1}, but {start} was passed in")
    order = [other for other in range(a.ndim) if other != axis]
    order.insert(start - (axis < start), axis)
    return _native.transpose(a, order)


@falls_back
def expand_dims(a, axis):
    """New dimensions of extent 1."""
    a = native(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = a.ndim + len(axes)
    axes = normalize_axis_tuple(axes, rank)
    if not rank:
        return a[...]
    return a[tuple(None if place in axes else slice(None) for place in range(rank))]


@falls_back
def squeeze(a, axis=None):
    """Without dimensions of extent 1."""
    a = native(a)
    if axis is None:
        axes = tuple(place for place, extent in enumerate(a.shape) if extent == 1)
    else:
        axes = axes_of(axis, a.ndim)
        if any(a.shape[place] != 1 for place in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    kept = [place for place in range(a.ndim) if place not in axes]
    shape, stride = zip(*((a.shape[p], a._stride[p]) for p in kept)) if kept else ((), ())
    return _native.window(a, a._start, list(shape), list(stride))


@falls_back
def broadcast_to(array, shape, subok=False):
    """A read-only view with another shape, as in broadcasting."""
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    array = native(array)
    if prod(shape) * array.itemsize >= 2**60 or len(shape) > MOST_DIMENSIONS:
        # Memory has no addresses for that, or views have fewer dimensions.
        return np.broadcast_to(lower(array), shape)
    if array.ndim > len(shape):
        raise ValueError(
            "input operand has more dimensions than allowed by the axis remapping" if len(shape)
            else "cannot broadcast a non-scalar to a scalar array"
        )  # fmt: skip
    return _native.broadcast_to(array, shape)


@falls_back
def broadcast_arrays(*args, subok=False):
    """The arrays with the shape that they broadcast to."""
    args = [native(value) for value in args]
    shape = np.broadcast_shapes(*(value.shape for value in args))
    results = tuple(value[...] if value.shape == shape else _native.broadcast_to(value, shape) for value in args)
    for result, value in zip(results, args):
        if value.shape != shape:
            # As in NumPy, it can be assigned to, of which the first time is warned of.
            result._writeable = result._warns = value._writeable
    return results

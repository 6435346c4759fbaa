"""Joining and splitting arrays."""

import builtins
import operator
import sys

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .. import _native
from .._array.conversion import asanyarray, asarray, astype, decides, moved, native, warn_of_lost_parts
from .._array.element_types import code_of
from .._array.layout import axis_index, joint_order
from .._numpy import immediate
from .._numpy.fallback import Fallback, falls_back, lift, lower, stack_of
from .manipulation import expand_dims, moveaxis, reshape

ndarray = _native.ndarray


def _joined_type(arrays, dtype, casting):
    kind = np.result_type(*(value.dtype for value in arrays)) if dtype is None else np.dtype(dtype)
    if code_of(kind) is None:
        raise Fallback(f"bh has no element type {kind}")
    for value in arrays:
        if not np.can_cast(value.dtype, kind, casting):
            raise TypeError(f"Cannot cast array data from {value.dtype!r} to {kind!r} according to the rule '{casting}'")
    if kind.kind not in "cb" and builtins.any(value.dtype.kind == "c" for value in arrays):
        warn_of_lost_parts()
    return kind


@falls_back
def concatenate(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """The arrays one after the other along a dimension that they have."""
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    arrays = checked(arrays)
    if builtins.any(decides(value) for value in arrays):
        raise Fallback("arrays whose class decides")
    if axis is None and builtins.any(type(value) in (int, float, complex) for value in arrays):
        raise Fallback("numbers whose type gives way")
    arrays = [native(value) for value in arrays]
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [reshape(value, (-1,)) for value in arrays], 0
    if builtins.any(value.ndim == 0 for value in arrays):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    rank = arrays[0].ndim
    axis = axis_index(axis, rank)
    shape = list(arrays[0].shape)
    for number, value in enumerate(arrays):
        if value.ndim != rank:
            text = "all the input array dimensions except for the concatenation axis must match exactly, but along dimension"
            if rank != value.ndim:
                text = f"all the input arrays must have same number of dimensions, but the array at index 0 has {rank} dimension(s) and the array at index {number} has {value.ndim} dimension(s)"
            raise ValueError(text)
        for place in range(rank):
            if place != axis and value.shape[place] != shape[place]:
                text = "all the input array dimensions except for the concatenation axis must match exactly, but along dimension {}, the array at index 0 has size {} and the array at index {} has size {}"
                raise ValueError(text.format(place, shape[place], number, value.shape[place]))
    shape[axis] = sum(value.shape[axis] for value in arrays)
    kind = _joined_type(arrays, out.dtype if out is not None else dtype, casting)
    if out is None:
        if len(arrays) > _native.MANY_JOINED and builtins.all(map(immediate.is_awaited, {value._stack for value in arrays})):
            joined = np.concatenate([immediate.lent(value) for value in arrays], axis, dtype=kind, casting="unsafe")
            return lift(joined, stack_of(arrays[0]))
        if rank > 1 and not builtins.all(value._contiguous for value in arrays):
            axes = joint_order([value.shape for value in arrays], [value._stride for value in arrays])
            if axes != sorted(axes):
                # The result is in the order of the arrays.
                turned = [_native.transpose(astype(moved(value, arrays[0]), kind), axes) for value in arrays]
                return _native.turned_back(_native.concatenate(turned, axes.index(axis)), axes)
        return _native.concatenate([astype(moved(value, arrays[0]), kind) for value in arrays], axis)
    if type(out) is not ndarray:
        raise Fallback("the output is an array of NumPy")
    if out.shape != tuple(shape):
        raise ValueError("Output array is the wrong shape")
    begin = 0
    for value in arrays:
        end = begin + value.shape[axis]
        if value.size:
            part = out[(slice(None),) * axis + (slice(begin, end),)]
            _native.assign(part, astype(moved(value, out), kind))
        begin = end
    return out


concat = concatenate


@falls_back
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """The arrays beside each other along a new dimension; for a name, the stack of components of this name for arrays made
    in a `with` statement."""
    if isinstance(arrays, str):
        from .._tools.runtime import using

        return using(arrays)
    arrays = [native(value) for value in checked(arrays)]
    if not arrays:
        raise ValueError("need at least one array to stack")
    if len({value.shape for value in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    axis = normalize_axis_index(axis, arrays[0].ndim + 1)
    return concatenate([expand_dims(value, axis) for value in arrays], axis, out, dtype=dtype, casting=casting)


def atleast_1d(*arys):
    """The arrays with at least one dimension."""
    return _at_least(arys, lambda a: reshape(a, (1,)) if a.ndim == 0 else a)


def atleast_2d(*arys):
    """The arrays with at least two dimensions."""
    return _at_least(arys, lambda a: reshape(a, (1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a)


def atleast_3d(*arys):
    """The arrays with at least three dimensions."""

    def lift(a):
        if a.ndim < 2:
            return reshape(a, (1, a.size, 1))
        return a[:, :, None] if a.ndim == 2 else a

    return _at_least(arys, lift)


def _at_least(arys, lift):
    made = tuple(lift(asanyarray(value)) for value in arys)
    return made[0] if len(made) == 1 else made


def vstack(tup, *, dtype=None, casting="same_kind"):
    """The arrays below each other."""
    return concatenate([atleast_2d(value) for value in checked(tup)], 0, dtype=dtype, casting=casting)


def hstack(tup, *, dtype=None, casting="same_kind"):
    """The arrays side by side."""
    arrays = [atleast_1d(value) for value in checked(tup)]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def checked(arrays):
    """A sequence of arrays, and no iterator."""
    if not hasattr(arrays, "__getitem__"):
        raise TypeError('arrays to stack must be passed as a "sequence" type such as list or tuple.')
    return arrays


def dstack(tup):
    """The arrays behind each other."""
    return concatenate([atleast_3d(value) for value in checked(tup)], 2)


def column_stack(tup):
    """Vectors as columns of a matrix."""
    arrays = [asarray(value) for value in checked(tup)]
    return concatenate([reshape(value, (-1, 1)) if value.ndim < 2 else value for value in arrays], 1)


def bmat(obj, ldict=None, gdict=None):
    """A matrix of NumPy's made of blocks, which text names as the caller sees them."""
    if gdict is None:
        frame = sys._getframe(1)
        ldict, gdict = frame.f_locals, frame.f_globals
    return np.bmat(lower(obj), ldict, gdict)


def unstack(x, /, *, axis=0):
    """The parts along a dimension, without it."""
    x = asarray(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    axis = normalize_axis_index(axis, x.ndim)
    return tuple(moveaxis(x, axis, 0)[number] for number in range(x.shape[axis]))


@falls_back
def array_split(ary, indices_or_sections, axis=0):
    """Parts along a dimension, as equal as may be or cut at indices."""
    ary = native(ary)
    extent = ary.shape[axis]
    axis = normalize_axis_index(axis, ary.ndim)
    try:
        bounds = [0, *map(operator.index, indices_or_sections), extent]
    except TypeError:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, more = divmod(extent, sections)
        bounds = [number * each + min(number, more) for number in range(sections + 1)]
    cut = lambda begin, end: ary[(slice(None),) * axis + (slice(begin, end),)]
    return [cut(begin, end) for begin, end in zip(bounds, bounds[1:])]


@falls_back
def split(ary, indices_or_sections, axis=0):
    """Equal parts along a dimension, or parts cut at indices."""
    ary = native(ary)
    if isinstance(indices_or_sections, (int, np.integer)) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def hsplit(ary, indices_or_sections):
    """Parts side by side."""
    ary = asarray(ary)
    if ary.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


def vsplit(ary, indices_or_sections):
    """Parts below each other."""
    ary = asarray(ary)
    if ary.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


def dsplit(ary, indices_or_sections):
    """Parts behind each other."""
    ary = asarray(ary)
    if ary.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)

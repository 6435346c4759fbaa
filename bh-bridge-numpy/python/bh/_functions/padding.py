"""Arrays with borders: `pad` as copies of boxes, which read the source only."""

import functools
import itertools
from math import prod

import numpy as np

from .. import _native
from .._array.conversion import native
from .._numpy import fallback
from .._numpy.fallback import falls_back
from .._numpy.provided import equivalent, public
from . import numpy_code

# Most dimensions of which the boxes are copied, three in each dimension.
_MOST_DIMENSIONS = 4


@falls_back
def pad(array, pad_width, mode="constant", **kwargs):
    """The array with borders of constants, or of its own elements."""
    source = native(array)
    widths = _widths(pad_width, source.ndim)
    is_known = widths and source.size and source.ndim <= _MOST_DIMENSIONS and not source.flags.fnc
    if is_known and mode == "constant" and not kwargs.keys() - {"constant_values"}:
        values = _numbers(kwargs.get("constant_values", 0), source.ndim)
        if values:
            return _with_constants(source, widths, values)
    elif is_known and type(mode) is str and mode in _SEGMENTS and not kwargs:
        segments = [_SEGMENTS[mode](extent, *width) for extent, width in zip(source.shape, widths)]
        if all(segments):
            return _of_boxes(source, segments)
    return _numpys_pad()(array, pad_width, mode, **kwargs)


@functools.cache
def _numpys_pad():
    """NumPy's code over functions of this package, for other modes and widths."""
    return numpy_code.adapt(np.pad, public, equivalent)


def _widths(pad_width, rank):
    """The widths before and behind each dimension; None for what NumPy's code has to look at."""
    try:
        widths = np.asarray(fallback.lower(pad_width))
        pairs = np.broadcast_to(widths, (rank, 2)).tolist()
    except (TypeError, ValueError):
        return None
    return pairs if rank and widths.dtype.kind == "i" and widths.min() >= 0 else None


def _numbers(values, rank):
    """The numbers before and behind each dimension; None for what NumPy's code has to look at."""
    try:
        values = np.asarray(fallback.lower(values))
        return np.broadcast_to(values, (rank, 2)).tolist() if values.dtype.kind in "biufc" else None
    except (TypeError, ValueError):
        return None


def _with_constants(source, widths, values):
    """The array with borders of numbers; where dimensions meet, those of the last one."""
    shape = [extent + sum(width) for extent, width in zip(source.shape, widths)]
    result = _native.empty(shape, source._code, _native.Stack(source._stack))
    inner = [slice(before, before + extent) for extent, (before, _) in zip(source.shape, widths)]
    result[tuple(inner)] = source
    for axis, ((before, behind), pair) in enumerate(zip(widths, values)):
        around = (slice(None),) * axis, tuple(inner[axis + 1 :])
        for count, part, value in ((before, slice(before), pair[0]), (behind, slice(shape[axis] - behind, None), pair[1])):
            if count:
                result[(*around[0], part, *around[1])] = value
    return result


# Segments of a dimension in the order of the result: how many places, the element of the first one, and the step to the next. None for
# borders that repeat the array, or a part of it, more than once.


def _edge(extent, before, behind):
    return [(before, 0, 0), (extent, 0, 1), (behind, extent - 1, 0)]


def _symmetric(extent, before, behind):
    return [(before, before - 1, -1), (extent, 0, 1), (behind, extent - 1, -1)] if max(before, behind) <= extent else None


def _reflect(extent, before, behind):
    return [(before, before, -1), (extent, 0, 1), (behind, extent - 2, -1)] if max(before, behind) < extent else None


def _wrap(extent, before, behind):
    return [(before, extent - before, 1), (extent, 0, 1), (behind, 0, 1)] if max(before, behind) <= extent else None


_SEGMENTS = {"edge": _edge, "symmetric": _symmetric, "reflect": _reflect, "wrap": _wrap}


def _of_boxes(source, segments):
    """The array whose boxes are views of another one."""
    shape = [sum(count for count, _, _ in parts) for parts in segments]
    result = _native.empty(shape, source._code, _native.Stack(source._stack))
    for parts in itertools.product(*map(_placed, segments)):
        lengths = [count for _, count, _, _ in parts]
        if not prod(lengths):
            continue
        to = sum(place * stride for (place, *_), stride in zip(parts, result._stride))
        first = source._start + sum(start * stride for (_, _, start, _), stride in zip(parts, source._stride))
        steps = [step * stride for (_, _, _, step), stride in zip(parts, source._stride)]
        _native.assign(_native.window(result, to, lengths, list(result._stride)), _native.window(source, first, lengths, steps))
    return result


def _placed(parts):
    """Segments with the places where they begin."""
    begins = itertools.accumulate((count for count, _, _ in parts), initial=0)
    return [(place, *part) for place, part in zip(begins, parts)]

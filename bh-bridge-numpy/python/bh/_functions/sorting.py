"""Sorting, counting, and differences of neighbours."""

import operator
import warnings

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .. import _native
from .._array.conversion import astype, native
from .._array.element_types import BOOL, CODE, INT64, is_complex, is_inexact, is_integer
from .._array.layout import axes_in_memory
from .._numpy import fallback
from .._numpy.fallback import Fallback, falls_back
from .._ufunc.axes import axes_of, deliver, target_of
from .._ufunc.ufunc import UFUNCS
from .arrangement import flip
from .complex_parts import part_of
from .joining import concatenate
from .manipulation import moveaxis, reshape
from .search import copyto, take, take_along_axis, where

ndarray = _native.ndarray
_u = UFUNCS
_NO_VALUE = np._NoValue


def _check_kind(kind, stable):
    """Every sort here is stable; what NumPy does not know as a kind is an error."""
    if kind is not None and stable is not None:
        raise ValueError("`kind` and keyword parameters can't be provided at the same time. Use only one of them.")
    if isinstance(kind, bytes):
        kind = kind.decode()
    if kind is not None and not (isinstance(kind, str) and kind[:1].lower() in ("q", "h", "m", "s")):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")


def _check_kth(a, kth, axis, kind):
    """The places of a partition lie within the axis, as whole numbers, and its one kind is known."""
    if kind not in ("introselect", b"introselect"):
        raise (ValueError if isinstance(kind, (str, bytes)) else TypeError)(f"partition kind must be 'introselect' (got {kind!r})")
    host = np.asarray(fallback.lower(kth))
    if host.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    if host.ndim > 1:
        raise ValueError("kth array must have dimension <= 1")
    extent = a.size if axis is None else a.shape[normalize_axis_index(axis, a.ndim)] if a.ndim else 1
    for place in host.reshape(-1).tolist() if a.size else ():
        if not -extent <= place < extent:
            raise ValueError(f"kth(={place + extent if place < 0 else place}) out of bounds ({extent})")


def _sorting(name, a, axis):
    a = native(a)
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    if a.ndim == 0:
        raise np.exceptions.AxisError(axis, 0)
    axis = normalize_axis_index(axis, a.ndim)
    axes = axes_in_memory("K", a.shape, a._stride) if name == "sort" else None
    if axes is not None:
        # A copy in the array's own order, which NumPy sorts; indices are in C's.
        return _native.turned_back(_sorting(name, _native.transpose(a, axes), axes.index(axis)), axes)
    if is_complex(a._code):
        order = _order_of_complex(a, axis)
        return take_along_axis(a, order, axis) if name == "sort" else order
    last = moveaxis(a, axis, -1)
    result = _native.empty(last.shape, a._code if name == "sort" else INT64, _native.Stack(a._stack))
    if result.size:
        try:
            _native.extension(name, [result], [_native.cast(last, last._code)])
        except _native.Error:
            raise Fallback("no component of the stack sorts") from None
    # In C order as NumPy's, so that what is made of it by `reshape` shares its memory.
    return result if axis == a.ndim - 1 else moveaxis(result, -1, axis).copy()


def _order_of_complex(a, axis):
    """The indices that sort complex numbers: by real parts, then by imaginary ones; those with NaN come last."""
    real, imag = part_of(a, "real"), part_of(a, "imag")
    nan = astype(_u["isnan"](real), np.int64) * 2 + _u["isnan"](imag)
    order = _sorting("argsort", imag, axis)
    for key in (real, nan):
        order = take_along_axis(order, _sorting("argsort", take_along_axis(key, order, axis), axis), axis)
    return order


def _check_order(a, order):
    if order is not None and type(a) is ndarray:
        raise ValueError("Cannot specify order when the array has no fields.")
    if order is not None:
        raise Fallback("elements with fields")


@falls_back
def sort(a, axis=-1, kind=None, order=None, *, stable=None, descending=False):
    """The elements in ascending order along an axis, NaN last; in descending order all the other way round."""
    _check_order(a, order)
    _check_kind(kind, stable)
    result = _sorting("sort", a, axis)
    return flip(result, -1 if axis is None else axis) if descending else result


@falls_back
def argsort(a, axis=-1, kind=None, order=None, *, stable=None, descending=False):
    """The indices that sort along an axis, in ascending or descending order; equal elements keep their order."""
    _check_order(a, order)
    _check_kind(kind, stable)
    a = native(a)
    if a.ndim == 0:
        axes_of(axis, 0)
        return _native.full((1,), INT64, 0)
    if not descending:
        return _sorting("argsort", a, axis)
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    # Sorted backwards, and read from the end: so equal elements stay in order.
    return a.shape[axis] - 1 - flip(_sorting("argsort", flip(a, axis), axis), axis)


@falls_back
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """The elements in ascending order, which is more than is asked for."""
    a = native(a)
    if a.ndim == 0 and axis is not None:
        raise np.exceptions.AxisError(axis, 0)
    _check_kth(a, kth, axis, kind)
    return sort(a, axis)


@falls_back
def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    """The indices that sort, which is more than is asked for."""
    a = native(a)
    _check_kth(a, kth, axis, kind)
    return argsort(a, axis)


@falls_back
def searchsorted(a, v, side="left", sorter=None):
    """The places in a sorted array where values would have to be inserted, found by halving."""
    a = native(a)
    values = native(v)
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if a.ndim != 1:
        raise ValueError("object too deep for desired array")
    if sorter is not None:
        sorter = native(sorter)
        if sorter.dtype.kind not in "iu":
            raise TypeError("sorter must only contain integers")
        if sorter.size != a.size:
            raise ValueError("sorter.size must equal a.size")
        if sorter.size and not 0 <= _native.item_of(sorter.min()) <= _native.item_of(sorter.max()) < a.size:
            raise ValueError("Sorter index out of range.")
        a = take(a, sorter)
    kind = np.result_type(a.dtype, values.dtype)
    if kind not in CODE or is_complex(CODE[kind]):
        raise Fallback("complex numbers have no order in bh")
    a, values = astype(a, kind), astype(values, kind)
    scalar = not np.ndim(v)
    low = _native.full(values.shape, INT64, 0)
    low._scalar = scalar
    if a.size == 0:
        return low
    floats = is_inexact(a._code)
    step = 1 << (a.size.bit_length() - 1)
    while step:
        # Goes on by `step` where the element before the new place is still below the value.
        place = low + step
        inside = place <= a.size
        element = _native.operate("gather", [a, _native.cast(_u["minimum"](place, a.size) - 1, INT64)])
        below = element < values if side == "left" else element <= values
        if floats:
            # NaN comes last, and equals NaN.
            nan = _u["isnan"](values)
            below = where(nan, ~_u["isnan"](element) if side == "left" else True, below)
        low = where(inside & below, place, low)
        step >>= 1
    low._scalar = scalar
    return low


@falls_back
def digitize(x, bins, right=False):
    """The numbers of the bins that values fall into."""
    x, bins = native(x), native(bins)
    if is_complex(x._code) or is_complex(bins._code):
        raise TypeError("x and bins may not be complex")
    if bins.ndim != 1:
        raise ValueError("object too deep for desired array")
    host = fallback.to_numpy(bins)
    if np.isnan(host).any():
        raise Fallback("NaN among the bins")
    if (np.diff(host) >= 0).all():
        return searchsorted(bins, x, side="left" if right else "right")
    if (np.diff(host) <= 0).all():
        return bins.size - searchsorted(flip(bins), x, side="left" if right else "right")
    raise ValueError("bins must be monotonically increasing or decreasing")


@falls_back
def bincount(x, /, weights=None, minlength=0):
    """How often each whole number occurs, or the sum of its weights."""
    x = native(x, np.int64 if isinstance(x, (list, tuple)) and not len(x) else None)
    minlength = operator.index(minlength)
    if x.ndim != 1:
        raise ValueError("object too deep for desired array" if x.ndim else "object of too small depth for desired array")
    if not (is_integer(x._code) or x._code == BOOL):
        raise TypeError(f"Cannot cast array data from {x.dtype!r} to dtype('int64') according to the rule 'safe'")
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if weights is not None and is_complex(native(weights)._code):
        raise TypeError(f"Cannot cast array data from {native(weights).dtype!r} to dtype('float64') according to the rule 'safe'")
    x = astype(x, np.int64)
    size = minlength
    if x.size:
        # One read computes both.
        least, most = x.min(), x.max()
        if _native.item_of(least) < 0:
            raise ValueError("'list' argument must have no negative elements")
        size = max(_native.item_of(most) + 1, minlength)
    if weights is not None and x.size and native(weights).shape != x.shape:
        raise ValueError("The weights and list don't have the same length.")
    return counted(x, size, weights)


def counted(places, size, weights=None):
    """How often each of the numbers below `size` is among the `int64` `places`, which are below it, or the sum of its weights."""
    if weights is None or not places.size:
        values, result = _native.full(places.shape, INT64, 1), _native.full((size,), INT64, 0)
    else:
        values, result = astype(native(weights), np.float64), _native.full((size,), CODE[np.dtype(float)], 0.0)
    if places.size:
        _native.operate_into(result, "scatter_add", [values, places])
    return result


@falls_back
def diff(a, n=1, axis=-1, prepend=_NO_VALUE, append=_NO_VALUE):
    """The differences of neighbours along an axis, `n` times over."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    a = native(a)
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, a.ndim)
    parts = [a]
    for value, front in ((prepend, True), (append, False)):
        if value is not _NO_VALUE:
            value = native(value)
            if value.ndim == 0:
                value = _native.broadcast_to(value, a.shape[:axis] + (1,) + a.shape[axis + 1 :])
            parts = [value, *parts] if front else [*parts, value]
    a = concatenate(parts, axis) if len(parts) > 1 else a
    at = lambda *bounds: (slice(None),) * axis + (slice(*bounds),)
    for _ in range(n):
        later, earlier = a[at(1, None)], a[at(None, -1)]
        a = later != earlier if a._code == BOOL else later - earlier
    return a


@falls_back
def ediff1d(ary, to_end=None, to_begin=None):
    """The differences of neighbours among all elements, with values before and after them."""
    ary = reshape(native(ary), (-1,))
    parts = [_u["subtract"](ary[1:], ary[:-1])]
    for name, value in (("to_begin", to_begin), ("to_end", to_end)):
        if value is not None:
            value = native(value)
            if not np.can_cast(value.dtype, ary.dtype, "same_kind"):
                raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
            value = reshape(astype(value, ary.dtype), (-1,))
            parts = [value, *parts] if name == "to_begin" else [*parts, value]
    return concatenate(parts)


def with_nan(data, result, axis):
    """The medians of sorted elements, NaN where those hold NaN, which comes last; behind NumPy's `median`. Only an output of a type without NaN is looked at."""
    if type(data) is not ndarray or type(result) is not ndarray:
        return np.lib._utils_impl._median_nancheck(fallback.lower(data), fallback.lower(result), axis)
    if data.size == 0 or not is_inexact(data._code):
        return result
    last = take(data, -1, axis)
    if not result._scalar:
        lost = _u["isnan"](last)
        # A type that has no NaN stays as it is where there is none, and otherwise is an error, as in NumPy.
        if np.can_cast(last.dtype, result.dtype, "same_kind") or bool(lost.any()):
            copyto(result, last, where=lost)
        return result
    return where(_u["isnan"](last), last, result)


def median_without_nan(a, axis=None, out=None, overwrite_input=False):
    """The medians of the elements that are not NaN, which sorting puts last; behind NumPy's `nanmedian`."""
    a = native(a)
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    ordered = sort(a, axis)
    count = _u["add"].reduce(astype(~_u["isnan"](a), np.int64), axis, keepdims=True)
    for _ in range(int((count == 0).sum())):
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=3)
    places = _u["maximum"](count - 1, 0) // 2, _u["minimum"](count // 2, a.shape[axis] - 1)
    low, high = (take_along_axis(ordered, place, axis) for place in places)
    if not is_inexact(a._code):
        # The sum of two may be beyond their type.
        low, high = astype(low, np.float64), astype(high, np.float64)
    result = where(places[0] == places[1], low, (low + high) / 2)
    result, target = take(result, 0, axis), target_of(out)
    if target is None:
        return deliver(result, out)
    target[...] = result
    return target

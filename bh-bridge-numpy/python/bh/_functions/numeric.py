"""Interpolation, histograms, convolutions, flat indices, sorting by several keys."""

import operator
from math import prod

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .. import _native
from .._array import indexing
from .._array.conversion import astype, native, order_of, warn
from .._array.element_types import BOOL, CODE, is_complex, is_inexact
from .._numpy import fallback
from .._numpy.fallback import Fallback, falls_back
from .._numpy.provided import public
from .._ufunc.ufunc import UFUNCS
from .arrangement import flip
from .joining import concatenate, vstack
from .manipulation import reshape
from .reductions import sum as sum_
from .search import mode_of, take, where
from .sorting import argsort, counted, searchsorted

ndarray = _native.ndarray
_u = UFUNCS


def row_stack(tup, *, dtype=None, casting="same_kind"):
    """As `vstack`, under a name that is to go."""
    warn("`row_stack` alias is deprecated. Use `np.vstack` directly.", DeprecationWarning)
    return vstack(tup, dtype=dtype, casting=casting)


@falls_back
def interp(x, xp, fp, left=None, right=None, period=None):
    """The values at `x` of the line through points whose abscissas ascend; constant beyond the outer points."""
    if period is not None:
        raise Fallback("periodic abscissas")
    x, xp, fp = native(x), native(xp), native(fp)
    if is_complex(fp._code) or is_complex(x._code) or is_complex(xp._code):
        raise Fallback("complex numbers")
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError("Data points must be 1-D sequences")
    if xp.size == 0:
        raise ValueError("array of sample points is empty")
    if xp.size != fp.size:
        raise ValueError("fp and xp are not of the same length.")
    x, xp, fp = (astype(value, np.float64) for value in (x, xp, fp))
    first, last = fp[0] if left is None else float(left), fp[-1] if right is None else float(right)
    if xp.size == 1:
        inside = fp[0]
        result = where(x == xp[0], inside, where(x < xp[0], first, last))
    else:
        place = _u["minimum"](_u["maximum"](searchsorted(xp, x, side="right") - 1, 0), xp.size - 2)
        begin, base = take(xp, place), take(fp, place)
        slope = (take(fp, place + 1) - base) / (take(xp, place + 1) - begin)
        inside = where(x == begin, base, slope * (x - begin) + base)
        # A slope that is infinite or undefined: the line seen from its other end, or equal ordinates.
        other = slope * (x - take(xp, place + 1)) + take(fp, place + 1)
        inside = where(_u["isnan"](inside), where(_u["isnan"](other) & (base == take(fp, place + 1)), base, other), inside)
        inside = where(x == xp[-1], fp[-1], inside)
        result = where(x < xp[0], first, where(x > xp[-1], last, inside))
    result = where(_u["isnan"](x), x, result)
    result._scalar = result.ndim == 0
    return result


def _edges(a, bins, range):
    """The edges of equal bins, and the outer ones as numbers."""
    bins = operator.index(bins)
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if range is not None:
        first, last = (fallback.lower(bound) for bound in range)
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"supplied range of [{first}, {last}] is not finite")
    elif a.size == 0:
        first, last = 0.0, 1.0
    else:
        # One read computes both.
        first, last = _u["minimum"].reduce(a), _u["maximum"].reduce(a)
        first, last = float(first), float(last)
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"autodetected range of [{first}, {last}] is not finite")
        if a.dtype.kind == "f":
            # NumPy computes the edges in the type of the elements.
            first, last = a.dtype.type(first), a.dtype.type(last)
    if first == last:
        first, last = first - 0.5, last + 0.5
    kind = np.result_type(first, last, a.dtype)
    kind = np.result_type(kind, np.float64) if kind.kind in "iu" else kind
    edges = np.linspace(first, last, bins + 1, dtype=kind)
    if (edges[:-1] >= edges[1:]).any():
        raise ValueError(f"Too many bins for data range. Cannot create {bins} finite-sized bins.")
    return native(edges), first, last


@falls_back
def histogram(a, bins=10, range=None, density=None, weights=None):
    """How many elements (or what sum of weights) fall into each bin, and the edges of the bins."""
    if isinstance(bins, str):
        edges = public["histogram_bin_edges"](a, bins, range, weights)
        bins, range = edges.size - 1, (edges[0], edges[-1])
    a = native(a)
    if is_complex(a._code):
        raise Fallback("complex numbers have no order in bh")
    if a._code == BOOL:
        warn("Converting input from bool to <class 'numpy.uint8'> for compatibility.", RuntimeWarning)
        a = astype(a, np.uint8)
    a = reshape(a, (-1,))
    if weights is not None:
        weights = native(weights)
        if weights.size != a.size:
            raise ValueError("weights should have the same shape as a.")
        if is_complex(weights._code):
            raise Fallback("complex weights")
        weights = reshape(weights, (-1,))
    if np.ndim(bins) == 0:
        edges, first, last = _edges(a, bins, range)
        count = edges.size - 1
        inside = (a >= first) & (a <= last)
        value = astype(a, edges.dtype)
        # Of whole numbers the distance from the first one may be beyond their type.
        first, last = (number if isinstance(number, (int, float)) else number.item() for number in (first, last))
        place = (astype(where(inside, value, first), np.float64) - first) / (last - first) * count
        place = _u["minimum"](astype(place, np.int64), count - 1)
        place = place - astype(value < take(edges, place), np.int64)
        place = _u["maximum"](place, 0)
        place = place + astype((value >= take(edges, place + 1)) & (place != count - 1), np.int64)
    else:
        edges = native(bins)
        if edges.ndim != 1:
            raise ValueError("`bins` must be 1d, when an array")
        if bool((edges[:-1] > edges[1:]).any()):
            raise ValueError("`bins` must increase monotonically, when an array")
        count = edges.size - 1
        place = searchsorted(edges, a, side="right") - 1
        place = where(a == edges[-1], count - 1, place)
        inside = (place >= 0) & (place < count)
    # Elements outside of all bins are counted in one more.
    place = where(inside, place, count)
    kind = np.dtype(np.int64) if weights is None else weights.dtype
    if weights is None:
        found = counted(place, count + 1)[:count]
    else:
        found = astype(counted(place, count + 1, weights)[:count], kind)
    if density:
        width = astype(edges[1:] - edges[:-1], np.float64)
        return found / width / sum_(found), edges
    return found, edges


def _windows(a, v, mode):
    """All windows of the length of `v` on `a`, as the mode wants them."""
    short = v.size
    if mode in ("full", 2):
        margin = short - 1, short - 1
    elif mode in ("same", 1):
        margin = short // 2, (short - 1) // 2
    elif mode in ("valid", 0):
        margin = 0, 0
    elif isinstance(mode, int):
        raise ValueError(f"integer convolve/correlate mode must be 0, 1, or 2 (got {mode})")
    elif isinstance(mode, str):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    else:
        raise TypeError("convolve/correlate mode not understood")
    if margin != (0, 0):
        zeros = [_native.full((size,), a._code, False if a._code == BOOL else 0) for size in margin]
        a = concatenate([zeros[0], a, zeros[1]])
    elif not a._contiguous:
        a = _native.cast(a, a._code)
    step = a._stride[0]
    return _native.window(a, a._start, [a.size - short + 1, short], [step, step])


def _slid(a, v, mode):
    """The sums of products of `v` and each window on `a`, which is at least as long."""
    products = _windows(a, v, mode) * v
    if mode in ("valid", 0) or not is_inexact(a._code):
        return sum_(products, 1, a.dtype)
    # Beyond the ends of `a` there is nothing, not zeros, of which infinities would make NaN.
    inside = _windows(_native.full(a.shape, BOOL, True), v, mode)
    return _native.fold("masked_add_reduce", products, 1 << 1, False, inside)


def _signals(a, v):
    a, v = native(a), native(v)
    kind = np.result_type(a.dtype, v.dtype)
    if kind not in CODE:
        raise Fallback(f"bh has no element type {kind}")
    a, v = (reshape(astype(value, kind), (1,)) if value.ndim == 0 else astype(value, kind) for value in (a, v))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError("object too deep for desired array")
    if a.size == 0 or v.size == 0:
        raise ValueError("first array argument cannot be empty" if a.size == 0 else "second array argument cannot be empty")
    return a, v


@falls_back
def convolve(a, v, mode="full"):
    """The convolution of two sequences."""
    for name, value in (("a", a), ("v", v)):
        if np.size(value) == 0:
            raise ValueError(f"{name} cannot be empty")
    a, v = _signals(a, v)
    if v.size > a.size:
        a, v = v, a
    return _slid(a, flip(v), mode)


@falls_back
def correlate(a, v, mode="valid"):
    """The cross-correlation of two sequences."""
    if not (np.ndim(a) and np.ndim(v)):
        raise ValueError("object of too small depth for desired array")
    a, v = _signals(a, v)
    if is_complex(v._code):
        v = _u["conjugate"](v)
    if v.size <= a.size:
        return _slid(a, v, mode)
    turned = flip(_slid(v, a, mode))
    return _native.cast(turned, turned._code)


def _size_of(shape):
    """The number of elements, which has to be within bounds."""
    size = prod(map(int, shape))
    if size >= 2**63:
        raise ValueError(f"an array of shape {shape} has too many elements")
    return size


@falls_back
def unravel_index(indices, shape, order="C"):
    """Flat indices as an index array for each dimension."""
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if isinstance(indices, (list, tuple)) and not len(indices) or not shape:
        raise Fallback("no indices or dimensions")
    indices = native(indices)
    order = order_of(order, "C")
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    if indices.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    size = _size_of(shape)
    flat = astype(indices, np.int64)
    if flat.size:
        low, high = _native.item_of(flat.min()), _native.item_of(flat.max())
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            raise ValueError(f"index {wrong} is out of bounds for array with size {size}")
    parts = []
    for extent in reversed(shape) if order == "C" else shape:
        parts.append(flat % max(extent, 1))
        flat = flat // max(extent, 1)
    parts = tuple(reversed(parts) if order == "C" else parts)
    return indexing.beside(parts) if flat.ndim else parts


@falls_back
def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """An index array for each dimension as flat indices."""
    if order_of(order, "C") not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    dims, parts = tuple(map(operator.index, dims)), [native(part) for part in multi_index]
    if any(part.dtype.kind not in "iu" or part.size and 0 in dims for part in parts):
        raise Fallback("indices that are no whole numbers, or of no element")
    _size_of(dims)
    parts = [astype(part, np.int64) for part in parts]
    modes = tuple(map(mode_of, (mode,) * len(dims) if isinstance(mode, str) else mode))
    if len(parts) != len(dims) or len(modes) != len(dims):
        raise ValueError("parameter multi_index must be a sequence of length {}".format(len(dims)))
    checked = []
    for part, extent, way in zip(parts, dims, modes):
        if way == "wrap":
            part = part % extent
        elif way == "clip":
            part = _u["minimum"](_u["maximum"](part, 0), extent - 1)
        elif part.size and bool(((part < 0) | (part >= extent)).any()):
            raise ValueError("invalid entry in coordinates array")
        checked.append(part)
    pairs = list(zip(checked, dims))
    total, step = None, 1
    for part, extent in reversed(pairs) if order_of(order, "C") == "C" else pairs:
        total = part * step if total is None else total + part * step
        step *= extent
    return total


@falls_back
def lexsort(keys, axis=-1):
    """The indices that sort by several keys, of which the last one counts most."""
    keys = [native(key) for key in keys]
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if any(key.shape != keys[0].shape for key in keys):
        raise ValueError("all keys need to be the same shape")
    if any(key.ndim != 1 for key in keys):
        raise Fallback("keys of several dimensions")
    normalize_axis_index(axis, 1)
    order = argsort(keys[0], stable=True)
    for key in keys[1:]:
        order = take(order, argsort(take(key, order), stable=True))
    return order


def isfortran(a):
    """Does the first index vary fastest in memory, and not the last?"""
    return a.flags.fnc


__all__ = """interp histogram convolve correlate unravel_index ravel_multi_index lexsort row_stack isfortran""".split()

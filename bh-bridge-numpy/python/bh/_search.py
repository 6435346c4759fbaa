"""Choosing, finding, sorting and rounding elements."""

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from . import _fallback, _indexing, _native
from ._convert import astype, native
from ._fallback import Fallback, falls_back
from ._folds import deliver
from ._manipulation import broadcast_arrays, concatenate, flip, moveaxis, reshape, stack
from ._types import BOOL, CODE, INT64, is_complex, is_inexact, is_integer
from ._ufunc import UFUNCS, converted_to, operand_of

ndarray = _native.ndarray
_u = UFUNCS
_TYPES = list(CODE)
_NO_VALUE = np._NoValue


@falls_back
def where(condition, x=None, y=None, /):
    """Elements of `x` where a condition is true, else of `y`; with a condition alone, where it is true."""
    if x is None and y is None:
        return _indexing.nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    mask = astype(native(condition), bool)
    (x, x_code), (y, y_code) = operand_of(x), operand_of(y)
    kind = np.result_type(*(value if code >= 13 else _TYPES[code] for value, code in ((x, x_code), (y, y_code))))
    if kind not in CODE:
        raise Fallback(f"bh has no element type {kind}")
    code = CODE[kind]
    x, y = (converted_to(value, code) for value in (x, y))
    if type(x) is not ndarray and type(y) is not ndarray:
        x = _native.full((), code, x)
    return _native.operate("where", [mask, x, y])


@falls_back
def nonzero(a):
    """The indices of elements that are not zero, an array for each dimension."""
    return _indexing.nonzero(native(a))


@falls_back
def argwhere(a):
    """The indices of elements that are not zero, a row for each."""
    a = native(a)
    if a.ndim == 0:
        return _native.empty((int(bool(a)), 0), INT64)
    return stack(_indexing.nonzero(a), 1)


@falls_back
def extract(condition, arr):
    """The elements for which a condition is true."""
    return reshape(arr, (-1,))[_indexing.flatnonzero(astype(native(condition), bool))]


@falls_back
def compress(condition, a, axis=None, out=None):
    """The slices along an axis for which a condition is true."""
    condition = native(condition)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    numbers = _indexing.flatnonzero(astype(condition, bool))
    return take(a, numbers, axis, out)


@falls_back
def take(a, indices, axis=None, out=None, mode="raise"):
    """The elements (or slices along an axis) at indices."""
    a = native(a)
    if a.ndim == 0:
        a = reshape(a, (1,))
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    axis = normalize_axis_index(axis, a.ndim)
    if isinstance(indices, (int, np.integer)) and not isinstance(indices, bool):
        indices = np.asarray(indices)
    host = None if type(indices) is ndarray else np.asarray(_fallback.lower(indices))
    if host is not None and host.size == 0:
        host = host.astype(np.int64)
    indices = native(indices if host is None else host)
    if not np.can_cast(indices.dtype, np.int64, "same_kind"):
        raise TypeError(f"Cannot cast array data from {indices.dtype!r} to dtype('int64') according to the rule 'safe'")
    extent = a.shape[axis]
    if mode != "raise":
        host = None
        indices = astype(indices, np.int64)
        indices = indices % max(extent, 1) if mode == "wrap" else clip(indices, 0, max(extent - 1, 0))
    if extent == 0 and indices.size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    key = (slice(None),) * axis + (host if host is not None else astype(indices, np.int64),)
    return deliver(_indexing.get(a, key), out)


@falls_back
def take_along_axis(arr, indices, axis=-1):
    """The elements at indices of their own for each slice along an axis."""
    arr, indices = native(arr), native(indices)
    if not np.issubdtype(indices.dtype, np.integer):
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        return reshape(arr, (-1,))[indices]
    return arr[_along(arr, indices, axis)]


@falls_back
def put_along_axis(arr, indices, values, axis):
    """Assigns to the elements at indices of their own for each slice along an axis."""
    indices = native(indices)
    if axis is None:
        arr.flat[indices] = values
    else:
        arr[_along(arr, indices, axis)] = values


def _along(arr, indices, axis):
    if arr.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = normalize_axis_index(axis, arr.ndim)
    key = []
    for place, extent in enumerate(arr.shape):
        shape = (1,) * place + (extent,) + (1,) * (arr.ndim - place - 1)
        key.append(indices if place == axis else np.arange(extent).reshape(shape))
    return tuple(key)


def put(a, ind, v, mode="raise"):
    """Assigns values to the elements at flat indices."""
    if type(a) is not ndarray:
        return np.put(a, _fallback.lower(ind), _fallback.lower(v), mode)
    ind = native(ind)
    flat = astype(reshape(ind, (-1,)), np.int64)
    if flat.size == 0:
        return None
    if mode == "wrap":
        flat = flat % a.size
    elif mode == "clip":
        flat = clip(flat, 0, a.size - 1)
    values = reshape(astype(native(v), a.dtype), (-1,))
    if values.size == 0:
        return None
    if values.size != flat.size:
        from ._manipulation import resize

        values = resize(values, flat.shape)
    flat = _native.operate("where", [flat < 0, flat + a.size, flat])
    _native.operate_into(a, "scatter", [values, flat])
    return None


def place(arr, mask, vals):
    """Assigns values, in order, to the elements for which a mask is true."""
    found = _indexing.flatnonzero(astype(native(mask), bool))
    values = reshape(native(vals), (-1,))
    if found.size == 0:
        return
    if values.size == 0:
        raise ValueError("Cannot insert from an empty array!")
    from ._manipulation import resize

    put(arr, found, resize(values, found.shape))


def putmask(a, mask, values):
    """Assigns the values at the same places to the elements for which a mask is true."""
    mask, values = native(mask), native(values)
    if values.shape != a.shape and values.size > 1:
        from ._manipulation import resize

        values = reshape(resize(values, (a.size,)), a.shape)
    copyto(a, values, where=reshape(mask, a.shape), casting="unsafe")


def copyto(dst, src, casting="same_kind", where=True):
    """Assigns the elements of one array to another."""
    if type(dst) is not ndarray:
        return np.copyto(dst, _fallback.lower(src), casting, _fallback.lower(where))
    kind = src.dtype if hasattr(src, "dtype") else np.asarray(src).dtype if not isinstance(src, (int, float, complex)) else dst.dtype
    if not np.can_cast(kind, dst.dtype, casting):
        raise TypeError(f"Cannot cast array data from {kind!r} to {dst.dtype!r} according to the rule '{casting}'")
    if where is True:
        dst[...] = src
        return None
    mask = _native.broadcast_to(native(where), dst.shape)
    value = _native.broadcast_to(astype(native(src), dst.dtype), dst.shape)
    if not dst._writeable:
        raise ValueError("assignment destination is read-only")
    return _native.operate_into(dst, "where", [mask, value, dst])


@falls_back
def choose(a, choices, out=None, mode="raise"):
    """For each element, which is a number, the element of the choice with this number."""
    a = native(a)
    choices = [native(choice) for choice in choices]
    kind = np.result_type(*(choice.dtype for choice in choices))
    count = len(choices)
    if mode == "wrap":
        a = a % count
    elif mode == "clip":
        a = clip(a, 0, count - 1)
    elif bool(((a < 0) | (a >= count)).any()):
        raise ValueError("invalid entry in choice array")
    a, *choices = broadcast_arrays(a, *choices)
    result = astype(choices[0], kind)
    for number, choice in enumerate(choices[1:], 1):
        result = where(a == number, astype(choice, kind), result)
    return deliver(_native.cast(result, result._code), out)


@falls_back
def select(condlist, choicelist, default=0):
    """For each element, that of the choice whose condition is the first true one."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    kind = np.result_type(*(c.dtype if hasattr(c, "dtype") else c for c in (*choicelist, default)))
    result = np.asarray(default, kind) if type(default) is not ndarray else default
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        condition = native(condition)
        if condition._code != BOOL:
            raise TypeError("invalid entry 0 in condlist: should be boolean ndarray")
        result = where(condition, astype(native(choice), kind), astype(native(result), kind))
    return result


@falls_back
def clip(a, a_min=_NO_VALUE, a_max=_NO_VALUE, out=None, *, min=_NO_VALUE, max=_NO_VALUE, **kwargs):
    """The elements, but not below and not above limits."""
    if kwargs:
        raise Fallback("arguments of universal functions")
    low = min if a_min is _NO_VALUE else a_min
    high = max if a_max is _NO_VALUE else a_max
    a = native(a)
    result = a
    if low is not None and low is not _NO_VALUE:
        result = _u["maximum"](result, low)
    if high is not None and high is not _NO_VALUE:
        result = _u["minimum"](result, high)
    if result is a:
        result = _native.cast(a, a._code)
    return deliver(result, out)


@falls_back
def round(a, decimals=0, out=None):
    """The elements rounded to so many decimals, halves to even."""
    a = native(a)
    decimals = operator.index(decimals)
    if a._code == BOOL:
        raise Fallback("truth values")
    if is_complex(a._code):
        result = complex_of(round(real(a), decimals), round(imag(a), decimals))
    elif is_inexact(a._code):
        scale = 10.0 ** abs(decimals)
        if decimals == 0:
            result = _u["rint"](a)
        elif decimals > 0:
            result = _u["rint"](a * scale) / scale
        else:
            result = _u["rint"](a / scale) * scale
    elif decimals >= 0:
        result = _native.cast(a, a._code)
    else:
        raise Fallback("whole numbers to tens")
    return deliver(result, out)


around = round


@falls_back
def real(val):
    """The real parts; of a real array the array itself."""
    val = native(val)
    return _native.operate("real", [val]) if is_complex(val._code) else val


@falls_back
def imag(val):
    """The imaginary parts; zeros for a real array."""
    val = native(val)
    if is_complex(val._code):
        return _native.operate("imag", [val])
    result = _native.full(val.shape, val._code, False if val._code == BOOL else 0)
    result._writeable = False
    return result


def complex_of(re, im):
    """The complex numbers with these parts."""
    kind = np.result_type(re.dtype, np.complex64)
    sign = _native.full((), CODE[kind], 1j)
    return astype(re, kind) + astype(im, kind) * sign


def set_part(array, value, part):
    """Assigns to the real or imaginary parts of an array."""
    if not is_complex(array._code):
        if part == "imag":
            raise TypeError("array does not have imaginary part to set")
        array[...] = value
        return
    value = native(value)
    parts = (value, imag(array)) if part == "real" else (real(array), value)
    array[...] = complex_of(*(astype(p, array.dtype.type(0).real.dtype) for p in parts))


def conj(x, /, out=None):
    """The complex conjugates."""
    return _u["conjugate"](x) if out is None else _u["conjugate"](x, out=out)


conjugate = conj


@falls_back
def angle(z, deg=False):
    """The angles of complex numbers."""
    z = native(z)
    result = _u["arctan2"](imag(z), real(z)) if is_complex(z._code) else _u["arctan2"](_native.full((), CODE[np.dtype(float)], 0.0), z)
    return result * (180 / np.pi) if deg else result


def _sorting(name, a, axis):
    a = native(a)
    if is_complex(a._code):
        raise Fallback("complex numbers have no order in bh")
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    if a.ndim == 0:
        raise np.exceptions.AxisError(axis, 0)
    axis = normalize_axis_index(axis, a.ndim)
    last = moveaxis(a, axis, -1)
    result = _native.empty(last.shape, a._code if name == "sort" else INT64, _native.Stack(a._stack))
    if result.size:
        try:
            _native.extension(name, [result], [_native.cast(last, last._code)])
        except _native.Error:
            raise Fallback("no component of the stack sorts") from None
    return moveaxis(result, -1, axis)


@falls_back
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    """The elements in ascending order along an axis; NaN last."""
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    return _sorting("sort", a, axis)


@falls_back
def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    """The indices that sort along an axis; equal elements keep their order."""
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    a = native(a)
    if a.ndim == 0:
        return _native.full((1,), INT64, 0)
    return _sorting("argsort", a, axis)


@falls_back
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """The elements in ascending order, which is more than is asked for."""
    return sort(a, axis)


@falls_back
def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    """The indices that sort, which is more than is asked for."""
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
        a = take(a, sorter)
    kind = np.result_type(a.dtype, values.dtype)
    if kind not in CODE or is_complex(CODE[kind]):
        raise Fallback("complex numbers have no order in bh")
    a, values = astype(a, kind), astype(values, kind)
    scalar = not np.ndim(v)
    low = _native.full(values.shape, INT64, 0)
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
    if bins.ndim != 1:
        raise ValueError("object too deep for desired array")
    host = _fallback.to_numpy(bins)
    if (np.diff(host) >= 0).all():
        return searchsorted(bins, x, side="left" if right else "right")
    if (np.diff(host) <= 0).all():
        return bins.size - searchsorted(flip(bins), x, side="right" if right else "left")
    raise ValueError("bins must be monotonically increasing or decreasing")


@falls_back
def bincount(x, /, weights=None, minlength=0):
    """How often each whole number occurs, or the sum of its weights."""
    x = native(x)
    if x.ndim != 1:
        raise ValueError("object too deep for desired array" if x.ndim else "object of too small depth for desired array")
    if not (is_integer(x._code) or x._code == BOOL):
        raise TypeError(f"Cannot cast array data from {x.dtype!r} to dtype('int64') according to the rule 'safe'")
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    x = astype(x, np.int64)
    if x.size and _native.item_of(x.min()) < 0:
        raise ValueError("'list' argument must have no negative elements")
    size = max(_native.item_of(x.max()) + 1 if x.size else 0, minlength)
    if weights is None:
        values, result = _native.full(x.shape, INT64, 1), _native.full((size,), INT64, 0)
    else:
        values = astype(native(weights), np.float64)
        if values.shape != x.shape:
            raise ValueError("The weights and list don't have the same length.")
        result = _native.full((size,), CODE[np.dtype(float)], 0.0)
    if x.size:
        _native.operate_into(result, "scatter_add", [values, x])
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

"""Choosing, finding and rounding elements."""

import math
import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .. import _native
from .._array import indexing
from .._array.conversion import assigned, astype, in_order, lower_nested, native, to_write
from .._array.element_types import BOOL, CODE, INT64, WEAK, is_complex, is_inexact, is_integer
from .._array.layout import axes_in_memory, axis_index, repeats
from .._array.memory import apart, ranks_of
from .._numpy import fallback, floating_point
from .._numpy.fallback import Fallback, falls_back
from .._ufunc.axes import deliver, target_of
from .._ufunc.ufunc import UFUNCS, check_outputs, converted_to, operand_of, store
from .arrangement import resize
from .complex_parts import complex_of, part_of, set_part
from .joining import stack
from .manipulation import broadcast_arrays, reshape

ndarray = _native.ndarray
_u = UFUNCS
_TYPES = list(CODE)
_NO_VALUE = np._NoValue


def where(condition, x=_NO_VALUE, y=_NO_VALUE, /):
    """Elements of `x` where a condition is true, else of `y`; with a condition alone, where it is true."""
    made = _native.select(condition, x, y)
    if made is None and x is _NO_VALUE and y is _NO_VALUE:
        return nonzero(condition)
    if made is None and (mask := _mask_of(condition)) is not None:
        made = _native.select(mask, x, y)
    result = _where(condition, x, y) if made is None else made
    for number in (x, y):
        if type(number) is float and abs(number) > _SINGLE and math.isfinite(number) and result.dtype in _SHORT:
            floating_point.again(np.ndarray.astype, (np.array(number), result.dtype))
    return result


def _mask_of(condition):
    """The truth values of numbers, or of NumPy's array, as an array of bh; None if there are none, or the condition is such an array."""
    if type(condition) not in (ndarray, np.ndarray) or type(condition) is ndarray and condition._code == BOOL or condition.dtype not in CODE:
        return None
    return astype(native(condition), bool)


# The largest number of single precision, and the types that have it.
_SINGLE = float(np.finfo(np.float32).max)
_SHORT = (np.float16, np.float32, np.complex64)


def _where(condition, x, y):
    if x is _NO_VALUE or y is _NO_VALUE:
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
    # Also without dimensions it is no scalar, as in NumPy.
    result = _native.operate("where", [mask, x, y])
    result._scalar = False
    return result


_where = falls_back(_where, np.where)


@falls_back
def nonzero(a):
    """The indices of elements that are not zero, an array for each dimension."""
    return indexing.beside(indexing.nonzero(native(a)))


@falls_back
def argwhere(a):
    """The indices of elements that are not zero, a row for each."""
    a = native(a)
    if a.ndim == 0:
        return _native.empty((int(bool(a)), 0), INT64)
    parts = indexing.nonzero(a)
    if ranks_of(a._stack) == 1:
        return stack(parts).T
    result = apart((parts[0].size, a.ndim), INT64, a._stack)
    for place, part in enumerate(parts):
        _native.assign(result[:, place], part)
    return result


def ix_(*args):
    """Indices of each dimension as a view with as many dimensions as there are: together they choose a box."""
    parts = []
    for axis, part in enumerate(args):
        if type(part) is not ndarray:
            part = native(part)
            part = part if part.size else astype(part, np.int64)
        if part.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if part._code == BOOL:
            (part,) = indexing.nonzero(part)
        parts.append(_native.reshape(part, (1,) * axis + (part.size,) + (1,) * (len(args) - axis - 1)))
    return tuple(parts)


@falls_back
def extract(condition, arr):
    """The elements for which a condition is true."""
    return reshape(arr, (-1,))[indexing.flatnonzero(astype(native(condition), bool))]


@falls_back
def compress(condition, a, axis=None, out=None):
    """The slices along an axis for which a condition is true."""
    condition = native(condition)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    a = native(a)
    a = reshape(a, (1,)) if a.ndim == 0 else a
    extent = a.size if axis is None else a.shape[axis_index(axis, a.ndim)]
    if condition.size > extent and condition[extent:].any():
        raise IndexError(f"index {extent} is out of bounds for axis {axis or 0} with size {extent}")
    return take(a, indexing.flatnonzero(astype(condition, bool)), axis, out)


@falls_back
def take(a, indices, axis=None, out=None, mode="raise"):
    """The elements (or slices along an axis) at indices."""
    a = native(a)
    if a.ndim == 0:
        a = reshape(a, (1,))
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    axis = axis_index(axis, a.ndim)
    # Numbers outside of arrays are converted, whatever they are.
    kind = None if isinstance(indices, np.ndarray) else np.int64
    host = None if type(indices) is ndarray else np.asarray(fallback.lower(indices), kind)
    indices = native(indices if host is None else host)
    if not np.can_cast(indices.dtype, np.int64, "same_kind"):
        # NumPy says by which rule.
        np.take(np.empty(1), np.empty(0, indices.dtype))
    mode, extent = mode_of(mode), a.shape[axis]
    if mode != "raise":
        host = None
        indices = astype(indices, np.int64)
        indices = indices % max(extent, 1) if mode == "wrap" else clip(indices, 0, max(extent - 1, 0))
    if extent == 0 and indices.size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    shape = a.shape[:axis] + indices.shape + a.shape[axis + 1 :]
    if type(out) is ndarray and out.shape != shape:
        raise ValueError("output array does not match result of ndarray.take")
    key = (slice(None),) * axis + (host.astype(np.int64, copy=False) if host is not None else astype(indices, np.int64),)
    if out is not None and not np.can_cast(out.dtype, a.dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {out.dtype!r} to {a.dtype!r} according to the rule 'safe'")
    # Indices of nothing are not looked at.
    is_nothing = indices.size == 0 or 0 in a.shape[:axis]
    return deliver(_native.empty(shape, a._code) if is_nothing else indexing.get(a, key, True), out, "unsafe")


@falls_back
def take_along_axis(arr, indices, axis=-1):
    """The elements at indices of their own for each slice along an axis."""
    arr, indices = native(arr), native(indices)
    if not np.issubdtype(indices.dtype, np.integer):
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        return reshape(arr, (-1,))[_single(indices)]
    return arr[_along(arr, indices, axis)]


@falls_back
def put_along_axis(arr, indices, values, axis):
    """Assigns to the elements at indices of their own for each slice along an axis."""
    indices = native(indices)
    if axis is None:
        arr.flat[_single(indices)] = values
    else:
        arr[_along(arr, indices, axis)] = values


def _single(indices):
    """Indices into all elements, which have one dimension."""
    if indices.ndim != 1:
        raise ValueError("when axis=None, `indices` must have a single dimension.")
    return indices


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
        return np.put(a, fallback.lower(ind), fallback.lower(v), mode)
    if not a._writeable:
        raise ValueError("assignment destination is read-only")
    mode = mode_of(mode)
    if repeats(a):
        return np.put(to_write(a), fallback.lower(ind), fallback.lower(v), mode)
    if mode == "raise" and type(ind) is int and type(v) in (int, float, complex, bool) and a._contiguous:
        # A single element is assigned, which runs immediately if the array is computed.
        _native.reshape(a, (-1,))[ind] = v
        return None
    ind = native(checked_indices(ind, a.size) if mode == "raise" else ind)
    if not np.can_cast(ind.dtype, np.int64, "same_kind"):
        raise TypeError(f"Cannot cast array data from {ind.dtype!r} to dtype('int64') according to the rule 'safe'")
    flat = astype(reshape(ind, (-1,)), np.int64)
    if flat.size == 0:
        return None
    if a.size == 0:
        raise IndexError("cannot replace elements of an empty array")
    if mode == "wrap":
        flat = flat % a.size
    elif mode == "clip":
        flat = clip(flat, 0, a.size - 1)
    values = reshape(assigned(v, a.dtype), (-1,))
    if values.size == 0:
        return None
    if values.size != flat.size:
        values = resize(values, flat.shape)
    flat = _native.operate("where", [flat < 0, flat + a.size, flat])
    _native.operate_into(a, "scatter", [values, flat])
    return None


def mode_of(mode):
    """The name of what happens to indices out of bounds."""
    names = ("clip", "wrap", "raise")
    if isinstance(mode, int) and 0 <= mode < 3:
        return names[mode]
    if mode not in names:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return mode


def checked_indices(indices, extent):
    """Flat indices, of which those that the host knows lie within bounds."""
    if type(indices) is ndarray:
        return indices
    host = np.asarray(fallback.lower(indices))
    if host.size == 0:
        return host.astype(np.int64)
    if host.dtype.kind in "iu":
        indexing.check_bounds(host, 0, extent)
    return host


def place(arr, mask, vals):
    """Assigns values, in order, to the elements for which a mask is true."""
    if type(arr) is not ndarray:
        return np.place(arr, fallback.lower(mask), fallback.lower(vals))
    mask = astype(native(mask), bool)
    if mask.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    found = indexing.flatnonzero(mask)
    values = reshape(assigned(vals, arr.dtype), (-1,))
    if found.size == 0:
        return
    if values.size == 0:
        raise ValueError("Cannot insert from an empty array!")
    put(arr, found, resize(values, found.shape))


def putmask(a, mask, values):
    """Assigns the values at the same places to the elements for which a mask is true."""
    if hasattr(values, "dtype") and np.ndim(values) and not np.can_cast(values.dtype, a.dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {values.dtype!r} to {a.dtype!r} according to the rule 'safe'")
    mask, values = astype(native(mask), bool), assigned(values, a.dtype)
    if values.shape != a.shape and values.size > 1:
        values = reshape(resize(values, (a.size,)), a.shape)
    copyto(a, values, where=reshape(astype(mask, bool), a.shape), casting="unsafe")


def copyto(dst, src, casting="same_kind", where=True):
    """Assigns the elements of one array to another."""
    if type(dst) is not ndarray:
        return np.copyto(dst, fallback.lower(src), casting, fallback.lower(where))
    if not dst._writeable:
        raise ValueError("assignment destination is read-only")
    if type(src) in (int, float, complex):
        # NumPy knows which of Python's numbers fit.
        element = np.empty((), dst.dtype)
        np.copyto(element, src, casting)
        src = element[()]
    elif type(src) is not ndarray:
        src = np.asarray(lower_nested(src))
    if not np.can_cast(src.dtype, dst.dtype, casting):
        raise TypeError(f"Cannot cast array data from {src.dtype!r} to {dst.dtype!r} according to the rule '{casting}'")
    if where is True:
        dst[...] = src
        return None
    if getattr(where, "dtype", bool) != bool:
        raise TypeError(f"Cannot cast array data from {where.dtype!r} to dtype('bool') according to the rule 'safe'")
    if repeats(dst):
        return np.copyto(to_write(dst), fallback.lower(src), casting, fallback.lower(where))
    mask = _native.broadcast_to(native(where, bool), dst.shape)
    value = indexing.fitted(assigned(src, dst.dtype), dst.shape)
    return _native.operate_into(dst, "where", [mask, value, dst])


@falls_back
def choose(a, choices, out=None, mode="raise"):
    """For each element, which is a number, the element of the choice with this number."""
    a, mode = native(a), mode_of(mode)
    numbers = [choice if type(choice) in (int, float, complex) else None for choice in choices]
    choices = [native(choice) for choice in choices]
    if not choices or a.dtype.kind not in "iub":
        raise Fallback("no choices, or numbers that are none")
    kind = np.result_type(*(choice.dtype if number is None else number for choice, number in zip(choices, numbers)))
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
    result = _native.cast(result, result._code)
    result._scalar = result.ndim == 0
    target = target_of(out)
    if target is not None and target.shape != result.shape:
        raise TypeError("choose: invalid shape for output array.")
    return deliver(result, out, "unsafe")


@falls_back
def select(condlist, choicelist, default=0):
    """For each element, that of the choice whose condition is the first true one."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    choicelist = [native(choice) if type(choice) in (list, tuple) else choice for choice in choicelist]
    default = native(default) if type(default) in (list, tuple) else default
    # A text would be read as the name of a type.
    typed = lambda value: value if isinstance(value, (int, float, complex)) else getattr(value, "dtype", None) or np.asarray(value).dtype
    kind = np.result_type(*map(typed, (*choicelist, default)))
    if kind not in CODE:
        raise Fallback(f"bh has no element type {kind}")
    for choice in choicelist:
        own = getattr(choice, "dtype", None) or np.asarray(choice).dtype
        if not np.can_cast(own, kind, "same_kind"):
            raise TypeError(f"Cannot cast array data from {own!r} to {kind!r} according to the rule 'same_kind'")
    result = np.asarray(default).astype(kind) if type(default) is not ndarray else default
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        condition = native(condition)
        if condition._code != BOOL:
            raise TypeError("invalid entry 0 in condlist: should be boolean ndarray")
        result = where(condition, astype(native(choice), kind), astype(native(result), kind))
    return result if type(result) is not ndarray or result._contiguous else _native.cast(result, result._code)


@falls_back
def clip(a, a_min=_NO_VALUE, a_max=_NO_VALUE, out=None, *, min=_NO_VALUE, max=_NO_VALUE, **kwargs):
    """The elements, but not below and not above limits."""
    if kwargs:
        raise Fallback("arguments of universal functions")
    if a_min is _NO_VALUE and a_max is _NO_VALUE:
        a_min, a_max = (None if limit is _NO_VALUE else limit for limit in (min, max))
    elif a_max is _NO_VALUE and min is _NO_VALUE and _native.follows_array_api():
        # There, both limits may be left out.
        a_max, max = (None if max is _NO_VALUE else max), _NO_VALUE
    elif a_min is _NO_VALUE or a_max is _NO_VALUE:
        raise TypeError(f"clip() missing 1 required positional argument: '{'a_min' if a_min is _NO_VALUE else 'a_max'}'")
    elif min is not _NO_VALUE or max is not _NO_VALUE:
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    a = native(a)
    weak = [type(limit) in WEAK for limit in (a_min, a_max)]
    both = a_min is not None and a_max is not None
    if both and (any(weak) and not all(weak) or a._code == BOOL):
        # A number gives way to the type of all others, not to the array's alone; truth values have no order here.
        kinds = (type(limit) if is_weak else native(limit).dtype for limit, is_weak in zip((a_min, a_max), weak))
        a = astype(a, np._core.umath.clip.resolve_dtypes((a.dtype, *kinds, None))[0])
    result, name = a, "positive"
    if not _is_no_limit(a, a_min, "min"):
        result, name = _u["maximum"](result, a_min), "maximum"
    if not _is_no_limit(a, a_max, "max"):
        result, name = _u["minimum"](result, a_max), "minimum" if result is a else "clip"
    target = target_of(out)
    if target is None:
        return deliver(_native.cast(a, a._code) if result is a else result, out)
    check_outputs(getattr(np._core.umath, name), [result._code], [target], "same_kind")
    return store(result, target, True)


def _is_no_limit(a, limit, end):
    """Is there no limit, or a Python int at or beyond that of the array's whole numbers?"""
    if limit is None or type(limit) is not int or not is_integer(a._code):
        return limit is None
    return limit <= np.iinfo(a.dtype).min if end == "min" else limit >= np.iinfo(a.dtype).max


@falls_back
def round(a, decimals=0, out=None):
    """The elements rounded to `decimals` decimals, halves to even."""
    a, target = native(a), target_of(out)
    decimals = operator.index(decimals)
    if a._code == BOOL:
        raise Fallback("truth values")
    if target is not None:
        return _rounded_into(target, a, decimals)
    if is_complex(a._code):
        result = complex_of(*(round(part_of(a, part), decimals) for part in ("real", "imag")))
    elif is_inexact(a._code):
        scale = 10.0 ** abs(decimals)
        if decimals == 0:
            result = _u["rint"](a)
        elif decimals > 0:
            result = _u["rint"](a * scale) / scale
        else:
            result = _u["rint"](a / scale) * scale
    elif decimals >= 0:
        result = _u["positive"](a)
    else:
        scale = 10.0 ** -decimals
        result = astype(_u["rint"](a / scale) * scale, a.dtype)
    if decimals and not result._contiguous:
        # The steps are taken in an array in C's order, or in Fortran's, as the operand is.
        result = in_order(result, "A", a)
    return deliver(result, out)


def _rounded_into(out, a, decimals):
    """The rounded elements. As in NumPy, each step goes into the output, whose type it has."""
    if out.size != a.size:
        raise ValueError("invalid output shape")
    if is_complex(a._code):
        for part in ("real", "imag"):
            set_part(out, round(part_of(a, part), decimals), part)
        return out
    if not is_inexact(a._code) and decimals >= 0:
        copyto(out, a)
        return out
    if decimals == 0:
        return _u["rint"](a, out=out)
    first, last = (_u["multiply"], _u["divide"]) if decimals > 0 else (_u["divide"], _u["multiply"])
    scale = 10.0 ** abs(decimals)
    first(a, scale, out=out)
    _u["rint"](out, out=out)
    return last(out, scale, out=out)


def around(a, decimals=0, out=None):
    """The same, by its other name; a function of its own, as in NumPy."""
    return round(a, decimals, out)

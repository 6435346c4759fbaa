"""Sums, products, extremes, means and other reductions."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .. import _native
from .._array.conversion import array, astype, decides, in_order, mask_from, native, warn
from .._array.element_types import BOOL, INT64, code_of, is_complex, is_inexact
from .._array.layout import axis_index
from .._numpy import fallback
from .._numpy.fallback import Fallback, falls_back
from .._numpy.provided import public
from .._ufunc.axes import axes_of, deliver, target_of
from .._ufunc.folds import folded
from .._ufunc.ufunc import UFUNCS
from .arrangement import diagonal
from .joining import concatenate
from .manipulation import reshape

ndarray = _native.ndarray
_NO_VALUE = np._NoValue
_u = UFUNCS


def _is_theirs(value):
    """Is this a number, or an object of a class that decides itself what functions do?"""
    return decides(value) or isinstance(value, (int, float, complex, np.generic)) or fallback.decided((value,))


def _by_class(original, a, **options):
    """A function of NumPy on what is not bh's, with what the call gave."""
    usual = {"axis": None, "dtype": None, "out": None, "keepdims": False, "initial": _NO_VALUE, "where": True}
    return fallback.deliver(original, (a,), {name: value for name, value in options.items() if value is not usual[name]})


def _reduction(name, function, doc, typed=True):
    def reduce(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NO_VALUE, where=True):
        keepdims = False if keepdims is _NO_VALUE else keepdims
        where = True if where is _NO_VALUE else where
        if type(a) is not ndarray and (_is_theirs(a) or fallback.has_own(a, name)):
            return _by_class(original, a, axis=axis, dtype=dtype, out=out, keepdims=keepdims, initial=initial, where=where)
        return fallback.given(_u[function].reduce(a, axis, dtype, out, keepdims, initial, where), 1 if typed else 2)

    def extreme(a, axis=None, out=None, keepdims=False, initial=_NO_VALUE, where=True):
        return reduce(a, axis, None, out, keepdims, initial, where)

    result = reduce if typed else extreme
    original = getattr(np, name)
    result.__name__ = result.__qualname__ = name
    result.__doc__ = doc
    return result


sum = _reduction("sum", "add", "The sum over axes (all of them for None).")
prod = _reduction("prod", "multiply", "The product over axes (all of them for None).")
max = amax = _reduction("max", "maximum", "The largest over axes; NaN if one is NaN.", False)
min = amin = _reduction("min", "minimum", "The smallest over axes; NaN if one is NaN.", False)


def _truth(name, function, doc):
    def test(a, axis=None, out=None, keepdims=False, *, where=True):
        keepdims = False if keepdims is _NO_VALUE else keepdims
        where = True if where is _NO_VALUE else where
        if type(a) is not ndarray and (_is_theirs(a) or fallback.has_own(a, name)):
            return _by_class(getattr(np, name), a, axis=axis, out=out, keepdims=keepdims, where=where)
        # Elements that NumPy has to reduce, such as objects, become truth values first.
        kind = None if type(a) is ndarray else bool
        return fallback.given(_u[function].reduce(a, axis, kind, out, keepdims, _NO_VALUE, where))

    test.__name__ = test.__qualname__ = name
    test.__doc__ = doc
    return test


all = _truth("all", "logical_and", "Are all true, over axes?")
any = _truth("any", "logical_or", "Is one true, over axes?")


@falls_back
def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=_NO_VALUE, *, where=_NO_VALUE, mean=_NO_VALUE, correction=_NO_VALUE):
    """The standard deviation over axes of the elements that are not NaN."""
    if out is not None and not np.issubdtype(out.dtype, np.inexact) and getattr(a, "dtype", np.dtype(float)).kind in "fc":
        raise TypeError("If a is inexact, then out must be inexact")
    result = public["nanvar"](a, axis, dtype, out, ddof, keepdims=keepdims, where=where, mean=mean, correction=correction)
    return _root(result, out)


@falls_back
def cumsum(a, axis=None, dtype=None, out=None):
    """The sums of the elements up to each one."""
    return _running(a, axis, dtype, out, "add")


@falls_back
def cumprod(a, axis=None, dtype=None, out=None):
    """The products of the elements up to each one."""
    return _running(a, axis, dtype, out, "multiply")


def _running(a, axis, dtype, out, name):
    if dtype is not None and code_of(dtype) is None:
        raise Fallback(f"bh has no element type {dtype}")
    a = a if type(a) is ndarray else native(a)
    if axis is None or a.ndim == 0 and axis in (0, -1):
        a, axis = reshape(a, (-1,)), 0
    return _u[name].accumulate(a, axis_index(axis, a.ndim), dtype, out)


def _cumulative(name):
    def function(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        x = native(x)
        if axis is None:
            if x.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        x = reshape(x, (1,)) if x.ndim == 0 else x
        axis = axis_index(axis, x.ndim)
        if not include_initial:
            return _u[name].accumulate(x, axis, dtype, out)
        target = target_of(out)
        x = folded(_u[name], x, dtype, target)
        made = _u[name].accumulate(x, axis, x.dtype)
        first = _native.full(x.shape[:axis] + (1,) + x.shape[axis + 1 :], x._code, x.dtype.type(name == "multiply").item())
        return deliver(concatenate([in_order(first, "K", made), made], axis), out, "unsafe")

    function.__name__ = "cumulative_sum" if name == "add" else "cumulative_prod"
    function.__doc__ = "The running " + ("sum" if name == "add" else "product") + " along an axis."
    return falls_back(function)


cumulative_sum, cumulative_prod = _cumulative("add"), _cumulative("multiply")


def _count(a, axes, where):
    if where is True:
        count = 1
        for axis in axes:
            count *= a.shape[axis]
        return count
    mask = _native.broadcast_to(mask_from(where), a.shape)
    return _u["add"].reduce(mask, axes, keepdims=True)


def _mean_type(a, dtype):
    if dtype is not None:
        return np.dtype(dtype)
    return a.dtype if is_inexact(a._code) else np.dtype(np.float64)


@falls_back
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    """The arithmetic mean over axes."""
    a = native(a)
    axes = _axes_of_mean(a, axis)
    if is_inexact(a._code) and dtype is None and out is None and where is True and a.size and type(keepdims) is bool:
        total = _u["add"].reduce(a, axis, keepdims=keepdims)
        return _u["divide"](total, a.size // total.size)
    where = True if where is _NO_VALUE else where
    count = _count(a, axes, where)
    if _reaches(count, 0, where):
        _warn_of_nothing("Mean of empty slice", _division(a, axes, dtype, keepdims))
    if target_of(out) is None:
        return deliver(_dropped(_center(a, axes, dtype, where, count), axes, keepdims), out)
    return _mean_into(out, a, axes, dtype if dtype is not None or is_inexact(a._code) else np.float64, count, keepdims, where)


def _mean_into(out, a, axes, dtype, count, keepdims, where):
    """The quotient of a sum and a number of elements. As in NumPy, both are of the output's type."""
    total = _u["add"].reduce(a, axes, dtype, out, keepdims is True, where=where)
    count = np.intp(count) if type(count) is int else reshape(count, total.shape)
    return _u["divide"](total, count, out=total, casting="unsafe")


def _axes_of_mean(a, axis):
    """The axes of a mean or variance, of which arrays without dimensions have none, unlike those of a sum."""
    return axes_of(axis, a.ndim) if a.ndim or axis in (None, ()) else normalize_axis_tuple(axis, 0)


def _reaches(count, limit, where):
    """Is a count at most the limit? Of an array of counts: is one of them, if they are computed?"""
    if type(count) is int:
        return count <= limit
    return where is not True and _native.is_at_hand(count) and bool((count <= limit).any())


def _center(a, axes, dtype, where, count):
    """The mean over axes, which stay."""
    total = _u["add"].reduce(a, axes, _mean_type(a, dtype), keepdims=True, where=where)
    return astype(_u["divide"](total, count), total.dtype)


def _warn_of_nothing(text, *divisions):
    """Warns as NumPy where there is nothing to take the mean of: once for each of its divisions."""
    warn(text, RuntimeWarning)
    if np.geterr()["invalid"] == "warn":
        for division in divisions:
            warn(f"invalid value encountered in {division}", RuntimeWarning)


def _division(a, axes, dtype, keepdims):
    """How NumPy names the division by a number of elements: of a number by another one, if they have one precision, or of arrays."""
    kind = np.dtype(dtype) if dtype is not None else a.dtype if is_inexact(a._code) else np.dtype(np.float64)
    return "scalar divide" if len(axes) == a.ndim and keepdims is not True and kind in (np.float64, np.complex128) else "divide"


def _dropped(result, axes, keepdims):
    """A result whose reduced dimensions stay or go."""
    if keepdims and keepdims is not _NO_VALUE:
        return result
    kept = tuple(extent for axis, extent in enumerate(result.shape) if axis not in axes)
    result = _native.reshape(result, kept)
    result._scalar = not kept
    return result


def _variance(a, axis, dtype, out, ddof, keepdims, where, mean_, correction):
    a = native(a)
    if correction is not _NO_VALUE:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    axes = _axes_of_mean(a, axis)
    where = True if where is _NO_VALUE else where
    count = _count(a, axes, where)
    if _reaches(count, ddof, where):
        # The mean has its dimensions kept, so that its division is one of arrays.
        empty = ["divide"] if mean_ in (_NO_VALUE, None) and _reaches(count, 0, where) else []
        _warn_of_nothing("Degrees of freedom <= 0 for slice", *empty, _division(a, axes, dtype, keepdims))
    center = _center(a, axes, dtype, where, count) if mean_ is _NO_VALUE or mean_ is None else native(mean_)
    distance = _u["subtract"](a, center)
    square = _squared_size(distance) if is_complex(a._code) else _u["multiply"](distance, distance)
    left = count - ddof
    left = _u["maximum"](left, 0) if type(left) is ndarray else left if left > 0 else 0
    kind = dtype if dtype is not None or is_inexact(a._code) else np.float64
    if target_of(out) is not None:
        return _mean_into(out, square, axes, kind, left, keepdims, where)
    total = _u["add"].reduce(square, axes, kind, keepdims=True, where=where)
    return deliver(_dropped(astype(_u["divide"](total, left), total.dtype), axes, keepdims), out)


def _squared_size(x):
    """The squares of absolute values of complex numbers."""
    real, imag = _native.operate("real", [x]), _native.operate("imag", [x])
    return real * real + imag * imag


@falls_back
def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=_NO_VALUE, correction=_NO_VALUE):
    """The variance over axes: the mean of squared distances from the mean."""
    return _variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@falls_back
def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=_NO_VALUE, correction=_NO_VALUE):
    """The standard deviation over axes."""
    return _root(_variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction), out)


def _root(variance, out):
    """The root of a variance in the variance's own type: an array's goes into it, by the rule for outputs, and a number's is converted."""
    if type(variance) is not ndarray:
        return np.sqrt(variance, out=variance) if isinstance(variance, np.ndarray) else variance.dtype.type(np.sqrt(variance))
    if target_of(out) is None and is_inexact(variance._code):
        return _u["sqrt"](variance)
    if variance._scalar:
        return astype(_u["sqrt"](variance, dtype=np.float64), variance.dtype)
    return _u["sqrt"](variance, out=variance)


@falls_back
def ptp(a, axis=None, out=None, keepdims=False):
    """The distance of the largest from the smallest over axes."""
    a = native(a)
    return _u["subtract"](max(a, axis, out, keepdims), min(a, axis, keepdims=keepdims), **({} if out is None else {"out": out}))


@falls_back
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """The weighted mean over axes."""
    a = native(a)
    axis = None if axis is None else normalize_axis_tuple(axis, a.ndim, "axis")
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        count = a.size / result.size
        total = _native.full(result.shape, result._code, count) if returned else None
    else:
        weights = native(weights)
        kind = np.result_type(a.dtype, weights.dtype, *([] if is_inexact(a._code) else ["f8"]))
        if a.shape != weights.shape:
            if axis is None:
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            axes = axes_of(axis, a.ndim)
            if weights.shape != tuple(a.shape[place] for place in axes):
                raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
            weights = _native.transpose(weights, [int(place) for place in np.argsort(axes)])
            weights = reshape(weights, tuple(extent if place in axes else 1 for place, extent in enumerate(a.shape)))
        total = sum(_native.broadcast_to(weights, a.shape), axis, kind, keepdims=keepdims)
        if _native.item_of((total == 0).any()):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = sum(_u["multiply"](a, weights, dtype=kind), axis, keepdims=keepdims) / total
    return (result, total) if returned else result


@falls_back
def count_nonzero(a, axis=None, *, keepdims=False):
    """How many are not zero, over axes."""
    a = native(a)
    return sum(a if a._code == BOOL else array(a, bool), axis, np.int64, keepdims=keepdims)


def _place_of_extreme(a, axis, out, keepdims, function):
    a = native(a)
    keepdims = False if keepdims is _NO_VALUE else keepdims
    flat = axis is None or a.ndim == 0 and axis in (0, -1)
    rank = a.ndim
    if flat:
        a, axis = reshape(a, (-1,)), 0
    axis = axis_index(axis, a.ndim)
    if a.shape[axis] == 0:
        raise ValueError(f"attempt to get arg{function[:3]} of an empty sequence")
    if is_complex(a._code):
        # The first element that is the extreme one, or NaN.
        a, function = (a == UFUNCS[function].reduce(a, axis, keepdims=True)) | UFUNCS["isnan"](a), "maximum"
    result = _native.position_of_extreme(a, axis, function == "maximum", bool(keepdims) and not flat)
    if keepdims and flat and rank:
        result._scalar = False
        result = reshape(result, (1,) * rank)
    target = target_of(out)
    if target is not None and not np.can_cast(target.dtype, np.int64, "safe"):
        what = "array data" if target.ndim else "scalar"
        raise TypeError(f"Cannot cast {what} from {target.dtype!r} to dtype('int64') according to the rule 'safe'")
    if target is not None and target.shape != result.shape:
        raise ValueError(f"output array does not match result of np.arg{function[:3]}.")
    return deliver(result, out, "unsafe")


@falls_back
def argmax(a, axis=None, out=None, *, keepdims=False):
    """The index of the first largest element, or the first NaN."""
    return _place_of_extreme(a, axis, out, keepdims, "maximum")


@falls_back
def argmin(a, axis=None, out=None, *, keepdims=False):
    """The index of the first smallest element, or the first NaN."""
    return _place_of_extreme(a, axis, out, keepdims, "minimum")


@falls_back
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum of a diagonal."""
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


@falls_back
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements close to each other?"""
    return bool(all(isclose(a, b, rtol, atol, equal_nan)))


@falls_back
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are elements close to each other: |a - b| <= atol + rtol·|b|?"""
    if not isinstance(a, (ndarray, np.ndarray, list, tuple)) and _is_theirs(a) and _is_theirs(b) and type(b) is not ndarray:
        return np.isclose(a, b, rtol, atol, equal_nan)
    if [limit for limit in (rtol, atol) if isinstance(limit, (int, float)) and not np.isfinite(limit)]:
        warn(f"One of rtol or atol is not valid, atol: {atol}, rtol: {rtol}", RuntimeWarning)
    # Numbers of Python take the type of the other operand.
    a = a if type(a) in (int, float, complex) else native(a)
    if type(b) is int:
        b = float(b)
    elif type(b) not in (float, complex):
        b = native(b)
        b = b if is_inexact(b._code) else astype(b, np.float64)
    if type(a) is not ndarray and type(b) is not ndarray:
        a = native(a)
    size = _u["absolute"](b) if type(b) is ndarray else abs(b)
    close = _u["less_equal"](_u["absolute"](a - b), atol + rtol * size)
    result = _u["logical_or"](_u["logical_and"](close, _u["isfinite"](b)), _u["equal"](a, b))
    if equal_nan:
        result = _u["logical_or"](result, _u["logical_and"](_u["isnan"](a), _u["isnan"](b)))
    return result


def array_equal(a1, a2, equal_nan=False):
    """Have they the same shape and elements?"""
    try:
        a1, a2 = native(a1), native(a2)
    except Fallback:
        return np.array_equal(fallback.lower(a1), fallback.lower(a2), equal_nan)
    if a1.shape != a2.shape:
        return False
    same = _u["equal"](a1, a2)
    if equal_nan:
        same = _u["logical_or"](same, _u["logical_and"](_u["isnan"](a1), _u["isnan"](a2)))
    return bool(all(same))


def array_equiv(a1, a2):
    """Are they equal where they broadcast against each other?"""
    try:
        return bool(all(_u["equal"](native(a1), native(a2))))
    except ValueError:
        return False



"""The floating-point numbers next to others, by arithmetic alone (Rump, Zimmermann, Boldo and Melquiond, 2009)."""

from types import SimpleNamespace

import numpy as np

from .. import _native
from .._array.element_types import CODE

# The universal functions, by name.
functions = u = SimpleNamespace()

ndarray = _native.ndarray
_DTYPES = list(CODE)


def _where(mask, a, b):
    return _native.operate("where", [mask, a, b])


def _beside(kind, size):
    """The numbers before and after positive ones (before 0: the least number with a minus)."""
    info = np.finfo(_DTYPES[kind])
    unit, least, largest = float(info.eps) / 2, float(info.smallest_subnormal), float(info.max)
    step = unit * (1 + 2 * unit)
    # Far from the least number, near it, and in between, where the numbers are multiplied first.
    far = u.multiply(size, step)
    scaled = u.multiply(size, 1 / unit)
    between = u.multiply(scaled, step)
    is_far, is_near = u.greater_equal(size, least / unit / unit / 2), u.less(size, least / unit)

    def moved(combine):
        middle = u.multiply(combine(scaled, between), unit)
        return _where(is_far, combine(size, far), _where(is_near, combine(size, least), middle))

    return _where(u.isinf(size), largest, moved(u.subtract)), moved(u.add)


def nextafter(kind, x, y):
    """The next number after x in the direction of y."""
    x, y = (value if type(value) is ndarray else _native.full((), kind, value) for value in (x, y))
    before, after = _beside(kind, u.absolute(x))
    up, positive = u.greater(y, x), u.greater(x, 0)
    size = _where(u.logical_not(u.logical_xor(up, positive)), after, before)
    least = float(np.finfo(_DTYPES[kind]).smallest_subnormal)
    moved = _where(positive, size, u.negative(size))
    moved = _where(u.equal(x, 0), _where(up, least, _native.full((), kind, -least)), moved)
    # A sum with NaN is NaN.
    odd = u.logical_or(u.isnan(x), u.isnan(y))
    return _where(odd, u.add(x, y), _where(u.equal(x, y), y, moved))


def spacing(kind, x):
    """The distance to the next number away from 0, negative for negative numbers."""
    x = x if type(x) is ndarray else _native.full((), kind, x)
    size = u.absolute(x)
    distance = u.subtract(_beside(kind, size)[1], size)
    distance = _where(u.isfinite(x), distance, u.subtract(x, x))
    return _where(u.less(x, 0), u.negative(distance), distance)

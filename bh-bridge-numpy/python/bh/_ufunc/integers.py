"""Functions of whole numbers: common divisors and multiples, set bits."""

from types import SimpleNamespace

import numpy as np

from .. import _native
from .._array.element_types import CODE

# The universal functions, by name.
functions = u = SimpleNamespace()

ndarray = _native.ndarray
_DTYPES = list(CODE)


def _array(kind, value):
    return value if type(value) is ndarray else _native.full((), kind, value)


def _size(kind, value):
    """Absolute values, as arrays."""
    value = _array(kind, value)
    return value if _DTYPES[kind].kind == "u" else u.absolute(value)


def gcd(kind, a, b):
    """Greatest common divisors, by Euclid's algorithm on all pairs at once; waits for each of its few dozen steps."""
    a, b = _size(kind, a), _size(kind, b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = (_native.cast(_native.broadcast_to(value, shape), kind) for value in (a, b))
    while a.size and bool(u.not_equal(b, 0).any()):
        done = u.equal(b, 0)
        rest = u.remainder(a, _native.operate("where", [done, 1, b]))
        a, b = _native.operate("where", [done, a, b]), _native.operate("where", [done, 0, rest])
    return u.absolute(a) if _DTYPES[kind].kind == "i" else a


def lcm(kind, a, b):
    """Least common multiples; 0 with 0."""
    a, b = _size(kind, a), _size(kind, b)
    divisor = gcd(kind, a, b)
    return u.multiply(u.floor_divide(a, _native.operate("where", [u.equal(divisor, 0), 1, divisor])), b)


def bitwise_count(kind, x):
    """The set bits of absolute values, added up in pairs, fours, eights and so on."""
    dtype = _DTYPES[kind]
    unsigned = CODE[np.dtype(f"u{dtype.itemsize}")]
    x = _native.cast(_size(kind, x), unsigned)
    bits = 8 * dtype.itemsize
    masks = [int("".join("0" * width + "1" * width for _ in range(bits // width // 2)), 2) for width in (1, 2, 4)]
    for width, mask in zip((1, 2, 4), masks):
        x = u.add(u.bitwise_and(x, mask), u.bitwise_and(u.right_shift(x, width), mask))
    width = 8
    while width < bits:
        x = u.add(x, u.right_shift(x, width))
        width *= 2
    return u.bitwise_and(x, 0x7F)

"""Universal functions without an opcode of their own, as compositions of others on arrays of the loop's type.

A composition gets the code of the loop's first input, then the operands: arrays of bh of the loop's types, or numbers.
"""

import math
import operator
from types import SimpleNamespace

import numpy as np

from .. import _native
from .._array.conversion import astype
from .._array.element_types import BOOL, CODE, INT64, UINT64, is_complex, is_inexact, is_integer
from .._numpy import fallback
from . import integers, neighbours

ndarray = _native.ndarray
_u = SimpleNamespace()


def use(ufuncs):
    """Makes the universal functions known, which are built from this module's tables."""
    for names in (_u, integers.functions, neighbours.functions):
        names.__dict__.update(ufuncs)


# Functions that are an opcode for the types that it takes, and functions of truth values, to which operands of any type are
# converted: the names that the opcode table has for NumPy.
DIRECT, BOOLEAN = _native.universal_functions()

# Comparisons as Python's operators.
OPERATORS = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip


def _where(mask, a, b):
    return _native.operate("where", [mask, a, b])


def _array(kind, value):
    """A number as an array without dimensions."""
    return value if type(value) is ndarray else _native.full((), kind, value)


def _arrays(kind, *values):
    return [_array(kind, value) for value in values]


def _same(kind, x):
    result = _native.cast(_array(kind, x), kind)
    result._scalar = not result.ndim
    return result


def part_of(array, part):
    """A part of complex numbers, real or imag, as a new array."""
    return _native.operate(part, [array])


def complex_of(re, im):
    """The complex numbers with exactly these parts, also where they are infinite, NaN, or zeros with a sign."""
    kind = np.result_type(re.dtype, np.complex64)
    where = lambda mask, a, b: _native.operate("where", [mask, a, b])
    constant = lambda value: _native.full((), CODE[kind], value)
    # Products of negative numbers with 1j have a real part of -0, which adds nothing to any number.
    below = _native.operate("multiply", [astype(_u.negative(_u.absolute(im)), kind), 1j])
    positive = im >= 0
    added = where(positive, _u.conjugate(below), below)
    infinite = where(positive, constant(complex(-0.0, np.inf)), where(im < 0, constant(complex(-0.0, -np.inf)), constant(complex(-0.0, np.nan))))
    added = where(_u.isfinite(im), added, infinite)
    # The conjugate of a real number has -0 as imaginary part, to which +0 is no sum.
    start = astype(re, kind)
    start = where(_u.divide(1.0, im) < 0, _u.conjugate(start), start)
    return _native.operate("add", [start, added])


def negative(kind, x):
    if kind == BOOL:
        raise TypeError("The numpy boolean negative, the `-` operator, is not supported, use the `~` operator or the logical_not function instead.")
    # -0.0 - x is -x for zeros of both signs.
    zero = complex(-0.0, -0.0) if is_complex(kind) else -0.0 if is_inexact(kind) else 0
    return _native.operate("subtract", [zero, _array(kind, x)])


def copysign(kind, x, y):
    size = _u.absolute(_array(kind, x))
    return _where(*_arrays(BOOL, _u.signbit(_array(kind, y))), negative(kind, size), size)


def hypot(kind, x, y):
    x, y = (_u.absolute(value) for value in _arrays(kind, x, y))
    large, small = _u.maximum(x, y), _u.minimum(x, y)
    infinite = _u.logical_or(_u.isinf(x), _u.isinf(y))
    ratio = _u.divide(small, _where(_u.equal(large, 0), 1, large))
    size = _u.multiply(large, _u.sqrt(_u.add(_u.multiply(ratio, ratio), 1)))
    return _where(infinite, math.inf, size)


def rint(kind, x):
    if not is_complex(kind):
        return _same(kind, x)
    return complex_of(*(_u.rint(part_of(_array(kind, x), part)) for part in ("real", "imag")))


def fmax(kind, x, y):
    x, y = _arrays(kind, x, y)
    return _where(_u.isnan(x), y, _where(_u.isnan(y), x, _u.maximum(x, y)))


def fmin(kind, x, y):
    x, y = _arrays(kind, x, y)
    return _where(_u.isnan(x), y, _where(_u.isnan(y), x, _u.minimum(x, y)))


def _logarithm_of_sum(x, y, exp, log1p, two):
    difference = _u.subtract(x, y)
    sum_ = _u.add(_u.maximum(x, y), log1p(exp(_u.negative(_u.absolute(difference)))))
    return _where(_u.equal(x, y), _u.add(x, two), sum_)


def logaddexp(kind, x, y):
    return _logarithm_of_sum(*_arrays(kind, x, y), _u.exp, _u.log1p, math.log(2))


def logaddexp2(kind, x, y):
    log2_1p = lambda value: _u.multiply(_u.log1p(value), 1 / math.log(2))
    return _logarithm_of_sum(*_arrays(kind, x, y), _u.exp2, log2_1p, 1.0)


def _extreme(name):
    """The larger or smaller of complex numbers, in the order of real parts, then imaginary ones; the first that is no number."""

    def choose(kind, x, y):
        x, y = _arrays(kind, x, y)
        return _where(_u.logical_or(getattr(_u, name)(x, y), _u.isnan(x)), x, y)

    return choose


def heaviside(kind, x, y):
    x = _array(kind, x)
    step = _where(_u.less(x, 0), _native.full((), kind, 0), _native.full((), kind, 1))
    return _where(_u.isnan(x), x, _where(_u.equal(x, 0), _array(kind, y), step))


def reciprocal(kind, x):
    if is_integer(kind) or kind == BOOL:
        raise fallback.Fallback("reciprocals of whole numbers")
    return _native.operate("divide", [1, _array(kind, x)])


def modf(kind, x):
    x = _array(kind, x)
    whole = _u.trunc(x)
    rest = _where(_u.isinf(x), 0, _u.subtract(x, whole))
    return copysign(kind, rest, x), whole


def divmod_(kind, x, y):
    x, y = _arrays(kind, x, y)
    return _native.operate("floor_divide", [x, y]), _native.operate("remainder", [x, y])


def _scaled(factor):
    return lambda kind, x: _native.operate("multiply", [_array(kind, x), factor])


def _square(kind, x):
    x = _array(kind, x)
    return _native.operate("logical_and" if kind == BOOL else "multiply", [x, x])


def mixed_order(name):
    """Comparison of signed and unsigned numbers of 64 bits: negative ones are less than all that are unsigned."""

    def compare(kind, x, y):
        x, y = _array(kind, x), _array(UINT64 if kind == INT64 else INT64, y)
        negative = _u.less(x if kind == INT64 else y, 0)
        alike = getattr(_u, name)(_native.cast(x, UINT64), _native.cast(y, UINT64))
        if OPERATORS[name](-(kind == INT64), -(kind == UINT64)):
            return _u.logical_or(negative, alike)
        return _u.logical_and(_u.logical_not(negative), alike)

    return compare


def order(name):
    """Comparison of complex numbers: by real parts, then by imaginary ones."""
    mixed = mixed_order(name)

    def compare(kind, x, y):
        if not is_complex(kind):
            return mixed(kind, x, y)
        x, y = _arrays(kind, x, y)
        (xr, xi), (yr, yi) = ((_native.operate("real", [v]), _native.operate("imag", [v])) for v in (x, y))
        strict = _u.less if name.startswith("less") else _u.greater
        last = {"less": _u.less, "less_equal": _u.less_equal, "greater": _u.greater, "greater_equal": _u.greater_equal}[name]
        ordered = _u.logical_and(strict(xr, yr), _u.logical_not(_u.logical_or(_u.isnan(xi), _u.isnan(yi))))
        return _u.logical_or(ordered, _u.logical_and(_u.equal(xr, yr), last(xi, yi)))

    return compare


COMPOSED = {
    "nextafter": neighbours.nextafter,
    "spacing": neighbours.spacing,
    "gcd": integers.gcd,
    "lcm": integers.lcm,
    "bitwise_count": integers.bitwise_count,
    "negative": negative,
    "positive": _same,
    "absolute": _same,
    "conjugate": _same,
    "ceil": _same,
    "floor": _same,
    "trunc": _same,
    "rint": rint,
    "fabs": lambda kind, x: _u.absolute(_array(kind, x)),
    "square": _square,
    "reciprocal": reciprocal,
    "float_power": lambda kind, x, y: _native.operate("power", _arrays(kind, x, y)),
    "copysign": copysign,
    "hypot": hypot,
    "fmax": fmax,
    "fmin": fmin,
    "logaddexp": logaddexp,
    "logaddexp2": logaddexp2,
    "heaviside": heaviside,
    "maximum": _extreme("greater_equal"),
    "minimum": _extreme("less_equal"),
    "modf": modf,
    "divmod": divmod_,
    "deg2rad": _scaled(math.pi / 180),
    "radians": _scaled(math.pi / 180),
    "rad2deg": _scaled(180 / math.pi),
    "degrees": _scaled(180 / math.pi),
    "equal": mixed_order("equal"),
    "not_equal": mixed_order("not_equal"),
} | {name: order(name) for name in ("less", "less_equal", "greater", "greater_equal")}

# Compositions that are one opcode of the operands, and what that is given: see `Form` in the native half.
FORMS = {
    "float_power": ("power", "plain"),
    "negative": ("subtract", "negated"),
    "square": ("multiply", "doubled"),
    "reciprocal": ("divide", "inverted"),
    "fabs": ("absolute", "plain"),
    **dict.fromkeys(("deg2rad", "radians"), ("multiply", "radians")),
    **dict.fromkeys(("rad2deg", "degrees"), ("multiply", "degrees")),
} | {name: ("copy", "plain") for name, compose in COMPOSED.items() if compose is _same}

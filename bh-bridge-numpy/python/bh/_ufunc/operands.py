"""Whose business an operator is, where an operand of another class may decide: NumPy's rules for arrays."""

import operator

import numpy as np

from .. import _native
from .._array.conversion import decides
from .._numpy import fallback
from .._numpy.fallback import overrides

ndarray = _native.ndarray
_MISSING = object()
_PLAIN = {ndarray, np.ndarray, int, float, complex, bool, list, tuple, str, type(None)}

# For universal functions behind operators: the operator, and the method of the second operand that does it.
BINARY = {
    "add": (operator.add, "__radd__"),
    "subtract": (operator.sub, "__rsub__"),
    "multiply": (operator.mul, "__rmul__"),
    "divide": (operator.truediv, "__rtruediv__"),
    "floor_divide": (operator.floordiv, "__rfloordiv__"),
    "remainder": (operator.mod, "__rmod__"),
    "divmod": (divmod, "__rdivmod__"),
    "power": (operator.pow, "__rpow__"),
    "matmul": (operator.matmul, "__rmatmul__"),
    "left_shift": (operator.lshift, "__rlshift__"),
    "right_shift": (operator.rshift, "__rrshift__"),
    "bitwise_and": (operator.and_, "__rand__"),
    "bitwise_or": (operator.or_, "__ror__"),
    "bitwise_xor": (operator.xor, "__rxor__"),
    "less": (operator.lt, "__gt__"),
    "less_equal": (operator.le, "__ge__"),
    "equal": (operator.eq, "__eq__"),
    "not_equal": (operator.ne, "__ne__"),
    "greater": (operator.gt, "__lt__"),
    "greater_equal": (operator.ge, "__le__"),
}


def defers(value):
    """Does an operand ask universal functions to leave it alone?"""
    return getattr(type(value), "__array_ufunc__", _MISSING) is None


def wraps_own(values):
    """Is there one that is no array, makes objects of its own of results, and shows itself as an array of bh?"""
    return any(
        hasattr(type(value), "__array_wrap__") and not isinstance(value, (np.ndarray, np.generic))
        and type(value) is not ndarray and hasattr(type(value), "__array__") and type(value.__array__()) is ndarray
        for value in values
    )  # fmt: skip


def comes_first(value):
    """Does NumPy leave an operator between an array and this operand to the operand?"""
    kind = type(value)
    if kind in _PLAIN or issubclass(kind, np.generic):
        return False
    if decides(value):
        return True
    if hasattr(kind, "__array_ufunc__"):
        return kind.__array_ufunc__ is None
    return getattr(value, "__array_priority__", -1) > ndarray.__array_priority__


def settled(name, a, b):
    """The result of an operator that one of the operands decides about."""
    function, reflected = BINARY[name]
    if type(a) is ndarray:
        method = getattr(type(b), reflected, None)
        result = NotImplemented if method is None else method(b, a)
        if result is not NotImplemented:
            return result
    # Classes that know NumPy's arrays only are given those.
    return fallback.lift(function(fallback.lower(a), fallback.lower(b)))


def operator_of(name, function):
    """An operator that no table of calls serves, as a function of two operands."""

    def operate(a, b):
        if comes_first(a) or comes_first(b):
            return settled(name, a, b)
        return fallback.given(function(a, b))

    return operate

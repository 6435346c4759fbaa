"""The types of values: NumPy's, and those of Python's own numbers, which give way to the types of arrays.

Truth values are Python's where their values count, which are 0 and 1 in sums; NumPy's give sums that are truth values again.
"""

import numpy as np

from ..._array.element_types import CODE
from .ir import Const, Mistyped, Unsupported

BOOL = np.dtype(bool)
_PYTHONS = {bool: BOOL, int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}
_WEAK = {dtype: kind for kind, dtype in _PYTHONS.items()}


def kind_of(value):
    """The type of a constant."""
    if type(value) in _PYTHONS:
        return type(value)
    return np.dtype(type(value))


def is_weak(kind):
    """Is it the type of Python's own numbers?"""
    return type(kind) is type


def concrete(kind):
    """The type of elements that hold such values."""
    return _PYTHONS[kind] if is_weak(kind) else kind


def pythons(kind):
    """The type with Python's truth values for NumPy's."""
    return bool if kind == BOOL else kind


def letter(kind):
    """b, i, u, f or c: truth values, whole, real and complex numbers."""
    return concrete(kind).kind


def join(one, other):
    """The type that holds values of both."""
    if one == other:
        return one
    if is_weak(one) and is_weak(other):
        return max(one, other, key=list(_PYTHONS).index)
    if is_weak(other):
        one, other = other, one
    if is_weak(one):
        # A truth value is a whole number beside numbers.
        return one if other == BOOL and one is not bool else known(np.result_type(other, one(0)))
    return known(np.promote_types(one, other))


def known(dtype):
    """A type of NumPy, if bh has it."""
    if dtype not in CODE:
        raise Unsupported(f"bh has no element type {dtype}")
    return dtype


def numbers(kinds):
    """The types as those of numbers: Python's truth values count as 0 and 1 among themselves."""
    return [int if kind is bool else kind for kind in kinds] if all(map(is_weak, kinds)) else list(kinds)


def resolve(ufunc, kinds):
    """The types in which a universal function works on operands of these types, and that of its result."""
    try:
        loop = ufunc.resolve_dtypes((*(BOOL if kind is bool else kind for kind in kinds), *(None,) * ufunc.nout))
    except TypeError:
        names = ", ".join(concrete(kind).name for kind in kinds)
        raise Mistyped(f"'{ufunc.__name__}' does not take {names}") from None
    result = known(loop[-1])
    weak = all(map(is_weak, kinds))
    return tuple(map(known, loop[: ufunc.nin])), _WEAK.get(result, result) if weak else result


def literal(value):
    """A constant as an element: a number of Python's, and its type."""
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise Unsupported(f"{value} is too large")
    return Const(value)

"""The Python functions that the native module calls: advanced indexing, warnings, universal functions and operators."""

import numpy as np

from .. import _native
from .._array import indexing
from .._functions import products
from .._ufunc import folds, operands
from .._ufunc.ufunc import UFUNCS, binary, entry, inplace
from . import fallback, floating_point

# Universal functions that are operators, or that other functions are made of, by the names of Python's methods or of NumPy's functions.
_OPERATORS = """
add subtract multiply divide floor_divide remainder power left_shift right_shift bitwise_and bitwise_or bitwise_xor
less less_equal equal not_equal greater greater_equal negative positive absolute invert sqrt reciprocal square maximum minimum exp exp2 log1p
""".split()


def _overrides(value):
    """Has the operand's class universal functions of its own? Those that have none, as numbers of traces, are refused by Python."""
    return fallback.overrides(value) and type(value).__array_ufunc__ is not None


def install():
    """Hands them over."""
    _native.set_indexing(indexing.get, indexing.set)
    _native.set_lift(fallback.made)
    _native.set_classes(fallback.decided, _overrides, np.asarray)
    _native.set_warnings(floating_point.again, floating_point.met, floating_point.divided)
    _native.set_entries(entry, folds.entry)
    _native.set_ufuncs({function._np: function for function in UFUNCS.values()})
    _native.set_operators(
        **{name: UFUNCS[name] for name in _OPERATORS},
        divmod=operands.operator_of("divmod", UFUNCS["divmod"]),
        matmul=operands.operator_of("matmul", products.matmul),
        binary=binary,
        inplace=inplace,
    )

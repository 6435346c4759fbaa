"""Stacks of little matrices in the memory of this process: methods that compute systems side by side, and say which ones are doubtful.
LAPACK computes those again, as it depends on its rounding whether they are errors."""

import numpy as np

from .. import _native
from .._array.element_types import BOOL
from .._numpy.fallback import from_numpy, lower
from .decompositions import new


def _certain(name, original, result, operands):
    """The results of a method; `original`: NumPy's function."""
    doubtful = new(result, operands[0].shape[:-2], BOOL)
    _native.extension(f"{name}_or_doubt", [result, doubtful], operands)
    numbers = np.nonzero(np.asarray(doubtful))
    if numbers[0].size:
        again = lower(tuple(operands))
        result[numbers] = from_numpy(np.asarray(original(*(value[numbers] for value in again))))
    return result


def solve(a, right):
    """The solutions of systems for right sides in columns; both have the same extents before the last two."""
    return _certain("solve", np.linalg.solve, new(right, right.shape), [a, right])


def inv(a):
    """The inverses of matrices."""
    return _certain("inv", np.linalg.inv, new(a, a.shape), [a])


def det(a):
    """The determinants of matrices."""
    return _certain("det", np.linalg.det, new(a, a.shape[:-2]), [a])

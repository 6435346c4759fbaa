"""Types of arrays, scalars, and the memory that arrays share."""

import numpy as np

from .. import _native
from .._array import conversion

ndarray = _native.ndarray


def result_type(*arrays_and_dtypes):
    """The type that NumPy's promotion gives."""
    return np.result_type(*(a.dtype if type(a) is ndarray else a for a in arrays_and_dtypes))


def can_cast(from_, to, casting="safe"):
    """Whether elements of a type, or of an array, may be cast to another type by the rule `casting`."""
    return np.can_cast(from_.dtype if type(from_) is ndarray else from_, to, casting)


def isscalar(element):
    """Is it a scalar, such as the result of a full sum?"""
    return element._scalar if type(element) is ndarray else np.isscalar(element)


def astype(x, dtype, /, *, copy=True, device=None):
    """The elements converted to another type; without `copy`, the array itself if it has that type."""
    conversion.check_device(device)
    if type(x) is not ndarray:
        if isinstance(x, (np.ndarray, np.generic)):
            return np.astype(x, dtype, copy=copy)
        raise TypeError(f"Input should be a NumPy array. It is a {type(x)} instead.")
    return x.astype(dtype, copy=copy)


def shares_memory(a, b, max_work=None):
    """Have two arrays an element in common?"""
    return _overlap(np.shares_memory, a, b, max_work)


def may_share_memory(a, b, max_work=None):
    """May two arrays have an element in common? Only bounds are compared."""
    return _overlap(np.may_share_memory, a, b, max_work)


def _overlap(test, a, b, max_work):
    if type(a) is not ndarray and type(b) is not ndarray:
        return test(a, b, max_work)
    if type(a) is not ndarray or type(b) is not ndarray:
        one, other = (a, b) if type(a) is ndarray else (b, a)
        # Arrays of NumPy may show bh's memory.
        return getattr(other, "base", None) is not None and test(np.asarray(memoryview(one)), other, max_work)
    if a._memory != b._memory:
        return False
    # Parts of complex numbers have other addresses; bounds of two types cannot be compared.
    return a.dtype != b.dtype or test(_Place(a), _Place(b), max_work)


class _Place:
    """The addresses of an array, for NumPy's tests, which read no element."""

    def __init__(self, array):
        # An address that no array has, far from both ends of the address space.
        address = (1 << 60) + array._start * array.itemsize
        strides = tuple(stride * array.itemsize for stride in array._stride)
        self.__array_interface__ = {
            "data": (address, True), "shape": array.shape, "strides": strides, "typestr": array.dtype.str, "version": 3,
        }  # fmt: skip

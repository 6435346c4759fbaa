"""What the functions that the emitter writes call: operations on arrays and numbers of known types."""

import numpy as np

from .. import _native
from .._convert import astype
from .._types import CODE, BOOL
from .._ufunc import UFUNCS

ndarray = _native.ndarray


def cast(value, dtype):
    """The value as an element of this type; numbers stay Python's."""
    if type(value) is ndarray:
        return astype(value, dtype)
    return np.asarray(value).astype(dtype).item()


def array_of(value, dtype):
    """The value as an array."""
    return value if type(value) is ndarray else _native.full((), CODE[np.dtype(dtype)], value)


def where(mask, one, other):
    """Values of one type, chosen by a mask."""
    mask = as_mask(mask)
    if type(one) is not ndarray and type(other) is not ndarray:
        one = array_of(one, np.asarray(one).dtype)
    return _native.operate("where", [mask, one, other])


def as_mask(value):
    """A truth value as an array."""
    return array_of(value, bool)


def inverse(mask):
    """Where the mask is false."""
    return UFUNCS["logical_not"](mask)


def both(one, other):
    """Python's `and`."""
    if _is_truth(one) and _is_truth(other):
        return UFUNCS["logical_and"](one, other)
    return where(UFUNCS["not_equal"](one, 0), other, one)


def either(one, other):
    """Python's `or`."""
    if _is_truth(one) and _is_truth(other):
        return UFUNCS["logical_or"](one, other)
    return where(UFUNCS["not_equal"](one, 0), one, other)


def _is_truth(value):
    return value._code == BOOL if type(value) is ndarray else isinstance(value, (bool, np.bool_))


def rounded(name, value):
    """The value rounded to a whole number."""
    dtype = value.dtype if type(value) is ndarray else np.asarray(value).dtype
    return cast(UFUNCS[name](value) if dtype.kind == "f" else value, np.dtype(np.int64))


def part(value, name):
    """The real or imaginary part."""
    return _native.operate(name, [array_of(value, np.asarray(value).dtype if type(value) is not ndarray else None)])


def complex_of(real, imaginary):
    """Complex numbers of their parts."""
    from .._parts import complex_of

    return complex_of(array_of(real, float), array_of(imaginary, float))


def load(table, mask, *key):
    """Elements of an array. Where the mask is false, the subscripts may be any."""
    if mask is not None:
        key = [where(mask, index, 0) for index in key]
    key = [array_of(index, np.int64) for index in key]
    return table[tuple(key)]


def spread_view(value, shape):
    """The value for each element, without memory of its own."""
    return _native.broadcast_to(value, shape)


def spread(value, dtype, shape):
    """The value as an array of this type and shape; the mask of all is None."""
    value = True if value is None else value
    if type(value) is not ndarray:
        return _native.full(shape, CODE[np.dtype(dtype)], value)
    value = astype(value, dtype)
    return value if value.shape == tuple(shape) and _is_dense(value) else _native.cast(_native.broadcast_to(value, shape), value._code)


def _is_dense(value):
    """Has each element memory of its own?"""
    return all(step or extent < 2 for step, extent in zip(value._stride, value.shape))


def none(mask):
    """The mask of no element."""
    return _native.full(mask.shape, BOOL, False)


def number(mask):
    """How many elements a mask has."""
    return UFUNCS["add"].reduce(mask, axis=None)


def scope():
    """The names that written functions use."""
    names = {name: UFUNCS[name] for name in UFUNCS}
    names |= {dtype.name: dtype for dtype in CODE}
    names |= {function.__name__: function for function in (
        cast, where, as_mask, inverse, both, either, rounded, part, complex_of, load, spread_view, spread, none, number)}  # fmt: skip
    return names

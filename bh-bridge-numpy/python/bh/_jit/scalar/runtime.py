"""The functions that the emitter's code calls: operations on arrays and numbers of known types."""

import math

import numpy as np

from ... import _native
from ..._array.conversion import astype
from ..._array.element_types import CODE, BOOL
from ..._ufunc.ufunc import UFUNCS
from ..indices import Index

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
    """Values chosen by a mask, in the type that holds both: constants keep the type in which a function has them."""
    mask, values = as_mask(mask), (one, other)
    dtype = np.result_type(*(value.dtype if type(value) is ndarray else value for value in values))
    one, other = (astype(value, dtype) if type(value) is ndarray else value for value in values)
    if type(one) is not ndarray and type(other) is not ndarray:
        one = array_of(one, dtype)
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
    from ..._functions.complex_parts import complex_of

    return complex_of(array_of(real, float), array_of(imaginary, float))


def index(shape, axis):
    """The index of a loop over a shape."""
    return Index(shape, tuple(int(axis == other) for other in range(len(shape))), 0)


def load(table, mask, places, *key):
    """Elements of an array; a view, where the subscripts are sums of multiples of indices. Where the mask is false, the
    subscripts may be any."""
    if places is not None or not any(type(part) is ndarray for part in key):
        try:
            return table[places or tuple(key)]
        except IndexError:
            # Some may be counted from the end, or may not be needed.
            if mask is None and (places is None or not _may_be_from_end(table, places)):
                raise
    return table[_key(mask, key)]


def _may_be_from_end(table, places):
    """Are sums of multiples of indices beyond an array's ends only in that they are negative?"""
    for place, extent in zip(places, table.shape):
        reach = [place, place] if type(place) is not Index else place.reach()
        if not -extent <= reach[0] or reach[1] >= extent:
            return False
    return True


def _key(mask, key):
    """Index arrays, which are 0 where the mask is false."""
    key = key if mask is None else [where(mask, part, 0) for part in key]
    return tuple(array_of(part, np.int64) for part in key)


def copied(value, table, stored):
    """A value read from an array, copied if an array that is written to shares its memory."""
    return _native.cast(value, value._code) if any(other._memory == table._memory for other in stored) else value


def save(table, mask, shape, places, key, value, adds):
    """Puts values at elements of an array, or adds them to these, one after the other."""
    value = array_of(value, table.dtype)
    if mask is None and places is not None and are_apart(places, shape):
        view = table[places]
        value = _native.broadcast_to(value, view.shape)
        _native.assign(view, UFUNCS["add"](view, value) if adds else value)
        return
    flat = lambda part: _native.reshape(_native.broadcast_to(array_of(part, np.int64), shape), (math.prod(shape),))
    key, value = [flat(part) for part in key], flat(value)
    if mask is not None:
        chosen = flat(as_mask(mask))
        key, value = [part[chosen] for part in key], value[chosen]
    if not value.size:
        return
    if adds:
        UFUNCS["add"].at(table, tuple(key), value)
    else:
        table[tuple(key)] = value


def are_apart(places, shape):
    """Does each index of a loop go to elements of its own, as it moves along a dimension of its own?"""
    axes = []
    for place in places:
        if type(place) is Index:
            axes.append([axis for axis, factor in enumerate(place.factors) if factor])
    single = [found[0] for found in axes if len(found) == 1]
    return {axis for axis, extent in enumerate(shape) if extent > 1} <= {*single}


def fresh(value, dtype, shape):
    """A result: an array with memory of its own."""
    result = spread(value, dtype, shape)
    return result if result is not value or result.base is None else _native.cast(result, result._code)


def spread_view(value, shape):
    """The value for each element, without memory of its own."""
    return _native.broadcast_to(value, shape)


def spread(value, dtype, shape):
    """The value as an array of this type and shape; the mask of all is None."""
    value = True if value is None else value
    if type(value) is not ndarray:
        return _native.full(shape, CODE[np.dtype(dtype)], cast(value, dtype))
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
        cast, where, as_mask, inverse, both, either, rounded, part, complex_of, index, load, copied, save, fresh, spread_view, spread,
        none, number)}  # fmt: skip
    return names

"""Bits as elements of their own, and back."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .. import _native
from .._array.conversion import astype, native
from .._array.element_types import BOOL, CODE, is_integer
from .._numpy.fallback import falls_back
from .._ufunc.ufunc import UFUNCS
from .joining import concatenate
from .manipulation import moveaxis, reshape
from .reductions import sum as sum_

_UINT8 = CODE[np.dtype(np.uint8)]


def _along(a, axis, bitorder):
    """The array with an axis last, which one that is (in the result too), and the places of bits from the first on."""
    if not isinstance(bitorder, str):
        raise TypeError(f"unpackbits() argument 4 must be str, not {type(bitorder).__name__}")
    if bitorder not in ("big", "little"):
        raise ValueError("'bitorder' must be 'little' or 'big'")
    a = reshape(a, (-1,)) if axis is None or a.ndim == 0 else a
    axis = normalize_axis_index(0 if axis is None else axis, a.ndim)
    places = np.arange(8, dtype=np.uint8)
    return moveaxis(a, axis, -1), axis, native(places[::-1] if bitorder == "big" else places)


def _fitted(a, extent):
    """The array with `extent` elements in the last dimension: the first ones, or zeros after them."""
    missing = extent - a.shape[-1]
    if missing <= 0:
        return a[..., :extent]
    return concatenate([a, _native.full((*a.shape[:-1], missing), a._code, 0)], -1)


@falls_back
def unpackbits(a, /, axis=None, count=None, bitorder="big"):
    """The bits of bytes as elements."""
    a = native(a)
    if a._code != _UINT8:
        raise TypeError("Expected an input array of unsigned byte data type")
    a, axis, places = _along(a, axis, bitorder)
    bits = UFUNCS["bitwise_and"](UFUNCS["right_shift"](a[..., None], places), 1)
    bits = reshape(bits, (*a.shape[:-1], 8 * a.shape[-1]))
    if count is not None:
        extent = bits.shape[-1] + count if count < 0 else count
        if extent < 0:
            raise ValueError("-count larger than number of elements")
        bits = _fitted(bits, extent)
    return _native.cast(moveaxis(bits, -1, axis), _UINT8)


@falls_back
def packbits(a, /, axis=None, bitorder="big"):
    """Truth values as bits of bytes."""
    a = native(a)
    if a._code != BOOL and not is_integer(a._code):
        raise TypeError("Expected an input array of integer or boolean data type")
    a, axis, places = _along(a, axis, bitorder)
    count = -(-a.shape[-1] // 8)
    bits = _fitted(astype(UFUNCS["not_equal"](a, 0), np.uint8), 8 * count)
    bits = UFUNCS["left_shift"](reshape(bits, (*a.shape[:-1], count, 8)), places)
    return _native.cast(moveaxis(sum_(bits, -1, np.uint8), -1, axis), _UINT8)

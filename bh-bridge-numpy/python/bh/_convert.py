"""Arrays from what Python and NumPy hold, and conversions between element types."""

import numpy as np

from . import _native
from ._fallback import Fallback, from_host, from_numpy
from ._types import CODE, code_of

ndarray = _native.ndarray


def native(value, dtype=None):
    """An array of bh with these elements; the array itself if it is one. Raises `Fallback` for types that bh lacks."""
    if type(value) is ndarray:
        return value if dtype is None else astype(value, dtype)
    value = np.asarray(lower_nested(value), dtype=dtype)
    code = CODE.get(value.dtype)
    if code is None:
        raise Fallback(f"bh has no element type {value.dtype}")
    if value.ndim > 16:
        raise Fallback(f"bh has at most 16 dimensions, not {value.ndim}")
    return from_host(value, code)


def lower_nested(value):
    """Nested lists and tuples, with bh's arrays in them as NumPy's."""
    from ._fallback import holds_array, lower

    return lower(value) if type(value) in (list, tuple) and holds_array(value) else value


def astype(array, dtype, copy=False):
    """The array with elements of another type; the array itself if it has that type and `copy` is false."""
    code = code_of(dtype)
    if code is None:
        raise Fallback(f"bh has no element type {np.dtype(dtype)}")
    if code == array._code and not copy:
        return array
    return _native.cast(array, code)


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None, ndmax=0):
    """An array with the elements of `object`. Types that bh lacks give an array of NumPy."""
    if copy is False and type(object) is not ndarray:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if type(object) is ndarray:
        try:
            result = astype(object, object.dtype if dtype is None else dtype)
        except Fallback:
            return np.array(np.asarray(object), dtype)
        if result is not object and copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        if result is object and (copy or order == "F"):
            result = _native.cast(object, object._code)
        elif result is object and object._scalar:
            result = _native.reshape(object, ())
        if result._scalar:
            result._scalar = False
    else:
        made = np.array(lower_nested(object), dtype=dtype, copy=None, ndmin=ndmin)
        return from_numpy(made)
    if result.ndim < ndmin:
        result = _native.reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    return result


def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """The array itself where nothing has to change, else a new one with its elements."""
    check_device(device)
    if type(a) is ndarray and copy is None and not a._scalar:
        if dtype is None or a._code == code_of(dtype):
            return a
    return array(a, dtype, copy=copy)


def asanyarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """As `asarray`: there are no subclasses."""
    return asarray(a, dtype, order, device=device, copy=copy)


def ascontiguousarray(a, dtype=None, *, like=None):
    """The elements in C order, with at least one dimension."""
    result = asarray(a, dtype)
    if type(result) is not ndarray:
        return np.ascontiguousarray(result)
    if not result._contiguous:
        result = _native.cast(result, result._code)
    return result if result.ndim else _native.reshape(result, (1,))


def asfortranarray(a, dtype=None, *, like=None):
    """The array; its order in memory is bh's own affair."""
    return asarray(a, dtype)


def require(a, dtype=None, requirements=None, *, like=None):
    """The array with this type; requirements on memory mean nothing to bh."""
    return asarray(a, dtype)


def asarray_chkfinite(a, dtype=None, order=None):
    """The array, unless it holds NaN or infinity, which is a `ValueError`."""
    from . import isfinite

    result = asarray(a, dtype)
    if result.dtype.kind in "fc" and not isfinite(result).all():
        raise ValueError("array must not contain infs or NaNs")
    return result


def copy(a, order="K", subok=False):
    """A copy of the array."""
    return array(a, copy=True)


def check_device(device):
    """Arrays have one device, the stack they are on; its name in the array API is "cpu", as the host can see them all."""
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')

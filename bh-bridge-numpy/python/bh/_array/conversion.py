"""Arrays from Python and NumPy, and conversions between element types."""

import builtins
import warnings

import numpy as np

from .. import _native
from .._cluster import datasets
from .._numpy.fallback import Fallback, counts, from_host, from_numpy, holds_array, invoke, lower, shown_by, to_numpy
from .element_types import CODE, INT64, MOST_DIMENSIONS, UINT64, code_of
from .layout import axes_in_memory, repeats

ndarray = _native.ndarray


def decides(value):
    """Is this an array of a class that decides itself what functions do, such as a masked array?"""
    return isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap)


def native(value, dtype=None):
    """An array of bh with these elements; the array itself if it is one. Raises `Fallback` for types that bh lacks."""
    if type(value) is ndarray:
        return value if dtype is None else astype(value, dtype)
    if decides(value):
        raise Fallback(f"{type(value).__name__} has functions of its own")
    value = invoke(np.asarray, (lower_nested(value),), {"dtype": dtype})
    code = CODE.get(value.dtype)
    if code is None:
        raise Fallback(f"bh has no element type {value.dtype}")
    if value.ndim > MOST_DIMENSIONS:
        raise Fallback(f"bh has at most {MOST_DIMENSIONS} dimensions, not {value.ndim}")
    return from_host(value, code)


def mask_from(where):
    """A mask as an array; lists are converted to truth values."""
    return native(np.asarray(lower_nested(where), bool) if isinstance(where, (list, tuple)) else where)


def assigned(value, dtype):
    """The value to assign to an array of this type: NumPy converts numbers and lists, and raises errors for values that do not fit."""
    if type(value) is not ndarray:
        return native(np.array(lower_nested(value), dtype, copy=None))
    if value.dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
        warn_of_lost_parts()
    _native.warn_of_cast(value, CODE[np.dtype(dtype)])
    return astype(value, dtype)


def warn_of_lost_parts():
    """Warns as NumPy does where complex numbers become real ones."""
    warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)


def warn(text, category):
    """Warns of what the program's own line does."""
    file, line = _native.call_site()
    file = file or "<unknown>"
    warnings.warn_explicit(text, category, file, line or 1, registry=_warned.setdefault(file, {}))


# Registries of shown warnings, by file: most filters show a warning once for each line.
_warned = {}


# Names of the type of objects.
_OBJECTS = (builtins.object, "O", np.object_)


def _lower_scalars(value):
    """Nested lists with bh's scalars as NumPy's; arrays may become elements of arrays of objects."""
    if type(value) in (list, tuple):
        return type(value)(map(_lower_scalars, value))
    return lower(value) if type(value) is ndarray and value._scalar else value


def lower_nested(value, change=None):
    """Nested lists and tuples, with bh's arrays in them as NumPy's; objects that show themselves as arrays of bh as NumPy's."""

    kind = type(value)
    if kind in (list, tuple):
        try:
            return (change or lower)(value) if holds_array(value) else value
        except RecursionError:
            # Lists that hold themselves; how deep they are is for NumPy to say.
            return value
    if issubclass(kind, (type, np.ndarray, np.generic)) or not hasattr(kind, "__array__"):
        return value
    made = value.__array__()
    return lower(made) if type(made) is ndarray else value


def astype(array, dtype, copy=False):
    """The array with elements of another type, in its order in memory; itself if it has that type and `copy` is false."""
    code = code_of(dtype)
    if code is None:
        raise Fallback(f"bh has no element type {np.dtype(dtype)}")
    if code == array._code and not copy:
        return array
    return _native.cast_in_order(array, code)


# Types that `called` need not check: the integers of 64 bits that results have anyway.
_USUAL = (int, np.int64, np.uint64, np.dtype("int64"), np.dtype("uint64"), "i8", "u8", "int64", "uint64", "int")


def called(array, dtype):
    """The array, whose integers of 64 bits are called `long long` where the program did."""
    if type(array) is ndarray and array._code in (INT64, UINT64) and not any(dtype is usual for usual in _USUAL):
        if np.dtype(dtype).char in "qQ":
            array._long_long = True
    return array


def order_of(order, default="K"):
    """The letter of an order in memory, as NumPy reads it."""
    letter = default if order is None else str(order).upper()
    if letter not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
    return letter


def in_order(array, order, like=None):
    """A copy of an array in an order in memory, of this one or of another one like it."""
    axes = axes_in_memory(order, array.shape, (array if like is None else like)._stride)
    if axes is None:
        return _native.cast(array, array._code)
    result = _native.empty(array.shape, array._code, _native.Stack(array._stack), axes)
    _native.assign(result, array)
    return result


def to_write(array):
    """NumPy's array over the memory of an array whose elements share memory: the stack writes to none that does."""
    array._warn_of_write()
    return np.asarray(array)


def store(target, value):
    """Assigns a value that is broadcast; where elements of the target share memory, the last one stays, as in NumPy."""
    if repeats(target):
        np.copyto(to_write(target), to_numpy(_native.broadcast_to(value, target.shape)), "unsafe")
    else:
        _native.assign(target, value)


def _has_order(array, order):
    """Lies an array in this order in memory, or does the order ask for nothing?"""
    if order in ("A", "K"):
        return True
    return (array.T if order == "F" else array)._contiguous


# NumPy's other names of what `copy` may be.
_COPIES = {np._CopyMode.ALWAYS: True, np._CopyMode.NEVER: False, np._CopyMode.IF_NEEDED: None}


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None, ndmax=None):
    """An array with the elements of `object`. Types that bh lacks give an array of NumPy."""
    letter = order_of(order)
    if type(copy) is np._CopyMode:
        copy = _COPIES[copy]
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    copy = None if copy is None else bool(copy)
    if subok and decides(object):
        return np.array(object, dtype, copy=copy, order=order, subok=True, ndmin=ndmin)
    limit = {"ndmax": ndmax} if ndmax is not None else {}
    shown = _shown(object, dtype, copy)
    if shown is not None:
        # An object that shows itself as an array has made the copy if one is needed.
        object, copy = shown
    if not copy and isinstance(object, np.ndarray) and object.base is not None:
        view = shown_by(object)
        object = object if view is None else view
    if copy is not False and dtype is None and letter in "KC" and (joined := _stacked(object)) is not None and not ndmin > joined.ndim and not limit:
        return joined
    if type(object) is not ndarray:
        objects = type(object) in (list, tuple) and dtype in _OBJECTS
        object = lower_nested(object, _lower_scalars if objects else None)
        if isinstance(object, np.floating) and dtype is not None and code_of(dtype) is not None and not np.isfinite(object):
            # As an array would be converted here.
            object = from_numpy(np.asarray(object))
            return astype(object, dtype) if object.dtype in CODE else np.array(object, dtype)
        if copy is False:
            return np.array(object, dtype, copy=False, order=order, subok=subok, ndmin=ndmin, **limit)
        made = invoke(np.array, (object,), {"dtype": dtype, "copy": None, "order": order, "ndmin": ndmin, **limit})
        if copy is None and _is_of_others(object, made):
            return made
        result = called(from_numpy(made), made.dtype)
        if type(result) is not ndarray:
            return invoke(np.array, (object, dtype), {"copy": copy, "order": order, "subok": subok, "ndmin": ndmin, **limit})
        if copy is None and not made.flags.writeable:
            result._writeable = False
        return result
    try:
        result = object if dtype is None else astype(object, dtype)
    except Fallback:
        return np.array(np.asarray(object), dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **limit)
    if result is object and (copy or not _has_order(object, letter)):
        result = in_order(object, letter)
    elif result is not object:
        axes = axes_in_memory(letter, object.shape, object._stride)
        if axes != axes_in_memory("K", result.shape, result._stride):
            result = in_order(result, letter, object)
    if result is not object and copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if result is object and object._scalar:
        result = _native.reshape(object, ())
    if result._scalar:
        result._scalar = False
    if ndmin > MOST_DIMENSIONS:
        return np.array(to_numpy(result), copy=None, ndmin=ndmin)
    if result.ndim < ndmin:
        result = _native.reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    # Types with the same elements do not need to be converted.
    return result if result is object else called(result, object.dtype if result._code == object._code else dtype)


# Arrays in a list with at least as many elements together are joined where they are; NumPy joins copies of fewer sooner.
_JOINED = 1 << 13


def _stacked(value):
    """The arrays of bh in a list, or in lists of such, beside each other as one array; None if the list holds anything else, or little."""
    if type(value) not in (list, tuple) or not value or type(value[0]) not in (ndarray, list, tuple):
        return None
    parts = [part if type(part) is ndarray else _stacked(part) for part in value]
    first = parts[0]
    if any(part is None or part.shape != first.shape or part.dtype != first.dtype or not part.ndim for part in parts):
        return None
    if first.size * len(parts) < _JOINED or first.ndim == MOST_DIMENSIONS or any(part._stack != first._stack for part in parts):
        return None
    result = _native.empty((len(parts), *first.shape), first._code, _native.Stack(first._stack))
    for at, part in enumerate(parts):
        _native.assign(result[at], part)
    return result


def _shown(value, dtype, copy):
    """The array of bh that an object of another class shows itself as, and whether it is to be copied; else None."""
    kind = type(value)
    if kind in _PLAIN or issubclass(kind, (np.ndarray, np.generic)) or not hasattr(kind, "__array__"):
        return None
    if hasattr(kind, "__array_interface__") or hasattr(kind, "__array_struct__"):
        return None
    if copy is not False and datasets.is_dataset(value):
        made = datasets.load(value)
        return (made, None) if type(made) is ndarray else None
    given, named = () if dtype is None else (np.dtype(dtype),), {} if copy is None else {"copy": copy}
    left = None
    try:
        made = value.__array__(*given, **named)
    except TypeError as error:
        if "unexpected keyword argument 'copy'" not in str(error):
            raise
        text = "__array__ implementation doesn't accept a copy keyword, so passing copy=False failed. __array__ must implement"
        warn(f"{text} 'dtype' and 'copy' keyword arguments.", DeprecationWarning)
        if copy is False:
            # NumPy says so, and how to change that.
            return np.array([1], copy=False)
        made, left = value.__array__(*given), copy
    return (made, left) if type(made) is ndarray else None


# Classes whose objects do not show themselves as arrays by a protocol.
_PLAIN = {ndarray, np.ndarray, list, tuple, int, float, complex, bool, str, bytes}


def _is_of_others(value, made):
    """Is an array of NumPy over memory that others write to? It stays NumPy's, as it has to show what they write."""
    if not made.flags.writeable or made.base is None or made is value:
        return False
    if isinstance(value, np.ndarray):
        return type(value) is not np.ndarray and np.may_share_memory(value, made)
    return type(value) is memoryview or hasattr(value, "__array_interface__") and not isinstance(value, (np.ndarray, np.generic))


def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """The array itself where nothing has to change, else a new one with its elements."""
    check_device(device)
    if type(a) is ndarray and copy is None and order is None and not a._scalar:
        if dtype is None or a._code == code_of(dtype):
            return a
    return array(a, dtype, copy=copy, order=order)


def asanyarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """As `asarray`, but arrays of classes derived from NumPy's stay what they are."""
    if decides(a):
        return np.asanyarray(a, dtype, order, copy=copy)
    return asarray(a, dtype, order, device=device, copy=copy)


def ascontiguousarray(a, dtype=None, *, like=None):
    """The elements in C order, with at least one dimension."""
    return array(a, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(a, dtype=None, *, like=None):
    """The elements in Fortran's order, with at least one dimension."""
    return array(a, dtype, copy=None, order="F", ndmin=1)


def asarray_chkfinite(a, dtype=None, order=None):
    """The array, unless it holds NaN or infinity, which is a `ValueError`."""
    from .. import isfinite

    result = asarray(a, dtype)
    if result.dtype.kind in "fc" and not isfinite(result).all():
        raise ValueError("array must not contain infs or NaNs")
    return result


def copy(a, order="K", subok=False):
    """A copy of the array."""
    return array(a, order=order, subok=subok, copy=True)


def check_device(device):
    """Arrays have one device, the stack they are on; its name in the array API is "cpu", as the host can see them all."""
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


def moved(value, like):
    """The array on the stack of another one."""
    if value._stack == like._stack:
        return value
    counts["moved between stacks"] += 1
    result = from_host(to_numpy(value), value._code, _native.Stack(like._stack))
    result._scalar = value._scalar
    return result

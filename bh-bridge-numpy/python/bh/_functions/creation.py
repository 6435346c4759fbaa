"""Making arrays."""

import math
import operator

import numpy as np

from .. import _native
from .._array import indexing as _indexing
from .._array.conversion import asarray, astype, called, check_device, decides, native, order_of
from .._numpy import fallback

from .._array.element_types import BOOL, CODE, COMPLEX64, FLOAT64, INT64, MOST_DIMENSIONS, code_of
from .._array.layout import axes_in_memory
from .._array.memory import device_of
from .._ufunc.ufunc import UFUNCS
from .manipulation import broadcast_arrays, moveaxis, swapaxes

ndarray = _native.ndarray


def _code(dtype):
    return FLOAT64 if dtype is None else code_of(dtype)


def _made(shape, code, order):
    """An array with undefined elements in C's or Fortran's order."""
    if order not in ("C", "c", None) and order_of(order) not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    if order in ("C", "c", None):
        try:
            return _native.empty(shape, code)
        except ValueError as error:
            size = math.prod(shape) if isinstance(shape, tuple) else shape
            if "number of elements" in str(error) and size * CODE_TYPES[code].itemsize < 2**63:
                raise np._core._exceptions._ArrayMemoryError(shape, CODE_TYPES[code]) from None
            raise
    rank = len(shape) if np.ndim(shape) else 1
    return _native.empty(shape, code, None, list(range(rank))[::-1])


def _is_deep(shape):
    """Has a shape more dimensions than bh's arrays? Then the array is one of NumPy."""
    return type(shape) in (tuple, list) and len(shape) > MOST_DIMENSIONS


def empty(shape, dtype=None, order="C", *, device=None, like=None):
    """An array with undefined elements."""
    check_device(device)
    code = _code(dtype)
    return np.empty(shape, dtype, order) if code is None or _is_deep(shape) else called(_made(shape, code, order), dtype)


def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    """An array with all elements equal."""
    check_device(device)
    value = fill_value
    if dtype is None:
        value = np.asarray(value) if fallback.decided((value,)) else value
        dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    code = code_of(dtype)
    # The class of a value that has functions of its own copies it.
    if code is None or _is_deep(shape) or fallback.decided((value,)):
        return np.full(shape, fallback.lower(value), dtype, order)
    if order in ("C", "c", None) and type(value) is not ndarray and isinstance(value, (int, float, complex, np.generic)):
        return called(_native.full(shape, code, np.full((), value, dtype).item()), dtype)
    return called(_filled(_made(shape, code, order), value), dtype)


def _filled(array, value):
    """The array with a value in all elements, converted without checks, as NumPy does here."""
    if type(value) is int and value in (0, 1):
        _native.assign(array, value == 1)
        return array
    value = astype(value, array.dtype) if type(value) is ndarray else native(np.full(np.shape(value), value, array.dtype))
    _native.assign(array, _indexing.fitted(value, array.shape))
    return array


def zeros(shape, dtype=None, order="C", *, device=None, like=None):
    """An array of zeros."""
    code = None if _is_deep(shape) else _code(dtype)
    if order == "C" and device is None and code is not None:
        return called(_native.full(shape, code, False), dtype)
    return np.zeros(shape, dtype, order) if code is None else full(shape, 0, float if dtype is None else dtype, order, device=device)


def ones(shape, dtype=None, order="C", *, device=None, like=None):
    """An array of ones."""
    code = None if _is_deep(shape) else _code(dtype)
    if order == "C" and device is None and code is not None:
        return called(_native.full(shape, code, True), dtype)
    return np.ones(shape, dtype, order) if code is None else full(shape, 1, float if dtype is None else dtype, order, device=device)


def empty_like(prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """An array like another one, with undefined elements."""
    check_device(device)
    if subok and decides(prototype):
        return np.empty_like(prototype, dtype, order, subok, shape)
    prototype = asarray(prototype)
    if type(prototype) is not ndarray:
        return fallback.from_numpy(np.empty_like(prototype, dtype, order, subok, shape))
    code = prototype._code if dtype is None else code_of(dtype)
    shape = prototype.shape if shape is None else (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if code is None or len(shape) > MOST_DIMENSIONS:
        return np.empty(shape, prototype.dtype if dtype is None else dtype)
    strides = prototype._stride if len(shape) == prototype.ndim else (0,) * len(shape)
    letter = order_of(order)
    if letter == "A":
        letter = "F" if prototype.T._contiguous and not prototype._contiguous else "C"
    axes = axes_in_memory(letter, prototype.shape if len(shape) == prototype.ndim else shape, strides)
    return _native.empty(shape, code, None, axes)


def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """An array of zeros like another one."""
    result = full_like(a, 0, dtype, order, subok, shape, device=device)
    # Zeros of the types that bh lacks are not all what 0 is converted to.
    return result if type(result) is ndarray else np.zeros_like(fallback.lower(a), dtype, order, subok, shape)


def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """An array of ones like another one."""
    return full_like(a, 1, dtype, order, subok, shape, device=device)


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """An array like another one, with all elements equal."""
    result = empty_like(a, dtype, order, subok, shape, device=device)
    if type(result) is ndarray:
        return _filled(result, fill_value)
    np.copyto(result, fallback.lower(fill_value), casting="unsafe")
    return result


def arange(first=None, /, stop=None, step=1, dtype=None, *, start=None, device=None, like=None):
    """Evenly spaced numbers: start, start + step, … before stop."""
    check_device(device)
    if stop is None and first is None:
        raise TypeError("arange() requires stop to be specified.")
    start = first if start is None else start
    if dtype is None and type(start) is type(step) is int and (stop is None or type(stop) is int) and step:
        first, end = (0, start) if stop is None else (start, stop)
        if all(-(2**63) <= value < 2**63 for value in (first, end, step)):
            return _native.arange((max(0, -((first - end) // step)),), INT64, first, step)
    start, stop, step = (fallback.lower(value) for value in (0 if start is None else start, stop, step))
    two = stop is not None or step != 1
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    values = [getattr(value, "item", lambda value=value: value)() for value in (start, stop, step)]
    if any(isinstance(value, (np.datetime64, np.timedelta64, str)) for value in (start, stop, step)):
        return np.arange(start, stop, step, dtype)
    if any(np.asarray(value).dtype.kind in "mM" for value in (start, stop, step)):
        return np.arange(start, stop, step, dtype)
    kind = np.result_type(*(np.asarray(v).dtype if not isinstance(v, np.generic) else v.dtype for v in (start, stop, step)))
    code = code_of(kind if dtype is None else dtype)
    numbers = all(isinstance(value, (int, float)) for value in values)
    if code is None or code in (BOOL, *range(COMPLEX64, len(CODE))) or not numbers or values[2] == 0:
        # Types without a zero, such as dates, need to know whether a stop was given.
        given = (start, stop, step) if two else (stop,)
        return fallback.lift(np.arange(*given, dtype=dtype))
    start, stop, step = values
    if all(isinstance(value, int) for value in values):
        count = max(0, -((start - stop) // step))
        if -(2**63) <= start < 2**63 and -(2**63) <= step < 2**63:
            return _native.arange((count,), code, start, step)
        return fallback.lift(np.arange(start, stop, step, dtype))
    if not all(map(math.isfinite, (start, stop, step))):
        return fallback.lift(np.arange(start, stop, step, dtype))
    quotient = (stop - start) / step
    # A quotient that underflows gives one element, as in NumPy.
    count = math.ceil(quotient) if quotient or stop == start else int(math.copysign(1, quotient) > 0)
    if not -1 < count < 2**62 or code < code_of(np.float32):
        return fallback.lift(np.arange(start, stop, step, dtype))
    # NumPy takes the step between the first two elements, which are exact.
    kind = CODE_TYPES[code].type
    first, second = kind(start), kind(start + step)
    result = _native.arange((count,), code, 0, 1)
    if second - first != 1:
        result *= float(second - first)
    if first != 0 or second < 0:
        result += float(first)
    if count > 1 and first + (second - first) != second:
        result[1] = second
    return result


CODE_TYPES = list(CODE)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """`num` evenly spaced numbers from start to stop."""
    check_device(device)
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if decides(start) or decides(stop):
        # The results are of the class of these.
        return np.linspace(fallback.lower(start), fallback.lower(stop), num, endpoint, retstep, dtype, axis)
    parts = num - 1 if endpoint else num
    # Numbers of Python take the type of what they meet.
    kinds = [value if type(value) in (int, float, complex) else None for value in (start, stop)]
    start, stop = (value if type(value) is ndarray else np.asarray(fallback.lower(value)) for value in (start, stop))
    if _is_unlimited(start, stop):
        # NumPy warns of what it meets.
        given = (fallback.lower(value) if kind is None else kind for value, kind in zip((start, stop), kinds))
        return fallback.lift(np.linspace(*given, num, endpoint, retstep, dtype, axis))
    kind = np.result_type(*(value.dtype if kind is None else kind for value, kind in zip((start, stop), kinds)), 1.0)
    if start.ndim == 0 and stop.ndim == 0 and kind == float:
        first, last = (float(value) for value in (start, stop))
        result = _native.linspace(num, first, last, bool(endpoint))
        step = (last - first) / parts if parts > 0 else math.nan
    else:
        start, stop = astype(native(start), kind), astype(native(stop), kind)
        shape = np.broadcast_shapes(start.shape, stop.shape)
        numbers = _native.reshape(_native.arange((num,), code_of(kind.type(0).real.dtype), 0, 1), (num,) + (1,) * len(shape))
        result, step = _spaced(numbers, start, stop - start, parts, num, endpoint, stop)
    if axis != 0:
        result = moveaxis(result, 0, axis)
    if dtype is not None:
        result = _whole(result, np.dtype(dtype)) if np.dtype(dtype).kind in "iu" else astype(result, dtype)
    elif result.dtype != kind:
        result = astype(result, kind)
    # Without a distance, NumPy's is a float of Python.
    return (result, np.float64(step) if type(step) is float and parts > 0 else step) if retstep else result


def _is_unlimited(start, stop):
    """Is there an infinite distance, or one that is no number, between known limits?"""
    if not all(type(value) is not ndarray or _native.is_little(value) and _native.is_at_hand(value) for value in (start, stop)):
        return False
    start, stop = (np.asarray(fallback.lower(value)) for value in (start, stop))
    with np.errstate(all="ignore"):
        return {start.dtype.kind, stop.dtype.kind} <= {*"biufc"} and not np.isfinite(stop - start * 1.0).all()


def _whole(numbers, dtype):
    """Numbers rounded down, as integers; unsigned ones wrap, as NumPy's do on most processors."""
    numbers = UFUNCS["floor"](numbers)
    if dtype.kind == "i":
        return astype(numbers, dtype)
    wrapped = astype(astype(numbers, np.int64), dtype)
    if dtype.itemsize < 8:
        return wrapped
    return _native.operate("where", [numbers < 0, wrapped, astype(numbers, dtype)])


def _spaced(numbers, first, span, parts, num, endpoint, last):
    """Numbers between arrays, and their distances."""
    if parts > 0:
        step = span / parts
        result = (numbers / parts) * span if (step == 0).any() else numbers * step
    else:
        step = math.nan
        result = numbers * span
    result = result + first
    if endpoint and num > 1:
        result[-1, ...] = last
    return result, step


def eye(N, M=None, k=0, dtype=float, order="C", *, device=None, like=None):
    """Ones on a diagonal, zeros elsewhere."""
    N, k = operator.index(N), operator.index(k)
    M = N if M is None else operator.index(M)
    result = zeros((N, M), dtype, order, device=device)
    if type(result) is not ndarray:
        return np.eye(N, M, k, dtype, order)
    if -N < k < M:
        _native.diagonal(result, k, 0, 1)[...] = 1
    return result


def identity(n, dtype=None, *, like=None):
    """The identity matrix."""
    return eye(n, dtype=float if dtype is None else dtype)


def tri(N, M=None, k=0, dtype=float, *, like=None):
    """Ones at and below a diagonal."""
    M = N if M is None else M
    rows = _native.reshape(_native.arange((N,), INT64, 0, 1), (N, 1))
    return (rows >= _native.arange((M,), INT64, -k, 1)).astype(dtype)


def fromfunction(function, shape, *, dtype=float, like=None, **kwargs):
    """A function of the indices."""
    return function(*indices(shape, dtype=dtype), **kwargs)


# Indices up to this number are NumPy's, as recording them costs more.
_FEW = 1 << 10


def indices(dimensions, dtype=int, sparse=False):
    """The indices of a grid, one array for each dimension."""
    dimensions = tuple(dimensions)
    if code_of(dtype) is None:
        return fallback.call(np.indices, (dimensions, dtype, sparse), {})
    rank = len(dimensions)
    if rank * math.prod(dimensions) <= _FEW and not sparse:
        return fallback.lift(np.indices(dimensions, dtype))
    parts = []
    for axis, extent in enumerate(dimensions):
        numbers = arange(extent, dtype=dtype)
        parts.append(_native.reshape(numbers, (1,) * axis + (extent,) + (1,) * (rank - axis - 1)))
    if sparse:
        return tuple(parts)
    result = empty((rank, *dimensions), dtype)
    for axis, part in enumerate(parts):
        result[axis] = part
    return result


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Coordinate matrices from coordinate vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(xi)
    parts = [_native.reshape(native(x), (1,) * axis + (-1,) + (1,) * (rank - axis - 1)) for axis, x in enumerate(xi)]
    if indexing == "xy" and rank > 1:
        parts = [swapaxes(part, 0, 1) for part in parts]
    if not sparse:
        parts = broadcast_arrays(*parts)
    return tuple(_native.cast(part, part._code) for part in parts) if copy else parts


def frombuffer(buffer, dtype=float, count=-1, offset=0, *, like=None):
    """The elements in a buffer. Memory that others may write to stays theirs: an array of NumPy shows it."""
    made = np.frombuffer(buffer, dtype, count, offset)
    if made.flags.writeable:
        return made
    result = fallback.from_numpy(made)
    if type(result) is ndarray:
        # As a view of what is read-only, nobody can make it writeable.
        result._writeable = False
        result = result[...]
    return result


# The device types of DLPack.
_CPU, _CUDA = 1, 2


def _of_device(x):
    """An array over memory of the device that the stack computes on, without a copy."""
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:
        # Libraries before DLPack's version 1.
        capsule = x.__dlpack__()
    memory, start, shape, steps, is_read_only = _native.adopt_device(capsule)
    result = _native.window(memory, start, shape, steps)
    result._writeable = not is_read_only
    return result


def from_dlpack(x, /, *, device=None, copy=None):
    """An array with the elements of another library's array: on the CUDA device of the stack without a copy."""
    check_device(device)
    if type(x) is ndarray:
        return asarray(x, copy=copy)
    kind, number = x.__dlpack_device__() if hasattr(x, "__dlpack_device__") else (_CPU, 0)
    if kind == _CUDA and device_of(_native.Stack().name) == number and 0 not in getattr(x, "shape", (0,)):
        result = _of_device(x)
        return asarray(result, copy=True) if copy else result
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    made = np.from_dlpack(x, device="cpu") if kind == _CUDA else np.from_dlpack(x)
    result = fallback.from_numpy(made)
    if type(result) is ndarray:
        result._writeable = made.flags.writeable
    return result

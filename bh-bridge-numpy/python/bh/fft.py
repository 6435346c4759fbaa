"""Discrete Fourier transforms, as in `numpy.fft`, by the stack's transform of complex numbers along the last axis."""

import operator
from math import isqrt, pi

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from . import _native
from ._array.conversion import astype, native, warn
from ._array.element_types import is_complex
from ._cluster import ranks as _ranks
from ._functions.arrangement import flip, roll
from ._functions.complex_parts import part_of
from ._functions.creation import arange
from ._functions.joining import concatenate
from ._functions.manipulation import moveaxis
from ._numpy import inner_parts, namespace
from ._numpy.fallback import Fallback, falls_back
from ._numpy.native_calls import served
from ._numpy.registry import FFT
from ._ufunc.ufunc import UFUNCS as _u

_o = np.fft
_NORMS = (None, "backward", "ortho", "forward")


def _native_fft(function):
    return falls_back(function, getattr(_o, function.__name__))


def _complex(a):
    a = native(a)
    single = a.dtype in (np.float32, np.complex64)
    return astype(a, np.complex64 if single else np.complex128)


def _sized(a, n, axis):
    """The array cut or filled with zeros to `n` elements along an axis."""
    extent = a.shape[axis]
    if n is None or n == extent:
        return a
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    at = lambda end: (slice(None),) * axis + (slice(0, end),)
    if n < extent:
        return a[at(n)]
    result = _native.full(a.shape[:axis] + (n,) + a.shape[axis + 1 :], a._code, 0)
    result[at(extent)] = a
    return result


def _last(a, axis):
    """The array with an axis in the last place."""
    return a if axis == a.ndim - 1 else moveaxis(a, axis, -1)


def _back(a, axis):
    """The array with its last axis at another place."""
    return a if axis == a.ndim - 1 else moveaxis(a, -1, axis)


# Shorter lines are one rank's work.
_SHARED_BYTES = 1 << 20
_LEAST_ROWS = 16


def _shared_rows(a, size, axis):
    """The rows of the matrix as which several ranks transform a line of this size; 0 for lines that are one rank's work."""
    if _ranks.ranks() == 1 or a.size != a.shape[axis] or size * (8 if a.dtype in (np.float32, np.complex64) else 16) < _SHARED_BYTES:
        return 0
    rows = next(number for number in range(isqrt(size), 0, -1) if not size % number)
    return rows if rows >= _LEAST_ROWS else 0


def _by_ranks(line, method, rows):
    """The transform of a line that several ranks have, as one of a matrix: along its columns, a factor for each element, along its
    rows (Gentleman and Sande 1966)."""
    size = line.shape[-1]

    def lines(matrix):
        made = _native.empty(matrix.shape, line._code, _native.Stack(line._stack))
        _native.extension(method, [made], [matrix])
        return made

    turned = lines(_native.transpose(_native.reshape(line, (rows, size // rows)), (1, 0)))
    # Products of whole numbers below the size are exact.
    angles = arange(size // rows)[:, None] * arange(rows) * ((-2 if method == "fft" else 2) * pi / size)
    made = lines(_native.transpose(turned * astype(_u["exp"](angles * 1j), line.dtype), (1, 0)))
    return _native.reshape(_native.transpose(made, (1, 0)), line.shape)


def _by_lines(method, a, axis, size, norm):
    """A method's transform along an axis, of lines cut or filled to this size."""
    result = _native.transform(a, method, size, axis, norm)
    if result is None:
        stack = _native.Stack(a._stack)
        if stack.is_reproducible():
            # The recorder says so if it rules the method out.
            _native.extension(method, [_native.empty(a.shape, a._code, stack)], [a])
            raise _native.Error(f"no component of the stack has the method '{method}'")
        raise Fallback("no component of the stack transforms")
    return result


def _scaled(result, size, norm, forward):
    """The ranks' transform, with the factor of the norm; their inverse has the factor 1/n."""
    if norm in (None, "backward"):
        return result
    if forward:
        return result * (size**-0.5 if norm == "ortho" else 1 / size)
    return result * (size**0.5 if norm == "ortho" else float(size))


def _check_norm(norm, forward=True):
    if norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward",{"" if forward else " "}"ortho" or "forward".')


def _lines(a, n, axis, norm, forward=True, usual=lambda extent: extent):
    """The array, the size of its lines along an axis, or that asked for, and the axis. Errors come in NumPy's order."""
    a = native(a)
    size = usual(a.shape[axis]) if n is None else n
    if size < 1:
        raise ValueError(f"Invalid number of FFT data points ({size}) specified.")
    _check_norm(norm, forward)
    axis = normalize_axis_index(operator.index(axis), a.ndim)
    return a, int(size) if isinstance(size, bool) else size, axis


def _transform(a, n, axis, norm, forward):
    """The transform along an axis, with the order in memory of the operand."""
    a, size, axis = _lines(a, n, axis, norm, forward)
    if isinstance(n, (bool, np.bool_)):
        raise TypeError("an integer is required")
    method = "fft" if forward else "ifft"
    rows = _shared_rows(a, size, axis)
    if not rows:
        return _by_lines(method, a, axis, size, norm)
    line = _last(_sized(_complex(a), size, axis), axis)
    return _scaled(_back(_by_ranks(line, method, rows), axis), size, norm, forward)


def _stored(result, out):
    if out is None:
        return result
    if type(out) is not _native.ndarray and not isinstance(out, np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if out.shape != result.shape:
        raise ValueError("output array has wrong shape.")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise np._core._exceptions._UFuncOutputCastingError(_o._pocketfft_umath.fft, "same_kind", result.dtype, out.dtype, 0)
    out[...] = result
    return out


@_native_fft
def fft(a, n=None, axis=-1, norm=None, out=None):
    """The transform along an axis."""
    return _stored(_transform(a, n, axis, norm, True), out)


@_native_fft
def ifft(a, n=None, axis=-1, norm=None, out=None):
    """The inverse transform along an axis."""
    return _stored(_transform(a, n, axis, norm, False), out)


@_native_fft
def rfft(a, n=None, axis=-1, norm=None, out=None):
    """The transform of real numbers: its first half, which determines the other."""
    a, size, axis = _lines(a, n, axis, norm)
    if is_complex(a._code):
        raise TypeError("ufunc 'rfft_n_even' did not contain a loop with signature matching types")
    if _shared_rows(a, size, axis):
        result = _transform(a, size, axis, norm, True)
        half = result[(slice(None),) * axis + (slice(0, size // 2 + 1),)]
        return _stored(_native.cast_in_order(half, half._code), out)
    return _stored(_by_lines("rfft", a, axis, size, norm), out)


@_native_fft
def irfft(a, n=None, axis=-1, norm=None, out=None):
    """The real numbers of which this is the first half of the transform."""
    a, n, axis = _lines(a, n, axis, norm, False, lambda extent: 2 * (extent - 1))
    if _shared_rows(a, n // 2 + 1, axis):
        return _stored(_real_by_ranks(_sized(_complex(a), n // 2 + 1, axis), n, axis, norm), out)
    return _stored(_by_lines("irfft", a, axis, n, norm), out)


def _real_by_ranks(a, n, axis, norm):
    """`irfft` of a line that several ranks have, as a transform of complex numbers."""
    at = lambda *bounds: (slice(None),) * axis + (slice(*bounds),)
    # The first element, and for even n the last one, are taken as real.
    first = astype(part_of(a[at(0, 1)], "real"), a.dtype)
    middle = a[at(1, (n + 1) // 2)]
    parts = [first, middle]
    if n % 2 == 0:
        parts.append(astype(part_of(a[at(n // 2, n // 2 + 1)], "real"), a.dtype))
    parts.append(_u["conjugate"](flip(middle, axis)))
    result = _transform(concatenate(parts, axis), None, axis, norm, False)
    order = _native.memory_order([result]) or list(range(result.ndim))
    return _native.turned_back(part_of(_native.transpose(result, order), "real"), order)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


@_native_fft
def hfft(a, n=None, axis=-1, norm=None, out=None):
    """The transform of a signal with Hermitian symmetry, which is real."""
    a = _complex(a)
    n = (a.shape[axis] - 1) * 2 if n is None else n
    _check_norm(norm, False)
    return irfft(_u["conjugate"](a), n, axis, norm=_SWAPPED[norm], out=out)


@_native_fft
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    """The inverse of `hfft`."""
    a = native(a)
    n = a.shape[axis] if n is None else n
    _check_norm(norm, False)
    return _stored(_u["conjugate"](rfft(a, n, axis, norm=_SWAPPED[norm])), out)


_NO_AXES = (
    "`axes` should not be `None` if `s` is not `None` (Deprecated in NumPy 2.0). In a future version of NumPy, this will raise an error and `s[i]` will "
    "correspond to the size along the transformed axis specified by `axes[i]`. To retain current behaviour, pass a sequence [0, ..., k-1] to `axes` for "
    "an array of dimension k."
)
_NO_SIZE = (
    "Passing an array containing `None` values to `s` is deprecated in NumPy 2.0 and will raise an error in a future version of NumPy. To use the default "
    "behaviour of the corresponding 1-D transform, pass the value matching the default for its `n` parameter. To use the default behaviour for every axis, "
    "the `s` argument can be omitted."
)


def _axes(a, s, axes):
    """The array, the sizes of its lines, and their axes. NumPy looks the extents up, as its errors depend on the kind of the axes."""
    a, given = native(a), s is not None
    s = list(s) if given else list(a.shape) if axes is None else np.take(a.shape, axes).tolist()
    if axes is None:
        if given:
            warn(_NO_AXES, DeprecationWarning)
        axes = range(-len(s), 0)
    if type(s) is int:
        raise TypeError("'numpy.int64' object is not iterable")
    if len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if any(extent is None for extent in s):
        warn(_NO_SIZE, DeprecationWarning)
    return a, [a.shape[axis] if extent == -1 else extent for extent, axis in zip(s, axes)], tuple(axes)


def _several(a, s, axes, norm, out, transform):
    a, s, axes = _axes(a, s, axes)
    for extent, axis in zip(reversed(s), reversed(axes)):
        a = transform(a, extent, axis, norm)
    return _stored(a, out)


@_native_fft
def fftn(a, s=None, axes=None, norm=None, out=None):
    """The transform along several axes."""
    return _several(a, s, axes, norm, out, fft)


@_native_fft
def ifftn(a, s=None, axes=None, norm=None, out=None):
    """The inverse transform along several axes."""
    return _several(a, s, axes, norm, out, ifft)


@_native_fft
def fft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """The transform along two axes."""
    return _several(a, s, axes, norm, out, fft)


@_native_fft
def ifft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """The inverse transform along two axes."""
    return _several(a, s, axes, norm, out, ifft)


@_native_fft
def rfftn(a, s=None, axes=None, norm=None, out=None):
    """The transform of real numbers along several axes."""
    a, s, axes = _axes(a, s, axes)
    a = rfft(a, s[-1], axes[-1], norm)
    # From the last on, which matters where an axis comes twice.
    for extent, axis in zip(s[-2::-1], axes[-2::-1]):
        a = fft(a, extent, axis, norm)
    return _stored(a, out)


@_native_fft
def irfftn(a, s=None, axes=None, norm=None, out=None):
    """The inverse of `rfftn`."""
    given = s is not None
    a, s, axes = _axes(a, s, axes)
    if not given:
        s[-1] = 2 * (a.shape[axes[-1]] - 1)
    for extent, axis in zip(s[:-1], axes[:-1]):
        a = ifft(a, extent, axis, norm)
    return _stored(irfft(a, s[-1], axes[-1], norm), out)


@_native_fft
def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """The transform of real numbers along two axes."""
    return rfftn(a, s, axes, norm, out)


@_native_fft
def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """The inverse of `rfft2`."""
    return irfftn(a, s, axes, norm, out)


def fftfreq(n, d=1.0, device=None):
    """The frequencies of a transform's elements."""
    _frequencies(n)
    numbers = concatenate([arange((n - 1) // 2 + 1), arange(-(n // 2), 0)])
    return numbers * (1.0 / (n * d))


def rfftfreq(n, d=1.0, device=None):
    """The frequencies of the elements of a transform of real numbers."""
    _frequencies(n)
    return arange(n // 2 + 1) * (1.0 / (n * d))


def _frequencies(n):
    if not isinstance(n, (int, np.integer)):
        raise ValueError("n should be an integer")


@_native_fft
def fftshift(x, axes=None):
    """The frequency zero moved to the middle."""
    return _shifted(x, axes, lambda extent: extent // 2)


@_native_fft
def ifftshift(x, axes=None):
    """The inverse of `fftshift`."""
    return _shifted(x, axes, lambda extent: -(extent // 2))


def _shifted(x, axes, distance):
    x = native(x)
    axes = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return roll(x, [distance(x.shape[axis]) for axis in axes], axes)


for _name, _row in FFT.items():
    _original = getattr(_o, _name)
    namespace.register(_original, globals().setdefault(_name, _original))
    if _row.native:
        globals()[_name] = served(_name, globals()[_name], _row, _original, home="bh.fft")
        namespace.name_publicly(_original, globals()[_name])


def __getattr__(name):
    return inner_parts.part_of(_o, name)

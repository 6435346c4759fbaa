"""Real and imaginary parts of complex numbers, and their angles."""

import numpy as np

from .. import _native
from .._array.conversion import native
from .._array.element_types import BOOL, is_complex
from .._array.layout import axes_in_memory
from .._numpy.fallback import falls_back
from .._ufunc.compositions import complex_of, part_of
from .._ufunc.ufunc import UFUNCS

ndarray = _native.ndarray
_u = UFUNCS


@falls_back
def real(val):
    """The real parts, as a view; of a real array the array itself."""
    if isinstance(val, (int, float, complex, np.generic)) and type(val) is not ndarray:
        return val.real
    array = native(val)
    if not is_complex(array._code):
        return array
    return part_of(array, "real") if array._scalar else _part(array, False)


@falls_back
def imag(val):
    """The imaginary parts, as a view; zeros for a real array."""
    if isinstance(val, (int, float, complex, np.generic)) and type(val) is not ndarray:
        return val.imag
    array = native(val)
    if is_complex(array._code):
        return part_of(array, "imag") if array._scalar else _part(array, True)
    axes = axes_in_memory("A", array.shape, array._stride) or list(range(array.ndim))
    result = _native.full([array.shape[axis] for axis in axes], array._code, False if array._code == BOOL else 0)
    result = _native.turned_back(result, axes)
    result._writeable, result._scalar = False, array._scalar
    return result


def _part(array, imaginary):
    """The real or imaginary parts as a view with the array's order in memory."""
    axes = _native.memory_order([array])
    if axes is None:
        return _native.part(array, imaginary)
    return _native.transpose(_native.part(_native.transpose(array, axes), imaginary), np.argsort(axes).tolist())


def _store(array, values, imaginary):
    """Overwrites the real or imaginary parts of an array."""
    parts = (part_of(array, "real"), values) if imaginary else (values, part_of(array, "imag"))
    _native.assign(array, complex_of(*parts))


_native.set_part_store(_store)


def set_part(array, value, part):
    """Assigns to the real or imaginary parts of an array."""
    if not is_complex(array._code) and part == "imag":
        raise TypeError("array does not have imaginary part to set")
    (real if part == "real" else imag)(array)[...] = value


@falls_back
def angle(z, deg=False):
    """The angles of complex numbers."""
    z = native(z)
    if is_complex(z._code):
        result = _u["arctan2"](part_of(z, "imag"), part_of(z, "real"))
    else:
        result = _u["arctan2"](0, z)
    return result * (180 / np.pi) if deg else result

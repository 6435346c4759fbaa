"""Real and imaginary parts of complex numbers, and their angles."""

import numpy as np

from . import _native
from ._convert import astype, native
from ._fallback import falls_back
from ._types import BOOL, CODE, is_complex
from ._ufunc import UFUNCS

ndarray = _native.ndarray
_u = UFUNCS


def part_of(array, part):
    """A part of complex numbers, real or imag, as a new array."""
    return _native.operate(part, [array])


@falls_back
def real(val):
    """The real parts, as a view; of a real array the array itself."""
    if isinstance(val, (int, float, complex, np.generic)) and type(val) is not ndarray:
        return val.real
    array = native(val)
    if not is_complex(array._code):
        return array
    return part_of(array, "real") if array._scalar else _native.part(array, False)


@falls_back
def imag(val):
    """The imaginary parts, as a view; zeros for a real array."""
    if isinstance(val, (int, float, complex, np.generic)) and type(val) is not ndarray:
        return val.imag
    array = native(val)
    if is_complex(array._code):
        return part_of(array, "imag") if array._scalar else _native.part(array, True)
    result = _native.full(array.shape, array._code, False if array._code == BOOL else 0)
    result._writeable = False
    return result


def complex_of(re, im):
    """The complex numbers with exactly these parts, also where they are infinite, NaN, or zeros with a sign."""
    kind = np.result_type(re.dtype, np.complex64)
    where = lambda mask, a, b: _native.operate("where", [mask, a, b])
    constant = lambda value: _native.full((), CODE[kind], value)
    # Products of negative numbers with 1j have a real part of -0, which adds nothing to any number.
    below = _native.operate("multiply", [astype(_u["negative"](_u["absolute"](im)), kind), 1j])
    positive = im >= 0
    added = where(positive, _u["conjugate"](below), below)
    infinite = where(positive, constant(complex(-0.0, np.inf)), where(im < 0, constant(complex(-0.0, -np.inf)), constant(complex(-0.0, np.nan))))
    added = where(_u["isfinite"](im), added, infinite)
    # The conjugate of a real number has -0 as imaginary part, to which +0 is no sum.
    start = astype(re, kind)
    start = where(_u["divide"](1.0, im) < 0, _u["conjugate"](start), start)
    return _native.operate("add", [start, added])


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

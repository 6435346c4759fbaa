"""Arrays with borders: `pad`, natively for most modes and widths."""

import functools

import numpy as np

from .. import _native
from .._array.conversion import native
from .._numpy import fallback
from .._numpy.fallback import falls_back
from .._numpy.provided import equivalent, public
from . import numpy_code


@falls_back
def pad(array, pad_width, mode="constant", **kwargs):
    """The array with borders of constants, or of its own elements."""
    source, widths, numbers = native(array), _listed(pad_width, "i"), None
    is_known = widths is not None and not kwargs.keys() - {"constant_values"}
    if is_known and kwargs:
        numbers = _listed(kwargs["constant_values"], "biufc")
        is_known = numbers is not None
    padded = _native.padded(source, widths, mode, numbers) if is_known else None
    return _numpys_pad()(array, pad_width, mode, **kwargs) if padded is None else padded


@functools.cache
def _numpys_pad():
    """NumPy's code over functions of this package, for other modes and widths."""
    return numpy_code.adapt(np.pad, public, equivalent)


def _listed(numbers, kinds):
    """Numbers of these kinds, or lists of them, as Python's; None for what NumPy's code has to look at."""
    try:
        numbers = np.asarray(fallback.lower(numbers))
    except (TypeError, ValueError):
        return None
    return numbers.tolist() if numbers.dtype.kind in kinds else None

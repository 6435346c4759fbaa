"""Arrays as text: NumPy's functions, which see of a large array the corners that they show."""

import functools
import itertools
import math

import numpy as np

from .. import _native
from .._numpy.fallback import to_numpy

ndarray = _native.ndarray


class _Corners(np.ndarray):
    """The corners of an array that claims the extents of the whole one. NumPy's text functions index it from both ends."""

    shape = property(lambda self: self._extents)
    size = property(lambda self: math.prod(self._extents))


# The text of an array begins with the name of its class.
_Corners.__name__ = "array"


def shown(array, threshold=None, edgeitems=None):
    """An array of NumPy's that is shown as this one: of a large one only the corners are read, as only they are shown."""
    options = np.get_printoptions()
    edge = options["edgeitems"] if edgeitems is None else edgeitems
    whole = options["threshold"] if threshold is None else threshold
    if array.size <= whole or not array.ndim or edge < 1 or options["legacy"] or options.get("override_repr"):
        return to_numpy(array)
    # NumPy takes the first and the last ones of any axis of more than twice as many.
    corners = np.empty([min(extent, 2 * edge + 1) for extent in array.shape], array.dtype)
    sides = [(slice(0, edge), slice(-edge, None)) if extent > 2 * edge else (slice(None),) for extent in array.shape]
    for corner in itertools.product(*sides):
        corners[corner] = to_numpy(array[corner])
    for axis, extent in enumerate(array.shape):
        if extent > 2 * edge:
            # Elements between the corners are never shown; any ordinary value does for them.
            between = (slice(None),) * axis
            corners[(*between, edge)] = corners[(*between, 0)]
    corners = corners.view(_Corners)
    corners._extents = array.shape
    return corners


def of_text(function):
    """A function that makes a text of an array, given the corners of a large one."""

    @functools.wraps(function)
    def wrapper(a, *args, **kwargs):
        if type(a) is ndarray and a.ndim and not kwargs.get("legacy"):
            a = shown(a, kwargs.get("threshold"), kwargs.get("edgeitems"))
        return function(a, *args, **kwargs)

    return wrapper

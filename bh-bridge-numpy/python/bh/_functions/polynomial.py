"""`numpy.polynomial`, whose functions of values run NumPy's code on bh's arrays."""

import functools
import types

from .._numpy import fallback, namespace
from . import numpy_code

# The endings of the names of functions whose code in NumPy checks for NumPy's array.
_ENDINGS = ("val", "val2d", "val3d", "valfromroots", "grid2d", "grid3d")


@functools.cache
def of(module):
    """A module of the package with its functions adapted."""
    made = types.ModuleType(module.__name__, module.__doc__)
    made.__dict__.update(vars(module))
    for name, value in vars(module).items():
        if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy.polynomial."):
            setattr(made, name, of(value))
        elif isinstance(value, types.FunctionType) and name.endswith(_ENDINGS):
            adapted = numpy_code.adapt(value, namespace.public, namespace.equivalent)
            setattr(made, name, fallback.falls_back(adapted, value))
    return made

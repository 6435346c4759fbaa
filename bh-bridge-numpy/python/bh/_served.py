"""Functions and methods whose common calls are served natively."""

import functools

from . import _native
from ._ufunc import UFUNCS

# What functions fold with.
FOLDS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and"}


def served(name, function, method=False):
    """The function, or the method, with the native one before it."""
    return functools.update_wrapper(_native.Function(name, function, UFUNCS.get(FOLDS.get(name)), method), function)


def named(name):
    """The function of the package of this name, for pickles."""
    import bh

    return getattr(bh, name)

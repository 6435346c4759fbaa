"""`numpy.lib` and its modules, with bh's functions in the place of those that it has."""

import types

import numpy as np

from . import namespace


class module(types.ModuleType):
    """A module of NumPy's whose functions are bh's where there are such."""

    def __init__(self, original):
        super().__init__(original.__name__.replace("numpy", "bh", 1), original.__doc__)
        self._original = original

    def __getattr__(self, name):
        value = getattr(self._original, name)
        if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy.lib"):
            value = module(value)
        elif not name.startswith("_") and callable(value):
            value = namespace.equivalent(value) or self._for_arrays(value)
        setattr(self, name, value)
        return value

    def _for_arrays(self, function):
        """A function that bh lacks; those that ask whether they have arrays, or sequences of them, get NumPy's."""
        if self._original.__name__ == "numpy.lib.recfunctions" and not isinstance(function, type):
            return namespace.falling_back(function)
        return function

    def __dir__(self):
        return dir(self._original)


lib = module(np.lib)


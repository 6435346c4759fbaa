"""`numpy.broadcast` of arrays, whose common shape is known before their elements are."""

import inspect
import math

import numpy as np

from .. import _native
from .._array.conversion import lower_nested
from .._numpy import fallback

ndarray = _native.ndarray


class _Part:
    """One operand, as an iterator over its elements at the places of the common shape."""

    def __init__(self, base, shape):
        self.base, self._shape, self._elements = base, shape, None

    def __iter__(self):
        return self

    def __next__(self):
        if self._elements is None:
            self._elements = np.broadcast_to(fallback.lower(self.base), self._shape).flat
        return next(self._elements)


class broadcast:
    """Operands broadcast against each other: their common shape, and their elements in turn."""

    # Names are refused as an error of values, as by NumPy, which tells of none.
    __signature__ = inspect.Signature([inspect.Parameter("arrays", inspect.Parameter.VAR_POSITIONAL)])

    def __new__(cls, *args, **keywords):
        if keywords:
            raise ValueError("broadcast() takes no keyword arguments")
        operands = []
        for one in args:
            operands += [part.base for part in one.iters] if isinstance(one, (broadcast, np.broadcast)) else [one]
        if not any(type(one) is ndarray for one in operands):
            return np.broadcast(*args)
        if len(operands) > 64:
            raise ValueError("Need at least 0 and at most 64 array objects.")
        made = super().__new__(cls)
        made._operands = [one if isinstance(one, (ndarray, np.ndarray)) else np.asarray(lower_nested(one)) for one in operands]
        made.shape = np.broadcast_shapes(*(one.shape for one in made._operands))
        made.reset()
        return made

    ndim = nd = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    numiter = property(lambda self: len(self._operands))

    def reset(self, /):
        """Begins again."""
        self.iters, self.index = tuple(_Part(one, self.shape) for one in self._operands), 0

    def __iter__(self):
        return self

    def __next__(self):
        found = tuple([next(part) for part in self.iters])
        self.index += 1
        return found

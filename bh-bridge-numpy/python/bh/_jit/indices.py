"""Indices of loops: sums of multiples of the loops' counters, with which subscripts become views."""

import numpy as np

from .. import _native


class Index:
    """An index of a loop: a sum of multiples of the loop's counters and a number."""

    __hash__ = None

    def __init__(self, shape, factors, offset):
        self.shape, self.factors, self.offset = shape, factors, offset

    def _with(self, factors, offset):
        return Index(self.shape, tuple(factors), offset)

    def __add__(self, other):
        if isinstance(other, Index):
            return self._with((a + b for a, b in zip(self.factors, other.factors)), self.offset + other.offset)
        return self._with(self.factors, self.offset + other) if isinstance(other, int) else self.values() + other

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if isinstance(other, int):
            return self._with((factor * other for factor in self.factors), self.offset * other)
        return self.values() * (other.values() if isinstance(other, Index) else other)

    __radd__, __rmul__ = __add__, __mul__

    def reach(self):
        """The least and the largest of its values."""
        reach = [factor * (count - 1) for factor, count in zip(self.factors, self.shape)]
        return tuple(self.offset + sum(f(0, r) for r in reach) for f in (min, max))

    def values(self):
        """The index at each step of the loop, as an array."""
        total = _native.full((), 4, self.offset)
        for axis, (factor, extent) in enumerate(zip(self.factors, self.shape)):
            numbers = _native.arange((extent,), 4, 0, factor)
            total = total + _native.reshape(numbers, (extent,) + (1,) * (len(self.shape) - axis - 1))
        return _native.broadcast_to(total, self.shape)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values(), dtype)

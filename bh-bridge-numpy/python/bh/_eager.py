"""The back end `numpy`: everything at once."""

import numpy as np


class NumPy:
    """Everything in NumPy, at once."""

    name = "numpy"

    def empty(self, size, dtype):
        """See `bh.backends.Backend`."""
        return np.empty(size, dtype)

    def view(self, memory, offset, shape, strides):
        """See `bh.backends.Backend`."""
        return np.ndarray(shape, memory.dtype, memory, offset * memory.itemsize, [stride * memory.itemsize for stride in strides])

    def put(self, array, data):
        """See `bh.backends.Backend`."""
        array[...] = data

    def get(self, array):
        """See `bh.backends.Backend`."""
        return array

    def copy(self, out, array):
        """See `bh.backends.Backend`."""
        np.copyto(out, array, casting="unsafe")

    def ufunc(self, name, out, *inputs):
        """See `bh.backends.Backend`."""
        getattr(np, name)(*inputs, out=out)

    def reduce(self, name, out, array, axis):
        """See `bh.backends.Backend`."""
        getattr(np, name).reduce(array, axis=axis, out=out)

    def accumulate(self, name, out, array, axis):
        """See `bh.backends.Backend`."""
        getattr(np, name).accumulate(array, axis=axis, out=out)

    def method(self, name, out, *inputs):
        """See `bh.backends.Backend`."""
        out[...] = np.arange(out.size) if name == "arange" else getattr(np, name)(*inputs)

    def flush(self):
        """See `bh.backends.Backend`."""

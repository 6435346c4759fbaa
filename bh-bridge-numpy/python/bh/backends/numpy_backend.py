"""The back end `numpy`: everything at once."""

import numpy as np

try:
    from .._native import unused
except ImportError:

    def unused(_kept, _wanted):
        """Without the native library, no memory is known to be unused."""
        return None


class NumPy:
    """Everything in NumPy, at once."""

    name = "numpy"
    # The memory of this many arrays is kept to be used again: that costs less than getting it from the system.
    kept = 10

    def __init__(self):
        self._kept = []

    def empty(self, size, dtype):
        """See `bh.backends.Backend`."""
        if dtype.hasobject:
            return np.empty(size, dtype)
        wanted = size * dtype.itemsize
        found = unused(self._kept, wanted)
        if found is None:
            found = np.empty(wanted, np.uint8)
            self._kept = [*self._kept, found][-self.kept :] if self.kept else []
        return found.view(dtype)

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

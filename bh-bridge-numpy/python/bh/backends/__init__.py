"""Back ends: what NumPy's functions of a program are carried out by, behind ten primitives.

`python -m bh --backend NAME script.py` runs a program whose NumPy is built on the back end of this name: `numpy`, `numexpr`, or one
that an installed package offers as an entry point of the group `bh.backends`. Without `--backend`, or with `bh`, it is this package,
which needs no such layer.
"""

import importlib.metadata
from typing import Any, Protocol

import numpy as np

from .numpy_backend import NumPy

GROUP = "bh.backends"


class Backend(Protocol):
    """The primitives. Memory and arrays are of the back end's own kinds; an array is a view of memory.

    Results are written into given arrays, whose type and shape say what is asked for; inputs are arrays that broadcast to it, and
    numbers. An array that is written may be one that is read, but shares no memory with others that are read. Of what raises
    `NotImplementedError` NumPy does the work.
    """

    name: str

    def empty(self, size: int, dtype: np.dtype) -> Any:
        """Memory for this number of elements, whose values are undefined."""

    def view(self, memory: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """An array of elements of this memory, all counted in elements."""

    def put(self, array: Any, data: np.ndarray) -> None:
        """Overwrites an array with data of the host, of the same type and shape."""

    def get(self, array: Any) -> np.ndarray:
        """The elements, on the host, where they are only read."""

    def copy(self, out: Any, array: Any) -> None:
        """Overwrites an array with another one or a number, converted to its type."""

    def ufunc(self, name: str, out: Any, *inputs: Any) -> None:
        """A universal function of NumPy."""

    def reduce(self, name: str, out: Any, array: Any, axis: int) -> None:
        """The fold with a universal function along an axis."""

    def accumulate(self, name: str, out: Any, array: Any, axis: int) -> None:
        """The running fold along an axis."""

    def method(self, name: str, out: Any, *inputs: Any) -> None:
        """A function of whole arrays: `arange`, which has no inputs and numbers its elements, `matmul`, `where`."""

    def flush(self) -> None:
        """Completes all work."""


class Bh:
    """Recorded for the stack of components. Here to be compared: the package itself needs no layer."""

    name = "bh"

    def __init__(self):
        import bh

        self._bh = bh

    def empty(self, size, dtype):
        """See `Backend`."""
        return self._bh.empty(size, dtype)

    def view(self, memory, offset, shape, strides):
        """See `Backend`."""
        if hasattr(self._bh, "_native"):
            return self._bh._native.window(memory, offset, list(shape), list(strides))
        return NumPy().view(memory, offset, shape, strides)

    def put(self, array, data):
        """See `Backend`."""
        array[...] = data

    def get(self, array):
        """See `Backend`."""
        return np.asarray(array)

    def copy(self, out, array):
        """See `Backend`."""
        self._bh.copyto(out, array, casting="unsafe")

    def ufunc(self, name, out, *inputs):
        """See `Backend`."""
        getattr(self._bh, name)(*inputs, out=out)

    def reduce(self, name, out, array, axis):
        """See `Backend`."""
        getattr(self._bh, name).reduce(array, axis=axis, out=out)

    def accumulate(self, name, out, array, axis):
        """See `Backend`."""
        getattr(self._bh, name).accumulate(array, axis=axis, out=out)

    def method(self, name, out, *inputs):
        """See `Backend`."""
        out[...] = self._bh.arange(out.size) if name == "arange" else getattr(self._bh, name)(*inputs)

    def flush(self):
        """See `Backend`."""
        self._bh.flush()


def _numexpr():
    from .numexpr_backend import Numexpr

    return Numexpr()


BACKENDS = {"bh": Bh, "numpy": NumPy, "numexpr": _numexpr}


def names():
    """The names of all back ends: those of this package, and those that installed packages offer."""
    return [*BACKENDS, *(entry.name for entry in importlib.metadata.entry_points(group=GROUP) if entry.name not in BACKENDS)]


def backend(name):
    """A back end by name."""
    if name in BACKENDS:
        return BACKENDS[name]()
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        return entry.load()()
    raise ValueError(f"there is no back end '{name}', only {', '.join(names())}")

"""The interface between NumPy's functions and what carries them out, as a small protocol, with three implementations.

A back end holds arrays of its own kind behind ten primitives. `bh` records on the stack, `numpy` works at once, `numexpr`
leaves arithmetic to the library of this name.
"""

from typing import Any, Protocol

import numpy as np


class Backend(Protocol):
    """The primitives of a back end. Arrays are of its own kind, and results are written into given ones."""

    name: str

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """A new array with undefined elements."""

    def put(self, array: Any, data: np.ndarray) -> None:
        """Overwrites an array with data of the host."""

    def get(self, array: Any) -> np.ndarray:
        """The elements, on the host."""

    def view(self, array: Any, key: Any) -> Any:
        """Another view of the same memory, by a basic key."""

    def ufunc(self, name: str, out: Any, *inputs: Any) -> None:
        """A universal function on arrays and numbers."""

    def reduce(self, name: str, out: Any, array: Any, axis: int) -> None:
        """The fold along an axis."""

    def accumulate(self, name: str, out: Any, array: Any, axis: int) -> None:
        """The running fold along an axis."""

    def range(self, size: int, dtype: np.dtype) -> Any:
        """The numbers 0, 1, … below size."""

    def method(self, name: str, out: Any, *inputs: Any) -> None:
        """A function of whole arrays, such as `matmul`."""

    def flush(self) -> None:
        """Completes all work."""


class NumPy:
    """Everything in NumPy, at once."""

    name = "numpy"

    def empty(self, shape, dtype):
        """See `Backend`."""
        return np.empty(shape, dtype)

    def put(self, array, data):
        """See `Backend`."""
        array[...] = data

    def get(self, array):
        """See `Backend`."""
        return array

    def view(self, array, key):
        """See `Backend`."""
        return array[key]

    def ufunc(self, name, out, *inputs):
        """See `Backend`."""
        getattr(np, name)(*inputs, out=out)

    def reduce(self, name, out, array, axis):
        """See `Backend`."""
        getattr(np, name).reduce(array, axis=axis, out=out)

    def accumulate(self, name, out, array, axis):
        """See `Backend`."""
        getattr(np, name).accumulate(array, axis=axis, out=out)

    def range(self, size, dtype):
        """See `Backend`."""
        return np.arange(size, dtype=dtype)

    def method(self, name, out, *inputs):
        """See `Backend`."""
        out[...] = getattr(np, name)(*inputs)

    def flush(self):
        """See `Backend`."""


class Numexpr(NumPy):
    """NumPy, with arithmetic by numexpr."""

    name = "numexpr"
    _FORMS = {
        "add": "a + b", "subtract": "a - b", "multiply": "a * b", "divide": "a / b", "power": "a ** b", "sqrt": "sqrt(a)",
        "exp": "exp(a)", "log": "log(a)", "sin": "sin(a)", "cos": "cos(a)", "negative": "-a", "absolute": "abs(a)",
    }  # fmt: skip

    def __init__(self):
        import numexpr

        self._evaluate = numexpr.evaluate

    def ufunc(self, name, out, *inputs):
        """See `Backend`."""
        form = self._FORMS.get(name)
        if form is None:
            return super().ufunc(name, out, *inputs)
        self._evaluate(form, dict(zip("ab", inputs)), out=out, casting="same_kind")


class Bh:
    """Recorded for the stack of components."""

    name = "bh"

    def __init__(self):
        import bh

        self._bh = bh

    def empty(self, shape, dtype):
        """See `Backend`."""
        return self._bh.empty(shape, dtype)

    def put(self, array, data):
        """See `Backend`."""
        array[...] = data

    def get(self, array):
        """See `Backend`."""
        return np.asarray(array)

    def view(self, array, key):
        """See `Backend`."""
        return array[key]

    def ufunc(self, name, out, *inputs):
        """See `Backend`."""
        getattr(self._bh, name)(*inputs, out=out)

    def reduce(self, name, out, array, axis):
        """See `Backend`."""
        getattr(self._bh, name).reduce(array, axis=axis, out=out)

    def accumulate(self, name, out, array, axis):
        """See `Backend`."""
        getattr(self._bh, name).accumulate(array, axis=axis, out=out)

    def range(self, size, dtype):
        """See `Backend`."""
        return self._bh.arange(size, dtype=dtype)

    def method(self, name, out, *inputs):
        """See `Backend`."""
        out[...] = getattr(self._bh, name)(*inputs)

    def flush(self):
        """See `Backend`."""
        self._bh.flush()


BACKENDS = {"bh": Bh, "numpy": NumPy, "numexpr": Numexpr}


def backend(name):
    """A back end by name: bh, numpy or numexpr."""
    if name not in BACKENDS:
        raise ValueError(f"there is no back end '{name}', only {', '.join(BACKENDS)}")
    return BACKENDS[name]()

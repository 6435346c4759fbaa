"""The package without its native library: NumPy does everything, and what bh adds does the little that it can."""

import contextlib
import warnings

import numpy as np

from .._graph import graph


class Stack:
    """The one stack that there is: NumPy."""

    def __init__(self, name=None):
        self.name = "numpy"

    def flush(self, wait=True):
        """Nothing is ever pending."""


def stack(arrays="numpy", *args, **kwargs):
    """`numpy.stack`; with the name of a stack of components, a context that changes nothing."""
    return contextlib.nullcontext(Stack()) if isinstance(arrays, str) else np.stack(arrays, *args, **kwargs)


def flush(wait=True):
    """Nothing is ever pending."""


def wait(*arrays):
    """Nothing is ever pending."""


def threads(number=None):
    """Elementwise functions of NumPy use the program's own thread."""
    return 1


def fallback(mode):
    """A context that changes nothing: everything is NumPy's work."""
    return contextlib.nullcontext()


def info():
    """The versions, as text."""
    return f"bh without its native library, NumPy {np.__version__}\n"


def profile():
    """No counters."""
    return {}


def explain(array=None):
    """No kernels."""
    return "no kernels: bh runs without its native library"


def stacks():
    """The one stack that there is: NumPy."""
    return ["numpy"]


def devices():
    """No devices."""
    return {}


def memory_limit():
    """No limit."""


def digits(watch=None):
    """No digits."""
    return "no digits: bh runs without its native library"


def check(*checks):
    """No checks: NumPy's `errstate` has those of operations."""


def eager(on=True):
    """NumPy computes each operation at once."""


def doctor(form="text", watch=False):
    """No findings."""
    return "no findings: bh runs without its native library"


def jit(function=None, *, traced=(), static=()):
    """The function as it is."""
    return function if function is not None else lambda function: function


def live():
    """No page."""
    return "no page: bh runs without its native library"


def parallel(function, shape):
    """The values of a function of indices, called for one after the other."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    results = [function(*index) for index in np.ndindex(*shape)]
    if results and results[0] is None:
        return None
    if results and isinstance(results[0], tuple):
        return tuple(np.array(part).reshape(shape) for part in zip(*results))
    return np.array(results).reshape(shape)


def fold(function, initial, *arrays, axis=None, keepdims=False):
    """All elements along axes combined by a function, one after the other."""
    arrays = np.broadcast_arrays(*arrays)
    axes = range(arrays[0].ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, arrays[0].ndim)
    others = [at for at in range(arrays[0].ndim) if at not in axes]
    shape = [1 if at in axes else extent for at, extent in enumerate(arrays[0].shape)]
    lines = [array.transpose(*others, *axes).reshape(*(array.shape[at] for at in others), -1) for array in arrays]
    state = initial if len(arrays) == 1 else tuple(initial)
    for at in range(lines[0].shape[-1]):
        state = function(state, lines[0][..., at] if len(arrays) == 1 else tuple(line[..., at] for line in lines))
    results = [np.broadcast_to(value, lines[0].shape[:-1]) for value in ((state,) if len(arrays) == 1 else state)]
    results = [result.reshape(shape) for result in results] if keepdims else results
    return results[0] if len(arrays) == 1 else tuple(results)


def stream(function, source, rows=1 << 20):
    """Calls a function on one piece after the other, and yields its results."""
    source = np.load(source, mmap_mode="r") if isinstance(source, str) else source
    pieces = source if not hasattr(source, "shape") else (source[at : at + rows] for at in range(0, source.shape[0], rows))
    for piece in pieces:
        yield function(np.asarray(piece))


class FallbackError(RuntimeError):
    """Never raised: there is no other way than NumPy."""


class FallbackWarning(UserWarning):
    """The native library is missing: NumPy does everything."""


def namespace(reason):
    """The names of the package, after a warning that says why they are NumPy's."""
    warnings.warn(f"bh runs on NumPy, as its native library cannot be loaded: {reason}", FallbackWarning, stacklevel=4)
    mine = {name: value for name, value in globals().items() if getattr(value, "__module__", None) == __name__}
    names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")} | mine
    names.pop("namespace")
    names |= {name: getattr(graph, name) for name in graph.__all__}
    return names | {"Error": RuntimeError, "ufunc": np.ufunc, "__version__": "without native library"}

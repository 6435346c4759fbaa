"""The `numpy` of a program on a back end: NumPy's names, whose functions give the back end's arrays."""

import functools
import types

import numpy as np

from . import backend
from .arrays import Array, Work, fresh, lifted


class Namespace(types.ModuleType):
    """A module of NumPy's whose functions give arrays of a back end."""

    def __init__(self, work, original):
        super().__init__(original.__name__, original.__doc__)
        self.__dict__.update(_work=work, _original=original, __version__=getattr(original, "__version__", None))

    def __getattr__(self, name):
        value = getattr(self._original, name)
        if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy."):
            value = Namespace(self._work, value)
        elif isinstance(value, type) or isinstance(value, np.ufunc) or not callable(value):
            return value
        else:
            value = _lifting(self._work, value)
        setattr(self, name, value)
        return value

    def __dir__(self):
        return dir(self._original)


def _lifting(work, function):
    """A function of NumPy whose arrays become the back end's; so do those of the objects that it gives, such as generators."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        return _Lifting(work, result) if isinstance(result, (np.random.Generator, np.random.RandomState)) else lifted(work, result)

    return call


class _Lifting:
    """An object whose methods' arrays become the back end's."""

    def __init__(self, work, original):
        self._work, self._original = work, original

    def __getattr__(self, name):
        value = getattr(self._original, name)
        return _lifting(self._work, value) if callable(value) else value


def numpy_on(which):
    """The module that a program on this back end, given itself or by its name, gets for `numpy`."""
    work = Work(backend(which) if isinstance(which, str) else which)
    module = Namespace(work, np)

    def made(shape, dtype=float, value=None):
        result = fresh(work, shape, dtype)
        if value is not None:
            result._assign(value)
        return result

    def array(object, dtype=None, copy=True, **others):
        if type(object) is Array and not others:
            return object.astype(object.dtype if dtype is None else dtype, copy=copy is not False and copy is not None)
        return lifted(work, np.array(object, dtype, **others))

    def arange(*args, dtype=None, **others):
        form = np.arange(*args, dtype=dtype, **others) if len(args) != 1 or others or not isinstance(args[0], (int, float)) or args[0] < 0 else None
        if form is not None:
            return lifted(work, form)
        result = fresh(work, (int(np.ceil(args[0])),), np.result_type(args[0]) if dtype is None else dtype)
        if result.size and not work.does("method", "arange", result._operand()):
            result._put(np.arange(result.size))
        return result

    module.__dict__.update(
        ndarray=Array, flush=work.backend.flush, array=array, arange=arange,
        empty=lambda shape, dtype=float, order="C": made(shape, dtype),
        zeros=lambda shape, dtype=float, order="C": made(shape, dtype, 0),
        ones=lambda shape, dtype=float, order="C": made(shape, dtype, 1),
        full=lambda shape, value, dtype=None, order="C": made(shape, np.asarray(value).dtype if dtype is None else dtype, value),
        asarray=lambda object, dtype=None, **others: array(object, dtype, copy=None),
        ascontiguousarray=lambda object, dtype=None: array(object, dtype, copy=None),
    )  # fmt: skip
    return module

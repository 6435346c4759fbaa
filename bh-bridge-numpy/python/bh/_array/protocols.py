"""The protocols of arrays for Python and other libraries: text, pickles, memory, their namespace, and functions of NumPy."""

import sys
import weakref

import numpy as np

from .. import _native
from .._functions import products, search
from .._jit.symbols import here
from .._numpy import fallback, imports
from .._numpy.fallback import to_numpy
from .._numpy.provided import equivalent, name_of
from .._ufunc import ufunc as _ufunc
from .conversion import in_order
from .layout import dense
from .memory import device_of
from .text import shown

ndarray = _native.ndarray


def method(function):
    """Makes a function a method of arrays, under its own name."""
    setattr(ndarray, function.__name__, function)
    return function


@method
def __sizeof__(self):
    # Extents and strides count, as in NumPy.
    return object.__sizeof__(self) + 16 * self.ndim + (self.nbytes if self.base is None else 0)


@method
def __repr__(self):
    value = shown(self)
    return repr(value[()]) if self._scalar else repr(value)


@method
def __str__(self):
    value = shown(self)
    return str(value[()]) if self._scalar else str(value)


@method
def __format__(self, spec):
    if self.ndim == 0:
        return format(_native.item_of(self), spec)
    return format(shown(self), spec)


@method
def __round__(self, digits=None):
    if self.ndim:
        raise TypeError("type bh.ndarray doesn't define __round__ method")
    return round(_native.item_of(self)) if digits is None else search.round(self, digits)


@method
def __trunc__(self):
    return int(self)


def _of_number(name):
    """An attribute that numbers have and arrays have not."""

    def get(self):
        number = getattr(self.dtype.type, name, None) if self._scalar else None
        if number is None:
            raise AttributeError(f"'bh.ndarray' object has no attribute {name!r}")
        return number.__get__(self.dtype.type(_native.item_of(self)))

    return property(get)


for _name in ("is_integer", "as_integer_ratio", "bit_count", "hex", "numerator", "denominator"):
    setattr(ndarray, _name, _of_number(_name))


@method
def __contains__(self, value):
    return bool((self == value).any())


@method
def __reversed__(self):
    if len(self) > 8 and _native.meets_hosts(self) and not _native.is_at_hand(self):
        # All elements are to come: they are waited for once.
        _native.Stack(self._stack).flush(True)
    return iter(self[::-1])


@method
def __copy__(self):
    return in_order(self, "K")


@method
def __deepcopy__(self, memo):
    return in_order(self, "K")


@method
def __reduce__(self):
    return _unpickle, (to_numpy(self), self._scalar)


def _unpickle(value, scalar=False):
    # The memory may be that of an array of this process.
    view = None if scalar else fallback.shown_by(value)
    if view is not None:
        return view
    result = fallback.from_numpy(value)
    result._scalar = scalar
    return result


@method
def __array__(self, dtype=None, copy=None):
    value = to_numpy(self) if copy or self._scalar else np.asarray(memoryview(self))
    converted = value if dtype is None else value.astype(dtype, copy=False)
    if copy is False and converted is not value:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return converted


class _Description(dict):
    """A description of memory that keeps copies of elements, which stand for those without memory of their own."""


def in_place(self):
    """NumPy's array over the memory, which stays where it is from now on, as long as the array lives."""
    self._stay()
    return np.asarray(memoryview(self))


def _array_interface(self):
    """NumPy's description of the memory, whose address holds as long as the array lives."""
    view = in_place(self)
    described = _Description(view.__array_interface__)
    described.owner = view
    return described


def _array_struct(self):
    """The same in C; what takes it keeps the array, and not the description."""
    return in_place(self).__array_struct__


ndarray.__array_interface__ = property(_array_interface)
ndarray.__array_struct__ = property(_array_struct)


# The device types of DLPack.
_CPU, _CUDA = 1, 2


def _device(self):
    """The number of the CUDA device on which other libraries get the array; `None` for host memory."""
    if here.records or self._scalar or not self.size or self._is_part:
        return None
    return device_of(self._stack)


@method
def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    versioned = max_version is not None and max_version[0] >= 1
    device = _device(self)
    if device is not None and (dl_device is None or tuple(dl_device) == (_CUDA, device)):
        # Work on the memory is done, so that streams need not wait. Consumers of the first versions do not know read-only memory.
        lent = in_order(self, "K") if copy or not (self._writeable or versioned) else self
        return _native.lend_device(lent, lent._writeable).capsule(device, versioned)
    if stream is not None and device is None:
        # The kind of this error differs between versions of NumPy.
        np.empty(0).__dlpack__(stream=stream)
    if not self._writeable and not versioned:
        raise BufferError("DLPack before its version 1 has no read-only arrays")
    value = to_numpy(self) if copy else np.asarray(memoryview(self))
    if not value.flags.writeable and not versioned:
        # Consumers of the first versions cannot be told that the memory is read-only.
        value = value.copy()
    return value.__dlpack__(max_version=max_version, dl_device=dl_device)


@method
def __dlpack_device__(self):
    device = _device(self)
    return (_CPU, 0) if device is None else (_CUDA, device)


# Memory of devices whose address was given out, by the numbers of the arrays that it is lent for.
_LOANS = {}


def _cuda_array_interface(self):
    """A description of the memory on a CUDA device (version 3), which stays lent as long as the array lives."""
    if _device(self) is None:
        raise AttributeError("'bh.ndarray' object has no attribute '__cuda_array_interface__': its memory is not on a CUDA device")
    key = id(self)
    if key not in _LOANS:
        _LOANS[key] = _native.lend_device(self, self._writeable), weakref.ref(self, lambda _: _LOANS.pop(key, None))
    loan = _LOANS[key][0]
    return {
        "version": 3,
        "shape": self.shape,
        "strides": self.strides,
        "typestr": self.dtype.str,
        "data": (loan.address, not loan.writes),
        "stream": None,
    }


ndarray.__cuda_array_interface__ = property(_cuda_array_interface)


@method
def __array_wrap__(self, array, context=None, return_scalar=False):
    if isinstance(self, np.ndarray):
        # The method of a derived class calls this one, by the class.
        return np.ndarray.__array_wrap__(self, fallback.lower(array), context, return_scalar)
    if return_scalar and array.ndim == 0:
        return np.asarray(array)[()]
    if isinstance(array, np.ma.MaskedArray):
        # Without its mask it would be another one.
        return array
    return fallback.lift(array if type(array) is ndarray else np.asarray(array))


@method
def __array_namespace__(self, *, api_version=None):
    import bh

    if api_version is not None and not isinstance(api_version, str):
        raise ValueError("Only None and strings are allowed as the Array API version")
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f'Version "{api_version}" of the Array API Standard is not supported.')
    # A caller that asks for the namespace expects arrays from all functions, also without dimensions.
    _native.follow_array_api(True)
    return bh


def _are_asked(kinds):
    """Has NumPy asked all other classes of operands before bh's array? They have refused it then, but may take an array of NumPy."""
    kinds = list(kinds)
    before = kinds[: kinds.index(ndarray)] if ndarray in kinds else kinds
    return set(kinds) <= {ndarray, *before}


@method
def _array_ufunc(self, function, method, *inputs, **kwargs):
    """Serves calls of `__array_ufunc__` that the table of known calls does not serve."""
    if not isinstance(function, _ufunc.ufunc):
        raise TypeError("the first argument must be a universal function")
    if function is np.matmul and method == "__call__" and not kwargs and not any(map(_ufunc.overrides, inputs)):
        return products.matmul(*inputs)
    mine = _ufunc.UFUNCS.get(function.__name__)
    mine = mine if mine is not None and mine == function else None
    out = kwargs.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        kwargs["out"] = out = out[0]
    if any(_ufunc.overrides(value) for value in inputs):
        if _are_asked(type(value) for value in inputs if type(value) is ndarray or _ufunc.overrides(value)):
            return fallback.call_beside(getattr(function, method), inputs, kwargs)
        # As NumPy's arrays do, so that the other one is asked.
        return NotImplemented
    if mine is None:
        # It may write to its operands.
        return fallback.call_beside(getattr(function, method), inputs, kwargs)
    if isinstance(out, np.ndarray) or isinstance(out, tuple) and any(isinstance(o, np.ndarray) for o in out):
        return fallback.deliver(getattr(function, method), inputs, kwargs, inputs[:1] if method == "at" else None)
    if any(_ufunc.defers(value) for value in inputs):
        return NotImplemented
    if method == "__call__" and function.signature is not None:
        # Functions of whole axes are written as functions.
        function = equivalent(function)
        return function(*inputs, **kwargs)
    if method == "__call__" and not kwargs:
        # The table serves scalars, which NumPy makes arrays where it compares them with others.
        return fallback.given(mine(*(value[()] if _is_number(value) else value for value in inputs)))
    return mine._call(inputs, kwargs) if method == "__call__" else getattr(mine, method)(*inputs, **kwargs)


def _is_number(value):
    """Is it an array of NumPy that holds one number and has no dimensions?"""
    return type(value) is np.ndarray and value.ndim == 0 and value.dtype.kind in "biufc"


# Functions by which libraries prepare the arguments that they then pass to code in C.
_PREPARING = {np.atleast_1d, np.atleast_2d, np.atleast_3d}


def _memory_of(value):
    """An array of NumPy over the memory of one of bh."""
    if type(value) is not ndarray:
        return value
    return to_numpy(value) if value._scalar else np.asarray(value)


@method
def __array_function__(self, function, types, args, kwargs):
    if function in _PREPARING and not imports.is_own(sys._getframe(1).f_globals):
        return function(*map(_memory_of, args))
    others = [kind for kind in types if kind is ndarray or not issubclass(kind, np.ndarray)]
    if any(kind is not ndarray for kind in others):
        if _are_asked(others):
            return fallback.call_on_memory(function, args, kwargs, name_of(function))
        # As NumPy's arrays do, so that the other class is asked.
        return NotImplemented
    mine = equivalent(function)
    if mine is not None:
        return mine(*args, **kwargs)
    return fallback.call_on_memory(function, args, kwargs, name_of(function))


@method
def __arrow_array__(self, type=None):
    """The Arrow array of the elements."""
    import pyarrow

    return pyarrow.array(np.asarray(self), type=type)


@method
def __conform__(self, protocol):
    """The value that a database stores (PEP 246): the adapters of NumPy's numbers and arrays, or those themselves. SQLite stores numbers
    that are instances of float as floats, others as bytes."""
    sqlite3 = sys.modules.get("sqlite3")
    if sqlite3 is None or protocol is not sqlite3.PrepareProtocol:
        return None
    value = fallback.lower(self) if self._scalar else np.asarray(self)
    return sqlite3.adapt(value, protocol, value)


def _rebuilt(parts, scalar):
    make, arguments, state = parts
    made = make(*arguments)
    made.__setstate__(state)
    return _unpickle(made, scalar)


@method
def __reduce_ex__(self, protocol):
    inner_first = sorted(range(self.ndim), key=lambda axis: self._stride[axis])
    if protocol >= 5 and dense([self.shape[axis] for axis in inner_first], [self._stride[axis] for axis in inner_first]):
        # NumPy hands the memory over in a buffer.
        return _unpickle, (to_numpy(self) if self._scalar or not self._writeable else np.asarray(self), self._scalar)
    # As NumPy's, elements that do not lie side by side are not handed over in a buffer.
    return _rebuilt, (to_numpy(self).__reduce__(), self._scalar)

"""The methods of arrays that are written in Python, and the special ones that other libraries call."""

import itertools
import sys
import types
import weakref

import numpy as np

from . import _fallback, _functions, _native, _ufunc
from ._convert import array, astype, called, in_order, native, order_of, warn, warn_of_lost_parts
from ._fallback import to_numpy
from ._flat import Flags, flatiter
from ._layout import dense
from ._public import equivalent, name_of
from ._served import served
from ._types import code_of, is_complex

ndarray = _native.ndarray


def method(function):
    """Makes a function a method of arrays, under its own name."""
    setattr(ndarray, function.__name__, function)
    return function


def from_functions(*names):
    """Methods that are functions of the same name."""
    for name in names:
        setattr(ndarray, name, getattr(_functions, name))


@method
def astype_(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
    """The elements converted to another type."""
    dtype = float if dtype is None else dtype
    code = code_of(dtype) if type(dtype) is type else None
    if code is not None and self.ndim == 1 and (order, casting, copy) == ("K", "unsafe", True) and not is_complex(self._code):
        _native.warn_of_cast(self, code)
        return _native.cast(self, code)
    if not np.can_cast(self.dtype, dtype, casting):
        raise TypeError(f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} according to the rule '{casting}'")
    if np.dtype(dtype).kind not in "cb" and self.dtype.kind == "c":
        warn_of_lost_parts()
    if code_of(dtype) is None:
        _fallback.note("ndarray.astype", f"bh has no element type {np.dtype(dtype)}")
        return _fallback.lower(self).astype(dtype, order)
    _native.warn_of_cast(self, code_of(dtype))
    made = astype(self, dtype, copy) if self.ndim == 0 else array(self, dtype, copy=copy or None, order=order)
    return made if made is self else called(made, dtype)


ndarray.astype = astype_
del ndarray.astype_


@method
def tolist(self):
    """The elements as nested lists of Python numbers."""
    return to_numpy(self).tolist()


@method
def tobytes(self, order="C"):
    """The elements' bytes in C order (or Fortran's)."""
    return to_numpy(self).tobytes(order)


@method
def tofile(self, fid, sep="", format="%s"):
    """Writes the elements to a file."""
    return to_numpy(self).tofile(fid, sep, format)


@method
def dump(self, file):
    """Pickles the array into a file."""
    return to_numpy(self).dump(file)


@method
def dumps(self):
    """The array pickled, as bytes."""
    return to_numpy(self).dumps()


@method
def copy(self, order="C"):
    """A new array with the same elements."""
    if order == "C":
        return _native.cast(self, self._code)
    return in_order(self, order_of(order, "C"))


@method
def fill(self, value):
    """Assigns one value to all elements."""
    if np.ndim(value):
        raise ValueError("setting an array element with a sequence.")
    self[...] = value


@method
def view(self, dtype=None, type=None):
    """Another view of the same memory; with another element type it is an array of NumPy."""
    if isinstance(dtype, builtin_type) and issubclass(dtype, ndarray):
        dtype, type = None, dtype
    if type is not None and type is not np.ndarray and not issubclass(type, ndarray):
        raise ValueError("Type must be a sub-type of ndarray type")
    if type not in (None, ndarray, np.ndarray):
        # Instances of derived classes are NumPy's arrays over the same memory.
        made = np.asarray(self)
        return (made if dtype is None else made.view(dtype)).view(type)
    if dtype is None:
        return self[...]
    if code_of(dtype) == self._code:
        return self[...]
    _fallback.note("ndarray.view", "the bytes as another type are NumPy's")
    return np.asarray(self).view(dtype)


builtin_type = type


@method
def reshape(self, *shape, order="C", copy=None):
    """The elements in another shape: a view where that is possible."""
    shape = shape[0] if len(shape) == 1 else shape
    if order == "C" and copy is None and (type(shape) is int or type(shape) is tuple and len(shape) <= 16):
        return _native.reshape(self, shape)
    return _functions.reshape(self, shape, order=order, copy=copy)


@method
def transpose(self, *axes):
    """The dimensions in another order; reversed without one."""
    if not axes or axes[0] is None:
        return _functions.transpose(self)
    return _functions.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


@method
def flatten(self, order="C"):
    """A copy with one dimension."""
    flat = _functions.ravel(self, order)
    return _native.cast(flat, flat._code) if flat._memory == self._memory else flat


@method
def resize(self, *new_shape, refcheck=True):
    """Another size in place, new elements are zeros; views keep what they show."""
    if not isinstance(refcheck, (int, np.integer, np.bool_)):
        raise TypeError(f"'{builtin_type(refcheck).__name__}' object cannot be interpreted as an integer")
    if not new_shape or new_shape == (None,):
        return
    shape = new_shape[0] if len(new_shape) == 1 else new_shape
    # NumPy says what is no shape.
    shape = np.empty(shape, bool).shape
    if np.prod(shape, dtype=np.int64) == self.size:
        self.shape = shape
        return
    if self.base is not None:
        raise ValueError("cannot resize this array: it does not own its data")
    if refcheck and (weakref.getweakrefcount(self) or sys.getrefcount(self) > _ONLY_OWNER):
        raise ValueError("cannot resize an array that references or is referenced by another array; use refcheck=False")
    made = _native.full(shape, self._code, 0)
    kept = min(made.size, self.size)
    made.reshape(-1)[:kept] = self.reshape(-1)[:kept]
    self._become(made)


class _Owned:
    """An object with one owner, which tells how many references such a one has within a method."""

    def references(self):
        return sys.getrefcount(self)


_owned = _Owned()
_ONLY_OWNER = _owned.references()


@method
def matvec(self, x):
    """The product with a vector: by this name SciPy knows what is a linear operator."""
    return _functions.matmul(self, x)


@method
def rmatvec(self, x):
    """The product of the conjugated transpose with a vector, for SciPy."""
    return _functions.matmul(self.conj().T, x)


@method
def sort(self, axis=-1, kind=None, order=None, *, stable=None):
    """Sorts in place."""
    if axis is None:
        raise TypeError("'NoneType' object cannot be interpreted as an integer")
    self[...] = _functions.sort(self, axis=axis, kind=kind, stable=stable)


@method
def partition(self, kth, axis=-1, kind="introselect", order=None):
    """Sorts in place as far as `partition` asks."""
    if axis is None:
        raise TypeError("'NoneType' object cannot be interpreted as an integer")
    self[...] = _functions.partition(self, kth, axis, kind)


@method
def clip(self, min=None, max=None, out=None, **kwargs):
    """The elements, but not below and not above limits."""
    return _functions.clip(self, min, max, out=out, **kwargs)


@method
def compress(self, condition, axis=None, out=None):
    """The slices along an axis for which a condition is true."""
    return _functions.compress(condition, self, axis, out)


@method
def setflags(self, write=None, align=None, uic=None):
    """Allows or forbids assignments."""
    if write is not None:
        if write and self.base is not None and not self.base._writeable:
            raise ValueError("cannot set WRITEABLE flag to True of this array")
        self._writeable, self._warns = bool(write), False


@method
def getfield(self, dtype, offset=0):
    """A field of the elements' bytes, as a copy."""
    return _fallback.from_numpy(to_numpy(self).getfield(dtype, offset))


@method
def byteswap(self, inplace=False):
    """The elements with their bytes in the other order."""
    swapped = native(to_numpy(self).byteswap())
    if not inplace:
        return swapped
    self[...] = swapped
    return self


@method
def to_device(self, device, /, *, stream=None):
    """The array itself: its one device is "cpu"."""
    if stream is not None:
        raise ValueError("The stream argument in to_device() is not supported")
    if device != "cpu":
        raise ValueError(f"Unsupported device: {device}")
    return self


# Sequences to functions in C, such as `bisect`: assigned again, Python's own way to their length is that of sequences too.
ndarray.__len__ = vars(ndarray)["__len__"]


@method
def __sizeof__(self):
    # Extents and strides count, as in NumPy.
    return object.__sizeof__(self) + 16 * self.ndim + (self.nbytes if self.base is None else 0)


def _shown(self):
    """An array of NumPy's that is shown as this one: of a large one only the corners are read, as only they are shown."""
    options = np.get_printoptions()
    edge, whole = options["edgeitems"], options["threshold"]
    if self.size <= whole or not 0 < self.ndim <= 4 or options["legacy"] or options.get("override_repr"):
        return to_numpy(self)
    value = np.empty(self.shape, self.dtype)
    sides = [(slice(0, edge), slice(extent - edge, extent)) if extent > 2 * edge else (slice(None),) for extent in self.shape]
    for corner in itertools.product(*sides):
        value[corner] = to_numpy(self[corner])
    return value


@method
def __repr__(self):
    value = _shown(self)
    return repr(value[()]) if self._scalar else repr(value)


@method
def __str__(self):
    value = _shown(self)
    return str(value[()]) if self._scalar else str(value)


@method
def __format__(self, spec):
    if self.ndim == 0:
        return format(_native.item_of(self), spec)
    return format(to_numpy(self), spec)


@method
def __round__(self, digits=None):
    if self.ndim:
        raise TypeError("type bh.ndarray doesn't define __round__ method")
    return round(_native.item_of(self)) if digits is None else _functions.round(self, digits)


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
    return (self[place] for place in range(len(self) - 1, -1, -1))


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
    view = None if scalar else _fallback.shown_by(value)
    if view is not None:
        return view
    result = _fallback.from_numpy(value)
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
    """A description of memory that keeps it where it is."""


def _array_interface(self):
    """NumPy's description of the memory, whose address holds as long as the description lives."""
    view = np.asarray(memoryview(self))
    described = _Description(view.__array_interface__)
    described.owner = view
    return described


ndarray.__array_interface__ = property(_array_interface)
ndarray.__array_struct__ = property(lambda self: np.asarray(memoryview(self)).__array_struct__)


@method
def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if stream is not None:
        # The kind of this error differs between versions of NumPy.
        np.empty(0).__dlpack__(stream=stream)
    versioned = max_version is not None and max_version[0] >= 1
    if not self._writeable and not versioned:
        raise BufferError("DLPack before its version 1 has no read-only arrays")
    value = to_numpy(self) if copy else np.asarray(memoryview(self))
    if not value.flags.writeable and not versioned:
        # Consumers of the first versions cannot be told that the memory is read-only.
        value = value.copy()
    return value.__dlpack__(max_version=max_version, dl_device=dl_device)


@method
def __dlpack_device__(self):
    return 1, 0


@method
def __array_wrap__(self, array, context=None, return_scalar=False):
    if return_scalar and array.ndim == 0:
        return np.asarray(array)[()]
    if isinstance(array, np.ma.MaskedArray):
        # Without its mask it would be another one.
        return array
    return _fallback.lift(array if type(array) is ndarray else np.asarray(array))


@method
def __array_namespace__(self, *, api_version=None):
    import bh

    if api_version is not None and not isinstance(api_version, str):
        raise ValueError("Only None and strings are allowed as the Array API version")
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f'Version "{api_version}" of the Array API Standard is not supported.')
    # Whoever asks takes all libraries' results for arrays, also those without dimensions.
    _native.follow_array_api(True)
    return bh


@method
def _array_ufunc(self, function, method, *inputs, **kwargs):
    """What `__array_ufunc__` does with calls that the table of known calls does not serve."""
    if not isinstance(function, _ufunc.ufunc):
        raise TypeError("the first argument must be a universal function")
    if function is np.matmul and method == "__call__" and not kwargs and not any(_ufunc.defers(value) for value in inputs):
        return _functions.matmul(*inputs)
    mine = _ufunc.UFUNCS.get(function.__name__)
    mine = mine if mine is not None and mine == function else None
    out = kwargs.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        kwargs["out"] = out = out[0]
    if any(_ufunc.overrides(value) for value in inputs):
        # As NumPy's arrays do, so that the other one is asked.
        return NotImplemented
    if mine is None:
        # It may write to its operands.
        return _fallback.call_beside(getattr(function, method), inputs, kwargs)
    if isinstance(out, np.ndarray) or isinstance(out, tuple) and any(isinstance(o, np.ndarray) for o in out):
        return _fallback.deliver(getattr(function, method), inputs, kwargs, inputs[:1] if method == "at" else None)
    if any(_ufunc.defers(value) for value in inputs):
        return NotImplemented
    if method == "__call__" and function.signature is not None:
        # Functions of whole axes are written as functions.
        function = equivalent(function)
        return function(*inputs, **kwargs)
    return mine._call(inputs, kwargs) if method == "__call__" else getattr(mine, method)(*inputs, **kwargs)


@method
def __array_function__(self, function, types, args, kwargs):
    mine = equivalent(function)
    if mine is not None:
        return mine(*args, **kwargs)
    return _fallback.call_on_memory(function, args, kwargs, name_of(function))


def _refuse(name):
    raise AttributeError(f"attribute '{name}' of 'numpy.ndarray' objects is not writable")


def _matrix_transpose(self):
    if self.ndim < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return _functions.matrix_transpose(self)


_strides = ndarray.strides


def _set_strides(self, strides):
    """Other strides in place, which NumPy warns of."""
    warn("Setting the strides on a NumPy array has been deprecated in NumPy 2.4.", DeprecationWarning)
    if strides is None:
        raise TypeError("invalid strides")
    from ._class import as_strided

    try:
        made = as_strided(self, self.shape, (strides,) if isinstance(strides, int) else strides)
    except IndexError as error:
        raise ValueError("strides is not compatible with available memory") from error
    if type(made) is not ndarray:
        raise ValueError("the strides are no whole numbers of elements")
    self._become(made)


ndarray.strides = property(_strides.__get__, _set_strides, doc=_strides.__doc__)
ndarray.__array_priority__ = 0.0
ndarray.device = property(lambda self: "cpu", lambda self, value: _refuse("device"))
ndarray.mT = property(_matrix_transpose)
ndarray.real = property(
    lambda self: _functions.real(self), lambda self, value: _functions.set_part(self, value, "real")
)
ndarray.imag = property(
    lambda self: _functions.imag(self), lambda self, value: _functions.set_part(self, value, "imag")
)
ndarray.ctypes = property(lambda self: np.asarray(self).ctypes, doc="The memory, for `ctypes`; kept as long as this object.")
ndarray.data = property(memoryview, doc="The elements as a buffer.")


ndarray.flags = property(Flags)
ndarray.flat = property(flatiter, lambda self, value: flatiter(self).__setitem__(slice(None), value))

for _operator in "add sub mul truediv floordiv mod pow lshift rshift and or xor".split():
    setattr(ndarray, f"__i{_operator}__", getattr(ndarray, f"_inplace_{_operator}"))


@method
def conjugate(self, out=None):
    """The complex conjugates; of real elements the array itself."""
    if self.dtype.kind != "c" and out is None:
        return self
    return _ufunc.UFUNCS["conjugate"](self, out=out)


ndarray.conj = conjugate


@method
def __imatmul__(self, other):
    if self.ndim == 0 or np.ndim(other) < 2 and self.ndim > 1 or np.ndim(other) == 1:
        text = "inplace matrix multiplication requires the first operand to have at least one and the second at least two dimensions."
        raise ValueError(text)
    product = _functions.matmul(self, other)
    if product.shape != self.shape:
        raise ValueError(f"the product of shape {product.shape} does not fit the first operand of shape {self.shape}")
    if not np.can_cast(product.dtype, self.dtype, "same_kind"):
        raise TypeError(f"Cannot cast from {product.dtype!r} to {self.dtype!r} with casting rule 'same_kind'")
    self[...] = product
    return self


@method
def choose(self, /, *choices, out=None, mode="raise"):
    """The elements of the choices that have these numbers."""
    return _functions.choose(self, choices[0] if len(choices) == 1 else choices, out, mode)


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


from_functions(
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "cumprod",
    "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "put", "ravel", "repeat",
    "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
)  # fmt: skip

def _copied(function):
    """The same function as an object of its own, whose attributes another name may have."""
    if not isinstance(function, types.FunctionType):
        return function
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__dict__.update(function.__dict__)
    made.__kwdefaults__, made.__doc__, made.__qualname__ = function.__kwdefaults__, function.__doc__, function.__qualname__
    return made


for _name in "item astype copy flatten reshape ravel squeeze dot sum prod max min any all argmax argmin nonzero take cumsum".split():
    setattr(ndarray, _name, served(_name, getattr(ndarray, _name), True))

# Who asks for a method's parameters gets those of NumPy's; `_own` has what it takes here.
for _name, _function in list(vars(ndarray).items()):
    if isinstance(_function, (types.FunctionType, _native.Function)) and hasattr(np.ndarray, _name):
        _own = getattr(_function, "__wrapped__", _function)
        _function = _copied(_function)
        _function._own = _own
        _function.__wrapped__ = getattr(np.ndarray, _name)
        setattr(ndarray, _name, _function)

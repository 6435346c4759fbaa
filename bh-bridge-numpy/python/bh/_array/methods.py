"""The methods of arrays that are written in Python."""

import functools
import importlib
import sys
import types
import weakref

import numpy as np

from .. import _native
from .._functions import complex_parts, manipulation, products, search, sorting
from .._numpy import fallback
from .._numpy.fallback import to_numpy
from .._numpy.immediate import Later, at_hand, carried_out
from .._numpy.native_calls import served
from .._numpy.registry import FUNCTIONS, METHODS
from .._ufunc import ufunc
from .conversion import array, astype, called, in_order, native, order_of, warn, warn_of_lost_parts
from .element_types import MOST_DIMENSIONS, code_of, is_complex
from .flat import Flags, flatiter
from .protocols import in_place, method
from .subclassing import for_both

ndarray = _native.ndarray


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
        fallback.note("ndarray.astype", f"bh has no element type {np.dtype(dtype)}")
        return fallback.lower(self).astype(dtype, order)
    _native.warn_of_cast(self, code_of(dtype))
    made = astype(self, dtype, copy) if self.ndim == 0 else array(self, dtype, copy=copy or None, order=order)
    return made if made is self else called(made, dtype)


astype_.__name__ = astype_.__qualname__ = "astype"
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
    fallback.note("ndarray.view", "the bytes as another type are NumPy's")
    return np.asarray(self).view(dtype)


builtin_type = type


@method
def reshape(self, *shape, order="C", copy=None):
    """The elements in another shape: a view where that is possible."""
    shape = shape[0] if len(shape) == 1 else shape
    if order == "C" and copy is None and (type(shape) is int or type(shape) is tuple and len(shape) <= MOST_DIMENSIONS):
        return _native.reshape(self, shape)
    return manipulation.reshape(self, shape, order=order, copy=copy)


@method
def transpose(self, *axes):
    """The dimensions in another order; reversed without one."""
    if not axes or axes[0] is None:
        return manipulation.transpose(self)
    return manipulation.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


@method
def flatten(self, order="C"):
    """A copy with one dimension."""
    flat = manipulation.ravel(self, order)
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
    alone = not weakref.getweakrefcount(self) and sys.getrefcount(self) <= _ONLY_OWNER
    if refcheck and not alone:
        raise ValueError("cannot resize an array that references or is referenced by another array; use refcheck=False")
    made = _native.full(shape, self._code, 0)
    kept = min(made.size, self.size)
    made.reshape(-1)[:kept] = self.reshape(-1)[:kept]
    self._become(made, alone)


class _Owned:
    """An object with one owner, which tells how many references such a one has within a method."""

    def references(self):
        return sys.getrefcount(self)


_owned = _Owned()
_ONLY_OWNER = _owned.references()


@method
def matvec(self, x):
    """The product with a vector: by this name SciPy knows what is a linear operator."""
    return products.matmul(self, x)


@method
def rmatvec(self, x):
    """The product of the conjugated transpose with a vector, for SciPy."""
    return products.matmul(self.conj().T, x)


def _in_order(original, function, *args, **kwargs):
    """The elements in the order of one of NumPy's functions, by that where it is asked, or by the package's."""
    try:
        return carried_out(original, FUNCTIONS[original.__name__], args, kwargs)
    except Later:
        return function(*args, **kwargs)


@method
def sort(self, axis=-1, kind=None, order=None, *, stable=None):
    """Sorts in place."""
    if axis is None:
        raise TypeError("'NoneType' object cannot be interpreted as an integer")
    self[...] = _in_order(np.sort, sorting.sort, self, axis=axis, kind=kind, stable=stable)


@method
def partition(self, kth, axis=-1, kind="introselect", order=None):
    """Sorts in place as far as `partition` asks."""
    if axis is None:
        raise TypeError("'NoneType' object cannot be interpreted as an integer")
    self[...] = _in_order(np.partition, sorting.partition, self, kth=kth, axis=axis, kind=kind)


@method
def clip(self, min=None, max=None, out=None, **kwargs):
    """The elements, but not below and not above limits."""
    return search.clip(self, min, max, out=out, **kwargs)


@method
def compress(self, condition, axis=None, out=None):
    """The slices along an axis for which a condition is true."""
    return search.compress(condition, self, axis, out)


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
    return fallback.from_numpy(to_numpy(self).getfield(dtype, offset))


@method
def byteswap(self, inplace=False):
    """The elements with their bytes in the other order."""
    swapped = fallback.lift(fallback.lower(in_order(self, "A")).byteswap())
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


def _as_type(self):
    """The description of a type of elements that stands for a number is that of its own; NumPy refuses arrays, so that a mistake is seen."""
    if not self._scalar:
        raise TypeError("Cannot construct a dtype from an array")
    return self.dtype


ndarray.__numpy_dtype__ = property(_as_type)


def _symbolic(self):
    """SymPy's form of a number that is not computed yet; from arrays SymPy makes its own arrays by their elements."""
    if not self._scalar:
        raise AttributeError("arrays are no numbers")
    from sympy import sympify

    return lambda: sympify(fallback.lower(self))


ndarray._sympy_ = property(_symbolic)


@method
def setfield(self, val, dtype, offset=0):
    """Writes into a field of the elements' bytes."""
    np.asarray(self).setfield(fallback.lower(val), dtype, offset)


def _refuse(name):
    raise AttributeError(f"attribute '{name}' of 'numpy.ndarray' objects is not writable")


def _matrix_transpose(self):
    if self.ndim < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return manipulation.matrix_transpose(self)


_strides = ndarray.strides


def _set_strides(self, strides):
    """Other strides in place, which NumPy warns of."""
    warn("Setting the strides on a NumPy array has been deprecated in NumPy 2.4.", DeprecationWarning)
    if strides is None:
        raise TypeError("invalid strides")
    from .subclassing import as_strided

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
ndarray.imag = property(
    lambda self: complex_parts.imag(self), lambda self, value: complex_parts.set_part(self, value, "imag")
)
ndarray.ctypes = property(lambda self: in_place(self).ctypes, doc="The memory, for `ctypes`; its address holds as long as the array lives.")
ndarray.data = property(lambda self: self._stay() or memoryview(self), doc="The elements as a buffer, whose place holds as long as the array lives.")


ndarray.flags = property(Flags)
ndarray.flat = property(flatiter, lambda self, value: flatiter(self).__setitem__(slice(None), value))

for _operator in "add sub mul truediv floordiv mod pow lshift rshift and or xor".split():
    setattr(ndarray, f"__i{_operator}__", getattr(ndarray, f"_inplace_{_operator}"))


@method
def conjugate(self, out=None):
    """The complex conjugates; of real elements the array itself."""
    if self.dtype.kind != "c" and out is None:
        return self
    return ufunc.UFUNCS["conjugate"](self, out=out)


ndarray.conj = conjugate


@method
def __imatmul__(self, other):
    if self.ndim == 0 or np.ndim(other) < 2 and self.ndim > 1 or np.ndim(other) == 1:
        text = "inplace matrix multiplication requires the first operand to have at least one and the second at least two dimensions."
        raise ValueError(text)
    product = products.matmul(self, other)
    if product.shape != self.shape:
        raise ValueError(f"the product of shape {product.shape} does not fit the first operand of shape {self.shape}")
    if not np.can_cast(product.dtype, self.dtype, "same_kind"):
        raise TypeError(f"Cannot cast from {product.dtype!r} to {self.dtype!r} with casting rule 'same_kind'")
    self[...] = product
    return self


@method
def choose(self, /, *choices, out=None, mode="raise"):
    """The elements of the choices that have these numbers."""
    return search.choose(self, choices[0] if len(choices) == 1 else choices, out, mode)


def _copied(function):
    """The same function as an object of its own, whose attributes another name may have."""
    if not isinstance(function, types.FunctionType):
        return function
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__dict__.update(function.__dict__)
    made.__kwdefaults__, made.__doc__, made.__qualname__ = function.__kwdefaults__, function.__doc__, function.__qualname__
    return made


def _of_numbers_too(method):
    """A method of NumPy's arrays as a function that takes NumPy's numbers, too: NumPy shows bh's results without dimensions as those."""
    name = method.__name__

    @functools.wraps(method)
    def call(value, /, *arguments, **keywords):
        return getattr(value, name)(*arguments, **keywords)

    return call


def _install():
    """Gives the class the methods that are functions, has native ones serve common calls, and shows the parameters of NumPy's; `_own`
    has those of this package."""
    for name, row in (FUNCTIONS | METHODS).items():
        if not row.method and name not in METHODS:
            continue
        function = getattr(importlib.import_module(f"bh.{row.module}"), name) if row.method else getattr(ndarray, name)
        if row.native or row.by_numpy:
            original = getattr(np, name) if row.method else _of_numbers_too(getattr(np.ndarray, name))
            function = served(name, at_hand(for_both(name, function), original, row, method=True), row, original, method=True)
        setattr(ndarray, name, function)
    for name, function in list(vars(ndarray).items()):
        if isinstance(function, (types.FunctionType, _native.Function)) and hasattr(np.ndarray, name):
            own, function = getattr(function, "__wrapped__", function), _copied(function)
            function._own, function.__wrapped__ = own, getattr(np.ndarray, name)
            setattr(ndarray, name, function)


_install()

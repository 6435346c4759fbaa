"""Views of an array's properties: its flags, and its elements in C order."""

import itertools

import numpy as np

from .. import _native
from .._functions import creation, search
from .._numpy import fallback
from .._numpy.fallback import to_numpy
from . import indexing
from .conversion import assigned, lower_nested, to_write, warn
from .layout import repeats

_WRONG_KEY = "only integers, slices (`:`), ellipsis (`...`) and integer or boolean arrays are valid indices"


class Flags:
    """The properties of an array's memory."""

    def __init__(self, array):
        self._array = array

    c_contiguous = contiguous = property(lambda self: self._array._contiguous)
    f_contiguous = property(lambda self: self._array.T._contiguous)
    forc = property(lambda self: self.c_contiguous or self.f_contiguous)
    fnc = property(lambda self: self.f_contiguous and not self.c_contiguous)
    owndata = property(lambda self: self._array.base is None)
    aligned = property(lambda self: True)
    writebackifcopy = property(lambda self: False)
    _warn_on_write = property(fset=lambda self, warns: setattr(self._array, "_warns", bool(warns)))
    _LETTERS = {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable", "A": "aligned", "X": "writebackifcopy"}

    fortran = f_contiguous
    behaved = property(lambda self: self.writeable)
    carray = property(lambda self: self.behaved and self.c_contiguous)
    farray = property(lambda self: self.behaved and self.fnc)

    @property
    def writeable(self):
        """May the array be assigned to?"""
        if self._array._warns:
            text = "future versions will not create a writeable array from broadcast_array. Set the writable flag explicitly to avoid this warning."
            warn(text, FutureWarning)
        return self._array._writeable

    @writeable.setter
    def writeable(self, write):
        self._array.setflags(write=write)

    def _values(self):
        return tuple(getattr(self, name) for name in ("c_contiguous", "f_contiguous", "owndata", "writeable", "aligned"))

    def __eq__(self, other):
        return self._values() == Flags._values(other) if isinstance(other, (Flags, type(np.ones(0).flags))) else NotImplemented

    def __getitem__(self, key):
        return getattr(self, self._LETTERS.get(key, key.lower()))

    def __setitem__(self, key, value):
        setattr(self, self._LETTERS.get(key, key.lower()), value)

    def __repr__(self):
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")
        return "\n".join(f"  {name} : {self[name]}" for name in names)


class flatiter:
    """The elements of an array in C order, to iterate over, to read and to assign."""

    def __init__(self, array):
        self.base, self._index, self._places = array, 0, None

    index = property(lambda self: self._index)

    def _numbers(self):
        return _native.reshape(creation.arange(self.base.size), self.base.shape)

    coords = property(lambda self: tuple(int(i) for i in np.unravel_index(self.index, self.base.shape)))

    def copy(self):
        """A copy of the elements with one dimension."""
        return self.base.flatten()

    def __array__(self, dtype=None, copy=None):
        made = to_numpy(self.base).reshape(-1).astype(dtype or self.base.dtype, copy=False)
        made.flags.writeable = self.base._writeable and self.base._contiguous
        return made

    def __iter__(self):
        return self

    def __next__(self):
        if self.index >= self.base.size:
            raise StopIteration
        if self._places is None:
            self._places = itertools.product(*map(range, self.base.shape))
            # All elements are to come: they are waited for once.
            if _native.meets_hosts(self.base) and not _native.is_at_hand(self.base):
                _native.Stack(self.base._stack).flush(True)
        self._index += 1
        return _native.scalar_at_hand(self.base[next(self._places)])

    def __len__(self):
        return self.base.size

    def __getitem__(self, key):
        result = self.base.reshape(-1)[self._checked(key)]
        return _native.scalar_at_hand(result) if result._scalar else _native.cast(result, result._code)

    def _checked(self, key):
        """The key as an index into the elements, after NumPy's checks."""
        if isinstance(key, tuple):
            if len(key) > 1:
                raise IndexError(f"too many indices for flat iterator: flat iterator is 1-dimensional, but {len(key)} were indexed")
            key = key[0] if key else ...
        if isinstance(key, (bool, np.bool_)):
            text = "0-dimensional boolean index of an iterator is deprecated; use integers or slices"
            warn(text, DeprecationWarning)
            return [0] if key else []
        if isinstance(key, (list, flatiter, np.flatiter)):
            return _whole_numbers(np.asarray(lower_nested(key)))
        if key is None or isinstance(key, str):
            raise IndexError(_WRONG_KEY)
        extent = self.base.size
        if hasattr(key, "dtype") and key.dtype == bool and key.shape != (extent,):
            sizes = f"dimension is {extent} but boolean dimension is {key.size}"
            raise IndexError(f"boolean index did not match indexed flat iterator along dimension 0; {sizes}")
        return key

    def __setitem__(self, key, value):
        if isinstance(key, tuple) and not key:
            raise IndexError("Assigning to a flat iterator with a 0-D index is not supported")
        key = self._checked(key)
        if repeats(self.base):
            to_write(self.base).flat[fallback.lower(key)] = fallback.lower(value)
            return
        flat, values = self.base.reshape(-1), self._elements(key, value)
        if flat._memory == self.base._memory and values.size == 1:
            flat[key] = values
        else:
            search.put(self.base, self._numbers().reshape(-1)[key], values)

    def _elements(self, key, value):
        """The assigned value, as elements; a value that does not fit into one element is an error of another class, as in NumPy."""
        if not isinstance(key, (int, np.integer)):
            return assigned(value, self.base.dtype).reshape(-1)
        try:
            plain = type(value) is _native.ndarray and not value.ndim
            values = assigned(value if plain else indexing.element_of(value, self.base.dtype), self.base.dtype)
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError("Error setting single item of array.") from error
        return values.reshape(())

    def __delitem__(self, key):
        raise TypeError("Cannot delete iterator elements")

    def __eq__(self, other):
        return self.copy() == other


def _whole_numbers(index):
    """A list of indices as an array of whole numbers."""
    if index.dtype == bool and index.size:
        raise IndexError("boolean indices for iterators are not supported because of their ambiguity")
    if index.dtype.kind in "SUO" and index.size:
        raise IndexError(_WRONG_KEY)
    if index.dtype.kind == "f" and index.size:
        warn("Invalid non-array indices for iterator objects are deprecated", DeprecationWarning)
    return index.astype(np.intp)

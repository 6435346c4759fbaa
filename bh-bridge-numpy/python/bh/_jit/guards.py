"""The facts that distinguish calls of a traced function: the values that it reads, and the state of the objects that it reaches."""

import builtins
import collections
import functools
import operator
import sys
import types
import weakref

import numpy as np

from .. import _native
from .._ufunc.ufunc import UFUNCS

_array = _native.ndarray


class Unseen(Exception):
    """Raised for what a function reads and whose changes no guard sees."""


# Modules of the standard library whose functions depend on more than their arguments, and whose objects change unseen.
_CHANGING = frozenset(
    "os posix nt sys time random _random datetime secrets uuid threading _thread _threading_local contextvars _contextvars weakref"
    " _weakref gc locale _locale io _io socket select subprocess asyncio multiprocessing queue _queue importlib inspect".split()
)
# Assertions in tests name functions of pytest.
_SETTLED = ({"bh", "numpy", "pytest", "_pytest"} | sys.stdlib_module_names) - _CHANGING
# Functions of Python's own of this kind.
_READERS = (builtins.eval, builtins.exec, builtins.globals, builtins.input, builtins.open, builtins.__import__)


def is_settled(module):
    """Do functions of this module depend on their arguments only?"""
    return str(module).partition(".")[0] in _SETTLED


def is_changing(module):
    """Does this module of the standard library read the environment, clocks or generators?"""
    return str(module).partition(".")[0] in _CHANGING


def is_compiled(value):
    """Is this a function that is not written in Python?"""
    if isinstance(value, (type, types.FunctionType, types.MethodType)) or not callable(value):
        return False
    owner = getattr(value, "__self__", None)
    return hasattr(value, "__qualname__") and (owner is None or isinstance(owner, types.ModuleType))


def is_steady(value):
    """Is this such a function, and do its results depend on its arguments only?"""
    return is_compiled(value) and not is_changing(value.__module__) and not any(value is reader for reader in _READERS)


def fixed(value, name):
    """A key that distinguishes a value from others."""
    kind = type(value)
    if kind is float:
        return kind, value if value == value and value else repr(value)
    if kind in (int, bool, str, bytes) or value is None or value is ...:
        return kind, value
    if kind is complex:
        return kind, repr(value)
    if kind is slice:
        return kind, tuple(fixed(part, name) for part in (value.start, value.stop, value.step))
    if kind in (range, frozenset):
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, np.ndarray):
        raise TypeError(f"{name} is an array of NumPy, whose changes bh does not see: make it an array of bh")
    taken = "arrays, numbers, strings and collections of them; others have to be static"
    raise TypeError(f"{name} is of class {kind.__name__}: jit takes {taken}")


# Classes of values that `fixed` tells apart, and of objects that do not change.
PLAIN = frozenset((bool, int, float, complex, str, bytes, range, frozenset, type(None), type(...), slice))
UNCHANGING = (
    np.dtype,
    np.ufunc,
    type(UFUNCS["add"]),
    property,
    types.CodeType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GenericAlias,
    types.CellType,
    operator.attrgetter,
    operator.itemgetter,
    operator.methodcaller,
)
# Classes of objects that hide what changes.
_HIDING = (memoryview, weakref.ref)
# Attributes of classes that no function reads, or that hold nothing of its own.
_APART = frozenset(("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__", "__static_attributes__"))
# Objects whose parts one guard goes through, at most.
_MOST = 4096


class State:
    """Writes down all that a function can read of outside values: their arrays, and a key for the rest.

    `same` gives a mark to objects that are known by their identity.
    """

    def __init__(self, arrays, key, same):
        self._arrays, self._key, self._same = arrays, key, same
        self._seen = {}

    def add(self, value, name):
        """Adds a value, which messages call by a name."""
        kind = type(value)
        if kind is _array:
            self._arrays.append(value)
            self._key.append(_array)
        elif kind in PLAIN or isinstance(value, np.generic):
            self._key.append(fixed(value, name))
        elif isinstance(value, UNCHANGING) or kind is object:
            self._key.append(self._same(value))
        elif id(value) in self._seen:
            self._key.append((State, self._seen[id(value)][0]))
        else:
            self._seen[id(value)] = len(self._seen), value
            if len(self._seen) > _MOST:
                raise Unseen(f"{name} has more parts than are compared at each call")
            self._add_parts(value, kind, name)

    def _all(self, what, values, name):
        self._key.append(what)
        for value in values:
            self.add(value, name)

    def _add_parts(self, value, kind, name):
        if is_compiled(value):
            return self._compiled(value, name)
        for classes, add in _PARTS:
            if isinstance(value, classes):
                return add(self, value, kind, name)
        self._instance(value, kind, name)

    def _compiled(self, value, name):
        if not is_steady(value):
            raise Unseen(f"{name} gives another result at each call")
        self._key.append(self._same(value))
        self.add(getattr(value, "__wrapped__", None), name)

    def _sequence(self, value, kind, name):
        self._all((kind, len(value)), list(value), name)
        self._own(value, kind, name)

    def _mapping(self, value, kind, name):
        self._all((kind, tuple(value)), list(value.values()), name)
        self._own(value, kind, name)

    def _set(self, value, kind, name):
        self._key.append((kind, frozenset(value)))
        self._own(value, kind, name)

    def _bytes(self, value, kind, name):
        self._key.append((kind, bytes(value)))

    def _partial(self, value, kind, name):
        self._all(kind, (value.func, value.args, value.keywords, vars(value)), name)

    def _method(self, value, kind, name):
        self._all(kind, (value.__func__, value.__self__), name)

    def _wrapped(self, value, kind, name):
        self._all(kind, (value.__func__,), name)

    def _module(self, value, kind, name):
        self._key.append(self._same(value))
        if not is_settled(value.__name__):
            names = [own for own in vars(value) if not own.startswith("__")]
            self._all(tuple(names), [vars(value)[own] for own in names], name)

    def _builtin(self, value, kind, name):
        owner = value.__self__
        if isinstance(owner, type) and is_changing(owner.__module__):
            raise Unseen(f"{name} gives another result at each call")
        self._all(value.__name__, (owner,), name)

    def _function(self, value, kind, name):
        if is_changing(value.__module__):
            raise Unseen(f"{name} gives another result at each call")
        self._key.append(self._same(value))
        if not is_settled(value.__module__):
            cells = [_content(cell) for cell in value.__closure__ or ()]
            self._all(self._same(value.__code__), (value.__defaults__, value.__kwdefaults__, vars(value), cells), name)

    def _class(self, value, kind, name):
        self._key.append(self._same(value))
        for owner in value.__mro__:
            if not is_settled(owner.__module__) and not is_changing(owner.__module__):
                names = [own for own in vars(owner) if own not in _APART]
                self._all(tuple(names), [vars(owner)[own] for own in names], name)

    def _instance(self, value, kind, name):
        is_value = _is_value(kind)
        unseen = any(is_changing(owner.__module__) for owner in kind.__mro__) and not is_value or hasattr(kind, "__next__")
        if unseen or isinstance(value, _HIDING) or not (self._own(value, kind, name) or is_value):
            raise Unseen(f"{name} is of class {kind.__name__}, whose changes jit does not see")
        if is_value:
            self._key.append(self._same(value))

    def _own(self, value, kind, name):
        """Adds the attributes of an object and of its class. Are there any?"""
        slots = _slots(kind)
        has_own = hasattr(value, "__dict__") or slots
        if has_own:
            self.add(kind, name)
            self._mapping_of(getattr(value, "__dict__", {}), name)
            absent = object
            self._all(kind, [getattr(value, own, absent) for own in slots], name)
        return has_own

    def _mapping_of(self, attributes, name):
        self._all(tuple(attributes), list(attributes.values()), name)


# Kinds of objects, and what adds their parts.
_PARTS = (
    ((tuple, list, collections.deque), State._sequence),
    ((dict, types.MappingProxyType), State._mapping),
    ((set, frozenset), State._set),
    (bytearray, State._bytes),
    (functools.partial, State._partial),
    (types.MethodType, State._method),
    ((staticmethod, classmethod), State._wrapped),
    (types.ModuleType, State._module),
    ((types.BuiltinFunctionType, types.MethodWrapperType), State._builtin),
    (types.FunctionType, State._function),
    (type, State._class),
)


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        # Nothing yet.
        return cell


@functools.cache
def _slots(kind):
    """The names of a class's slots, as far as its author has given them."""
    owners = [owner for owner in kind.__mro__ if "__slots__" in vars(owner)]
    return tuple(name for owner in owners for name, slot in vars(owner).items() if type(slot) is types.MemberDescriptorType)


def _is_value(kind):
    """Are objects of this class compared by a value that does not change, as dates and paths are?"""
    return kind.__hash__ not in (None, object.__hash__) and kind.__eq__ is not object.__eq__

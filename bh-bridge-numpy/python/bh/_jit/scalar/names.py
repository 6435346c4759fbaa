"""The meaning of names in the functions that are read: values of closures, modules and built-in functions, and their earlier values."""

import builtins
import types

import numpy as np

from ... import _native
from .ir import Const
from .kinds import literal

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_ARRAYS = (np.ndarray, _native.ndarray)


class Static:
    """Anything that is known while a function is read, such as another function. `place`: where an array was looked up."""

    __slots__ = ("value", "place")

    def __init__(self, value, place=None):
        self.value, self.place = value, place

    def __eq__(self, other):
        return type(other) is Static and self.value is other.value

    __hash__ = None


def lifted(value, place=None):
    """A value of the program around: a number is a constant, and so are those of tuples."""
    if isinstance(value, _NUMBERS):
        return literal(value)
    return tuple(map(lifted, value)) if type(value) is tuple else Static(value, place)


def is_array(value):
    """May it be subscripted with what differs from element to element?"""
    return type(value) is Static and type(value.value) in _ARRAYS


class Names:
    """Looks names of a function up, and knows whether they mean the same for another function of the same text. Arrays may be
    others of the same form, but one where there was one, and several where there were several."""

    def __init__(self, function):
        self._function = function
        # Owners (none: the function), names, and what was found: of an array the first place with the same one, and its form.
        self._seen = []

    def look_up(self, function, name):
        """The value of a name that is none of the function's own."""
        return self._note(None if function is self._function else function, name, _find(function, name))

    def attribute(self, value, name):
        """An attribute of what is known."""
        return self._note(value, name, getattr(value, name))

    def items(self, value):
        """The items of a list of the program around."""
        found = tuple(value)
        self._note(value, None, found)
        return lifted(found)

    def _note(self, owner, name, found):
        self._seen.append((owner, name, found, _form(found)))
        return lifted(found, len(self._seen) - 1)

    def name_at(self, place):
        """The name that was looked up at a place."""
        return self._seen[place][1]

    def forget(self):
        """Lets the function and the arrays go, which may be large."""
        first = {}
        for place, (owner, name, found, form) in enumerate(self._seen):
            if form is not None:
                self._seen[place] = owner, name, first.setdefault(id(found), place), form
        self._function = None

    def array(self, place, function):
        """The array that a function has at a place."""
        owner, name, _, _ = self._seen[place]
        return _now(owner, name, function)

    def still_hold(self, function):
        """Does everything mean what it meant?"""
        arrays = {}
        for owner, name, before, form in self._seen:
            now = _now(owner, name, function)
            if _form(now) != form:
                return False
            if form is not None:
                if arrays.setdefault(before, now) is not now:
                    return False
            elif not means_the_same(before, now):
                return False
        return len(set(map(id, arrays.values()))) == len(arrays)


def means_the_same(before, now):
    """Is a function that was read with one value the same with another one?"""
    if type(before) is tuple and type(now) is tuple:
        return len(before) == len(now) and all(map(means_the_same, before, now))
    if type(before) is types.MethodType:
        return now == before
    return now is before or isinstance(now, _NUMBERS) and Const(now) == lifted(before)


def _form(value):
    """The properties that all arrays at a place share; None for other values."""
    return (type(value), value.shape, value.dtype) if type(value) in _ARRAYS else None


def _now(owner, name, function):
    owner = function if owner is None else owner
    if name is None:
        return tuple(owner)
    return _find(owner, name) if hasattr(owner, "__code__") else getattr(owner, name, None)


def _find(function, name):
    code = function.__code__
    if name in code.co_freevars:
        return function.__closure__[code.co_freevars.index(name)].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name)

"""What names mean in the functions that are read: values of closures, modules and built-in functions, and what they were."""

import builtins

import numpy as np

from .. import _native
from .ir import Const
from .kinds import literal

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)


class Static:
    """Anything that is known while a function is read, such as another function."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Static and self.value is other.value

    __hash__ = None


def lifted(value):
    """A value of the program around: a number is a constant, and so are those of tuples."""
    if isinstance(value, _NUMBERS):
        return literal(value)
    return tuple(map(lifted, value)) if type(value) is tuple else Static(value)


def is_array(value):
    """May it be subscripted with what differs from element to element?"""
    return type(value) is Static and isinstance(value.value, (np.ndarray, _native.ndarray))


class Names:
    """Looks names up, and knows whether they still mean the same."""

    def __init__(self):
        self._seen = []

    def look_up(self, function, name):
        """What a name that is none of the function's own means."""
        found = _find(function, name)
        self._seen.append((function, name, found, _form(found)))
        return lifted(found)

    def attribute(self, value, name):
        """An attribute of what is known."""
        found = getattr(value, name)
        self._seen.append((value, name, found, _form(found)))
        return lifted(found)

    def still_hold(self):
        """Does everything that was looked up mean what it meant?"""
        for owner, name, before, form in self._seen:
            now = _find(owner, name) if hasattr(owner, "__code__") else getattr(owner, name, None)
            if now is not before and not (isinstance(now, _NUMBERS) and Const(now) == lifted(before)) or _form(now) != form:
                return False
        return True


def _form(value):
    """What else of a value may change."""
    return (value.shape, value.dtype) if isinstance(value, (np.ndarray, _native.ndarray)) else None


def _find(function, name):
    code = function.__code__
    if name in code.co_freevars:
        return function.__closure__[code.co_freevars.index(name)].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name)

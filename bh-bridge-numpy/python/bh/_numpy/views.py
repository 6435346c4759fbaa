"""Arguments as other packages get them: NumPy's arrays over the memory of bh's, NumPy's numbers and functions for those of bh."""

import functools
import types

import numpy as np

from .. import _native
from .._array.subclassing import originals
from .._ufunc.ufunc import UFUNCS
from .fallback import lower, ndarray, shown_by

# Lists longer than this hold numbers, unless the first element is an array.
_SHORT = 1000

_FUNCTIONS = {types.FunctionType, _native.Function, type(UFUNCS["add"])}
# The classes of objects that other packages get in another form, besides boxes of them.
_CLASSES = {ndarray, types.ModuleType, types.MethodType, type(ndarray), *_FUNCTIONS}
_BOXES = {list, tuple, dict}
# The native half looks for these classes in arguments and in boxes, and calls Python if it finds one.
LOOKED_FOR = list(_CLASSES)


@functools.cache
def _modules():
    """NumPy's modules by those of bh."""
    import bh

    return {bh: np} | {getattr(bh, part): getattr(np, part) for part in ("fft", "linalg", "random")}


class Exchange:
    """One call of another package's function: the forms in which it gets its arguments, and the way back."""

    __slots__ = ("_arrays", "_boxes", "_answers")

    def __init__(self, answers=None):
        # The view of each array; copies of lists and dictionaries with their originals; the function that wraps callbacks.
        self._arrays, self._boxes, self._answers = {}, [], answers

    def give(self, value):
        """The form in which the function gets a value."""
        kind = type(value)
        if kind is ndarray:
            if value._scalar:
                return lower(value)
            # Functions that fill arrays of any size may enlarge one that has no elements, and owns its memory.
            array = np.asarray(value) if value.size else np.empty(value.shape, value.dtype)
            self._arrays[id(array)] = array, value
            return array
        if kind in _BOXES:
            return self._box(value, kind)
        if kind not in _CLASSES:
            return tuple.__new__(kind, map(self.give, value)) if isinstance(value, tuple) and hasattr(kind, "_fields") else value
        if kind is types.ModuleType:
            return _modules().get(value, value)
        if kind is type(ndarray):
            return np.ndarray if value is ndarray else value
        if self._answers and kind in (types.FunctionType, types.MethodType):
            return self._answers(value)
        return originals.get(value) or lower(value) if kind in _FUNCTIONS else value

    def _box(self, value, kind):
        """A list, tuple or dictionary, copied if the function gets one of its elements in another form."""
        few = value.values() if kind is dict else value if len(value) <= _SHORT else value[:1]
        if not any(type(one) in _CLASSES or type(one) in _BOXES or isinstance(one, tuple) for one in few):
            return value
        given = [self.give(one) for one in (few if kind is dict else value)]
        if all(map(_is, given, few if kind is dict else value)):
            return value
        if kind is tuple:
            return tuple(given)
        copy = given if kind is list else dict(zip(value, given))
        self._boxes.append((value, copy, list(given), list(copy) if kind is dict else None))
        return copy

    def back(self, result):
        """A result as the program gets it: views of an argument's memory are views of its array. Changes of boxes reach the program's."""
        for own, copy, given, names in self._boxes:
            self._return_box(own, copy, given, names)
        for array, own in self._arrays.values():
            if array.size and not own.size:
                own.resize(array.shape, refcheck=False)
                own[...] = array
        return self._own(result) if type(result) in _RETURNED else result

    def _own(self, result):
        kind = type(result)
        if kind is Answering:
            return result.__wrapped__
        if kind is np.ndarray:
            given = self._arrays.get(id(result))
            own = given[1] if given is not None else None if result.base is None else shown_by(result)
            return result if own is None else own
        if kind is types.MethodType:
            inner = result.__func__
            return types.MethodType(inner.__wrapped__, result.__self__) if type(inner) is Answering else result
        if kind is tuple or kind is list and len(result) <= _SHORT:
            own = [self._own(one) if type(one) in _RETURNED else one for one in result]
            if not all(map(_is, own, result)):
                if kind is tuple:
                    return tuple(own)
                result[:] = own
        return result

    def _return_box(self, own, copy, given, names):
        """Gives the program's list or dictionary the elements that the function has put into its copy."""
        now = list(copy.values()) if names is not None else copy
        if len(now) == len(given) and all(map(_is, now, given)) and (names is None or list(copy) == names):
            return
        if names is None:
            own[:] = map(self._own, copy)
        else:
            own.clear()
            own.update((name, self._own(one)) for name, one in copy.items())


def _is(one, other):
    return one is other


def seen(value):
    """The form in which another package gets a value."""
    return Exchange().give(value)


def given_views(function, returns=False):
    """A function of another package that gets its arguments so. To `isinstance`, and in its attributes, it stays the kind of
    function that it was. Calls without anything of bh go straight on. `returns`: arguments that it returns, and changes of lists, come
    back as the program's own."""
    if type(function) is _native.Taught:
        return function
    exchanged = functools.partial(exchange, None, returns)
    return functools.update_wrapper(_native.Taught(function, exchanged, LOOKED_FOR), function)


def exchange(answers, returns, args, kwargs):
    """The arguments of a call as another package gets them, and what makes the program's result of its own; None if that is the same."""
    made = Exchange(answers)
    give = made.give
    return tuple(map(give, args)), {name: give(value) for name, value in kwargs.items()}, made.back if returns else None


class Answering:
    """A function of the program as other packages get it: its results are NumPy's arrays and numbers. In everything else it is
    that function."""

    def __init__(self, function):
        object.__setattr__(self, "__wrapped__", function)

    def __call__(self, /, *args, **kwargs):
        return seen(self.__wrapped__(*args, **kwargs))

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __class__(self):
        return type(self.__wrapped__)

    def __getattr__(self, name):
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name, value):
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name):
        delattr(self.__wrapped__, name)

    def __eq__(self, other):
        return self.__wrapped__ == (other.__wrapped__ if type(other) is Answering else other)

    def __hash__(self):
        return hash(self.__wrapped__)

    def __repr__(self):
        return repr(self.__wrapped__)

    def __reduce__(self):
        return _itself, (self.__wrapped__,)


def _itself(function):
    return function


# The classes of results that may hold what the program knows in another form.
_RETURNED = {np.ndarray, tuple, list, Answering, types.MethodType}

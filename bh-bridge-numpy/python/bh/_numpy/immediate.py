"""Functions, and advanced indexing, that NumPy carries out at once: where all operands are little and computed, or a record of the call
would be long, or where it sorts. `native_calls` has most calls on what has been computed served without these.

Only functions are in here whose results have the same bits either way: they choose, count, find and order, or are NumPy's code over
operations that round in one way. So it does not matter when operands are computed.
"""

import functools
import sys

import numpy as np

from .. import _native
from .._array.element_types import BOOL
from .._array.memory import in_process
from .._jit.symbols import here
from .fallback import given, lift, lower, stack_of, taken
from .registry import AWAITED, COMPUTED, COUNTED, MOVED, SORTED

ndarray = _native.ndarray

# The most elements of a little operand, and of one of functions that move elements or count them, where NumPy goes once over what takes
# bh a few kernels.
_MOST, _MOST_MOVED = 1 << 14, 1 << 18
# The most elements of an array that is copied for a call which waits for it; others are lent.
_COPIED = 1 << 10
# With more elements than the first number, a stack of at least as many threads as the second is faster than NumPy.
_MANY_ELEMENTS, _MANY_THREADS = 1 << 20, 8
_NUMBERS = {int, float, complex, bool, type(None), np.float64, np.int64, np.bool_}
# Options in words with which results are the same; others fold, such as the modes and bins that need a mean.
WORDS = frozenset("""left right linear lower higher nearest midpoint constant edge reflect symmetric wrap quicksort mergesort heapsort
stable introselect big little full same valid reduced complete r L U""".split())
# The most elements of an operand that may be copied for NumPy without asking how many threads the stack has.
MOST_SORTED = 1 << 16
MOST = {COMPUTED: _MOST, MOVED: _MOST_MOVED, AWAITED: _MOST, SORTED: MOST_SORTED, COUNTED: _MOST}


class Later(Exception):
    """Raised for what is not carried out at once."""


def _operand(value, form):
    """NumPy's form of an operand; `form` makes that of an array of bh."""
    kind = type(value)
    if kind is ndarray:
        return form(value)
    if kind is np.ndarray and (form is _awaited or form is not _moved and value.size <= _MOST and not here.records):
        return value
    if kind in (list, tuple) and (len(value) <= _MOST or form is _awaited):
        return value if _NUMBERS.issuperset(map(type, value)) else kind(_operand(part, form) for part in value)
    return _option(value)


def _little(array, most=_MOST):
    """A little array whose data is computed, or can be without waiting."""
    if array.size > most or not _native.comes_to_hand(array):
        raise Later
    return lower(array)


def _moved(array):
    """As `_little`, for a function that moves elements."""
    return _little(array, _MOST_MOVED)


def _little_awaited(array):
    """A little array that is waited for, where it is in the memory of this process."""
    if array.size > _MOST or not (_native.is_at_hand(array) or in_process(array._stack)):
        raise Later
    return lent(array)


def _awaited(array):
    """An array that is waited for."""
    if not in_process(array._stack) or array.size > _MANY_ELEMENTS and _threads(array._stack) >= _MANY_THREADS:
        raise Later
    return lent(array)


def _counted(array):
    """An array that is waited for, unless many threads would share the work."""
    if array.size > _MOST and in_process(array._stack) and _threads(array._stack) >= _MANY_THREADS:
        raise Later
    return _awaited(array)


def is_awaited(stack):
    """May a call wait for arrays of a stack, as they are in the memory of this process and nothing is recorded for later?"""
    return not here.records and in_process(stack)


def lent(array):
    """NumPy's form of an array for one call: its own memory, unless a copy takes less time, or makes 0 and 1 of truth values. A part that
    the result shares is copied."""
    return lower(array) if array.size <= _COPIED or array._scalar or array._code == BOOL else np.asarray(memoryview(array))


def _threads(stack):
    return int(_native.Stack(stack).message_first("threads") or 1)


def moved(value):
    """NumPy's form of an operand of a function that moves elements. Raises `Later` if the call has to be recorded."""
    return _operand(value, _moved)


def _option(value):
    kind = type(value)
    if kind in (list, tuple):
        is_known = len(value) <= _MOST and _NUMBERS.issuperset(map(type, value))
    else:
        is_known = kind in _NUMBERS or kind is str and value in WORDS
    if isinstance(value, _native.Ufunc):
        return value._bh_numpy
    if not is_known:
        raise Later
    return value


# The conversion of a call's operands to NumPy's form, by the word of the registry.
_FORMS = {COMPUTED: _little, MOVED: _moved, AWAITED: _little_awaited, SORTED: _awaited, COUNTED: _counted}


def carried_out(original, row, args, kwargs):
    """The result of NumPy's function, called immediately."""
    operands, form = row.operands, _FORMS[row.by_numpy]
    if row.named and len(args) > operands or not kwargs.get("copy", True) or "descending" in kwargs:
        raise Later
    seen = (*(_operand(one, form) for one in args[:operands]), *map(_option, args[operands:]))
    names = row.arrays.split()[:operands]
    options = {name: _operand(value, form) if name in names else _option(value) for name, value in kwargs.items()}
    return taken(original, seen, options, stack_of(args, kwargs))


def chosen(array, key):
    """The elements that a key with arrays or lists of indices selects, as a new array; None if the key is not served immediately."""
    parts = key if type(key) is tuple else (key,)
    if not any(type(part) is list or type(part) is ndarray and part.ndim for part in parts):
        return None
    try:
        indices = tuple(part if type(part) is slice or part is Ellipsis else _operand(part, _little) for part in parts)
        source = _operand(array, _little)
    except Later:
        return None
    return lift(source[indices], stack_of(array))


def at_hand(function, original, row, method=False):
    """The function, or the method; if its row says so, by NumPy's at once where that is the same."""
    if not row.by_numpy or row.changes:
        return function

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        # Compositions of this package, and users of the array API, get arrays also where NumPy makes numbers.
        if _native.follows_array_api() or sys._getframe(1).f_globals.get("__name__", "").startswith("bh."):
            return function(*args, **kwargs)
        if method and type(args[0]) is not ndarray:
            # An instance of another class.
            return function(*args, **kwargs)
        try:
            return carried_out(original, row, args, kwargs)
        except Later:
            return given(function(*args, **kwargs))

    return wrapper

"""Work that bh leaves to NumPy: arguments become NumPy's arrays, results come back as bh's.

A native function that meets what it cannot do raises `Fallback` before it has changed anything. Each use of NumPy is
counted, and warned of once for each place that calls it; `BH_FALLBACK` is `warn`, `error` or `silent`.
"""

import functools
import inspect
import os
import sys
import warnings
import weakref
from collections import Counter

import numpy as np

from .. import _native
from .._array.element_types import CODE, MOST_DIMENSIONS, code_of
from .._array.layout import axes_in_memory
from .registry import FUNCTIONS

ndarray = _native.ndarray


class Fallback(Exception):
    """Raised by native functions whose work NumPy has to do; the text says why."""


class FallbackWarning(UserWarning):
    """NumPy did what bh cannot do yet: the arrays went to NumPy and back."""


class FallbackError(RuntimeError):
    """bh cannot do this itself, and `BH_FALLBACK=error` forbids to use NumPy."""


counts = Counter()
places = {}
_warned = set()
_mode = os.environ.get("BH_FALLBACK", "warn")
if _mode not in ("warn", "error", "silent"):
    raise ValueError(f"BH_FALLBACK is '{_mode}', but must be warn, error or silent")


def mode(new=None):
    """The present way to deal with fallbacks (warn, error or silent), after setting it if one is given."""
    global _mode
    before = _mode
    if new is not None:
        if new not in ("warn", "error", "silent"):
            raise ValueError(f"the mode is '{new}', but must be warn, error or silent")
        _mode = new
    return before


def to_numpy(array):
    """A copy of an array in NumPy's memory, with its order of dimensions. Waits for the elements."""
    axes = None if array._contiguous else axes_in_memory("K", array.shape, array._stride)
    if axes is None:
        result = np.empty(array.shape, array.dtype)
    else:
        result = np.empty([array.shape[axis] for axis in axes], array.dtype).transpose(np.argsort(axes))
    _native.read_buffer(array, result if result.ndim else result.reshape(1))
    return result


def _span(shape, strides, most):
    """How many elements there are from the first to the last one in memory; None where elements share memory, and where these are
    more than `most` times the elements."""
    reach, size = 1, 1
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(strides, shape) if extent > 1):
        if stride < reach:
            return None
        reach, size = reach + stride * (extent - 1), size * extent
    return reach if reach <= most * size else None


def _as_it_lies(array):
    """A copy of an array in NumPy's memory, with its strides, which NumPy's functions look at."""
    shape, strides = array.shape, array._stride
    if array._contiguous or 0 in shape:
        return to_numpy(array)
    repeated = [stride == 0 and extent > 1 for stride, extent in zip(strides, shape)]
    if any(repeated):
        # Repeated elements are read once.
        once = _as_it_lies(array[tuple(slice(0, 1) if one else slice(None) for one in repeated)])
        steps = [0 if one else step for one, step in zip(repeated, once.strides)]
        return np.lib.stride_tricks.as_strided(once, shape, steps)
    span = _span(shape, strides, 2)
    if span is None:
        return to_numpy(array)
    first = -sum(stride * (extent - 1) for stride, extent in zip(strides, shape) if stride < 0)
    steps = [stride * array.itemsize for stride in strides]
    result = np.ndarray(shape, array.dtype, np.empty(span, array.dtype), first * array.itemsize, steps)
    _native.read_buffer(array, result)
    return result


def from_host(array, code, stack=None, as_it_lies=False):
    """A copy of a NumPy array of the type with this code, with its order of dimensions or, as it lies, its strides."""
    if array.nbytes >= 2**56:
        # NumPy says that there is no memory for that.
        array = np.array(array)
    if array.ndim:
        steps = [stride // array.itemsize for stride in array.strides]
        whole = as_it_lies and not array.flags.forc and _span(array.shape, steps, 16)
        if whole and min(steps) >= 0:
            result = _native.window(_native.empty((whole,), code, stack), 0, list(array.shape), steps)
            _native.write_buffer(result, array)
            return result
        axes = None if array.flags.c_contiguous else axes_in_memory("K", array.shape, steps)
        if axes is None:
            return _native.copy_buffer(array, code, stack)
        result = _native.empty(array.shape, code, stack, axes)
        _native.write_buffer(result, array)
        return result
    return _native.copy_buffer(array.reshape(1), code, stack, True)


# Memory of this size is taken over rather than copied.
_LARGE = 1 << 16

def _can_be_given_away(array):
    """Has the array, which nobody else refers to, memory of its own that can become that of an array of bh?"""
    flags = array.flags
    large = array.nbytes >= _LARGE and array.dtype in CODE and array.ndim <= MOST_DIMENSIONS
    return large and flags.owndata and flags.c_contiguous and flags.writeable


def shown_by(array):
    """The array of bh whose memory an array of NumPy shows, as a view like that one; None where there is none."""
    base, whole = None, array
    while whole is not None and type(whole) is not ndarray:
        if type(base) is memoryview and not isinstance(whole, np.ndarray):
            # Memory of another library, whose objects may go round in circles.
            return None
        base, whole = whole, whole.obj if type(whole) is memoryview else getattr(whole, "base", None)
    if type(base) is not memoryview or whole is None or not whole._writeable or CODE.get(array.dtype) != whole._code:
        return None
    if array.ndim > MOST_DIMENSIONS:
        return None
    address = lambda one: one.__array_interface__["data"][0]
    offset, size = address(array) - address(np.asarray(base)), array.itemsize
    if offset % size or any(stride % size for stride in array.strides):
        return None
    view = _native.window(whole, whole._start + offset // size, list(array.shape), [stride // size for stride in array.strides])
    view._writeable = array.flags.writeable
    return view


def overwrite(array, source):
    """Overwrites an array with the elements of a NumPy array of the same type and shape."""
    _native.write_buffer(array, source if source.ndim else source.reshape(1))


def from_numpy(array, as_it_lies=False, stack=None):
    """A copy of a NumPy array, or the array itself if bh lacks its type; as it lies, it keeps its strides."""
    code = code_of(array.dtype)
    if code is None or array.ndim > MOST_DIMENSIONS:
        return array
    return from_host(array, code, stack, as_it_lies)


# Types whose values `lower` leaves as they are.
_LEAVES = frozenset((bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, type, np.dtype, np.ndarray, *np.sctypeDict.values()))


def lower(value):
    """The value with all of bh's arrays in it replaced by NumPy's; the value itself if it holds none."""
    kind = type(value)
    if kind is ndarray:
        result = _as_it_lies(value)
        return result[()] if value._scalar else result
    if kind in _LEAVES:
        return value
    if kind is tuple or kind is list:
        return value if _LEAVES.issuperset(map(type, value)) else kind(map(lower, value))
    if kind is dict:
        return {key: lower(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(lower(part) for part in value))
    if hasattr(kind, "__getattr__") and not _is_of_package(kind):
        # An object with any attribute that is asked for.
        return value
    return getattr(value, "_bh_numpy", value)


def _is_of_package(kind):
    """Is it a class of this package?"""
    return kind.__module__.partition(".")[0] == "bh"


def lift(value, stack=None):
    """The value with all of NumPy's arrays in it replaced by bh's, on a stack or that of new arrays."""
    kind = type(value)
    if isinstance(value, np.ndarray):
        return from_numpy(value, True, stack) if kind is np.ndarray else value
    if kind is tuple or kind is list:
        return kind(lift(part, stack) for part in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(lift(part, stack) for part in value))
    return value


def given(result, frames=1):
    """The result of a function for its caller, `frames` frames above: for the program, computed scalars are NumPy's."""
    if type(result) is not ndarray or not result._scalar or _native.follows_array_api():
        return result
    name = sys._getframe(frames + 1).f_globals.get("__name__", "")
    return result if name == "bh" or name.startswith("bh.") else _native.scalar_at_hand(result)


def invoke(function, args, kwargs):
    """Calls a function of NumPy. Arguments that NumPy refuses are passed in another form: objects that show themselves as arrays of bh as
    ones that show NumPy's, and arrays of objects that hold bh's as ones that hold NumPy's."""
    try:
        return function(*args, **kwargs)
    except ValueError as error:
        if not any(text in str(error) for text in _REFUSALS):
            raise
    return function(*shown(args), **{name: shown(value) for name, value in kwargs.items()})


# Parts of NumPy's messages about objects that turn out to be, or to hold, arrays of bh.
_REFUSALS = ("__array__ method not producing an array", "setting an array element with a sequence")


def shown(value):
    """The value with all objects in it that show themselves as arrays of bh, or as arrays of objects with such, replaced by
    NumPy's arrays."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(shown(part) for part in value)
    if isinstance(value, (np.generic, type)):
        return value
    if hasattr(kind, "__array__"):
        made = value if isinstance(value, np.ndarray) else value.__array__()
    elif kind is memoryview or hasattr(value, "__array_interface__") or hasattr(value, "__array_struct__"):
        made = np.asarray(value)
    else:
        return value
    if type(made) is ndarray:
        return lower(made)
    holds = isinstance(made, np.ndarray) and made.dtype == object and any(type(one) is ndarray for one in made.flat)
    return np.frompyfunc(lower, 1, 1)(made) if holds else value


def taken(function, args, kwargs, stack=None):
    """The result of a function of NumPy, as bh's on a stack or that of new arrays; the memory of a new array is taken over."""
    return made(*_native.call_alone(invoke, (function, args, kwargs)), stack)


def made(value, is_alone, stack=None):
    """A result of NumPy, as bh's; `is_alone`: nobody else refers to it."""
    if is_alone and type(value) is np.ndarray and _can_be_given_away(value):
        return _native.donate_buffer(value, CODE[value.dtype], stack)
    return lift(value, stack)


def stack_of(*values):
    """The stack of the first array of bh among some values, or in boxes of them, where results belong that NumPy makes of them. None,
    which stands for the stack of new arrays, if there is none."""
    for value in values:
        kind = type(value)
        if kind is ndarray:
            return _native.Stack(value._stack)
        parts = value.values() if kind is dict else value if kind is tuple or kind is list else ()
        if not _LEAVES.issuperset(map(type, parts)) and (found := stack_of(*parts)) is not None:
            return found
    return None


def holds_array(value):
    """Is there an array of bh in the value?"""
    kind = type(value)
    if kind is ndarray:
        return True
    if kind is tuple or kind is list:
        return not _LEAVES.issuperset(map(type, value)) and any(holds_array(part) for part in value)
    return kind is dict and any(holds_array(part) for part in value.values())


# The types of a list's elements with which NumPy makes an array of numbers of it without asking anybody.
_NUMBERS = frozenset((bool, int, float, complex, np.bool_, np.int64, np.float64))


def is_of_numbers(value):
    """Is it a list or a tuple of numbers, or of such?"""
    if type(value) is not list and type(value) is not tuple:
        return False
    return _NUMBERS.issuperset(map(type, value)) or all(map(is_of_numbers, value))


def note(name, reason=""):
    """Counts a use of NumPy, and warns of it or forbids it."""
    counts[name] += 1
    if _mode == "silent":
        return
    file, line = _native.call_site()
    text = f"{name} runs in NumPy" + (f": {reason}" if reason else "")
    if _mode == "error":
        raise FallbackError(text)
    places.setdefault((file, line, name), 0)
    places[file, line, name] += 1
    if (file, line, name) not in _warned:
        _warned.add((file, line, name))
        try:
            warnings.warn_explicit(text, FallbackWarning, file or "<unknown>", line or 1)
        except FallbackWarning:
            # `-W error` does not apply to these warnings; `BH_FALLBACK=error` makes errors of them.
            pass


def call(function, args, kwargs, name=None, reason=""):
    """Calls a function of NumPy on bh's arrays; what it writes into `out` goes back into bh's array."""
    if holds_array(args) or holds_array(kwargs):
        note(name or getattr(function, "__name__", str(function)), reason)
    return deliver(function, args, kwargs)


class Shown:
    """Arguments with arrays of NumPy over the memory of bh's, and which is whose."""

    def __init__(self):
        self._given = {}

    def __call__(self, value):
        """A value as it is shown."""
        if type(value) in (list, tuple):
            return type(value)(map(self, value)) if holds_array(value) else value
        if type(value) is not ndarray or value._scalar:
            return value
        array = np.asarray(value)
        self._given[id(array)] = array, value
        return array

    def back(self, result):
        """The array that was shown as the result, or the result."""
        return self._given.get(id(result), (None, result))[1]


def call_beside(function, args, kwargs, name="", reason=""):
    """Calls a universal function, of NumPy's by this name, with operands that decide what it does, or that it may write to: both
    see the memory of bh's arrays."""
    if name and (holds_array(args) or holds_array(kwargs)):
        note(name, reason)
    shown = Shown()
    show = lambda value: lower(shown(value))
    result = invoke(function, tuple(map(show, args)), {name: show(value) for name, value in kwargs.items()})
    stack = stack_of(args, kwargs)
    return tuple(lift(shown.back(one), stack) for one in result) if type(result) is tuple else lift(shown.back(result), stack)


def call_on_memory(function, args, kwargs, name):
    """Calls a function of NumPy that bh knows nothing of on arrays over the memory of bh's, as it may write to its arguments."""
    if holds_array(args) or holds_array(kwargs):
        note(name)
    shown = Shown()
    memory = tuple(map(shown, args))
    if isinstance(function, np.ufunc) or "out" in kwargs:
        return deliver(function, memory, kwargs)
    result = invoke(function, memory, lower(kwargs))
    result, stack = shown.back(result), stack_of(args, kwargs)
    if type(result) is not np.ndarray:
        return lift(result, stack)
    if result.base is None:
        return from_numpy(result, stack=stack)
    # A view of an argument stays one.
    view = shown_by(result)
    is_view = view is None and any(isinstance(one, np.ndarray) and np.may_share_memory(one, result) for one in args)
    return result if is_view else from_numpy(result, stack=stack) if view is None else view


def deliver(function, args, kwargs, changed=None):
    """Calls a function of NumPy on bh's arrays; what it writes into `out`, or the first arguments, goes back into them."""
    out = kwargs.get("out")
    out = None if out is ... else out
    lowered, keywords = lower(args), lower(kwargs)
    if out is None and changed is None:
        return taken(function, lowered, keywords, stack_of(args, kwargs))
    outs = changed if changed is not None else out if isinstance(out, tuple) else (out,)
    for target in outs:
        if type(target) is ndarray and not target._writeable:
            raise ValueError("output array is read-only")
    targets = lowered if changed is not None else keywords["out"] if isinstance(out, tuple) else (keywords["out"],)
    result = invoke(function, lowered, keywords)
    if isinstance(function, np.ufunc) and changed is None and any(_decides_itself(target) for target in outs):
        return lift(result)
    if changed is None and not isinstance(result, (np.ndarray, np.generic, tuple)):
        # An operand's class has decided what the result is.
        return result
    for target, source in zip(outs, targets):
        if type(target) is ndarray:
            overwrite(target, np.asarray(source))
    if changed is not None:
        return result
    made = result if isinstance(result, tuple) else (result,)
    if isinstance(function, np.ufunc) and any(one is not target for one, target in zip(made, targets) if target is not None):
        # The class of an operand or output decides what the result is.
        return lift(result)
    return outs[0] if len(outs) == 1 else tuple(lift(one) if target is None else target for one, target in zip(made, outs))


def _decides_itself(target):
    """Is it an output whose class, which is none of arrays, says what universal functions do?"""
    return target is not None and type(target) is not ndarray and not isinstance(target, np.ndarray)


def falls_back_in_place(function):
    """As `falls_back`, for a function that changes its first argument."""
    name = function.__name__

    @functools.wraps(function)
    def wrapper(target, *args, **kwargs):
        if decided((target, *args)) or decided(kwargs.values()):
            return getattr(np, name)(target, *args, **kwargs)
        try:
            return function(target, *args, **kwargs)
        except Fallback as reason:
            note(f"numpy.{name}", str(reason))
        changed = lower(target)
        getattr(np, name)(changed, *lower(args), **lower(kwargs))
        if type(target) is ndarray:
            overwrite(target, changed)

    return wrapper


@functools.cache
def _parameters(function):
    """The names of a function's parameters, and the place of `out` among them; None where `out` has none."""
    parameters = inspect.signature(function).parameters
    names = list(parameters)
    takes_any = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())
    return names, names.index("out") if "out" in names and not takes_any else None


def with_named_output(function, args, kwargs):
    """The arguments of a call, with `out` and all later ones given by name."""
    names, place = _parameters(function)
    if place is None or place >= len(args):
        return args, kwargs
    return args[:place], {**dict(zip(names[place:], args[place:])), **kwargs}


# The `__array_function__` of classes that do not override functions, and classes that have none.
usual = {np.ndarray.__array_function__, None}
_PLAIN = _LEAVES | {ndarray}

# The function that teaches a class which decides about functions this package's, and the classes that it has seen.
teach, _seen = None, weakref.WeakSet()


def _meet(kind):
    """A class that decides about functions, before it does."""
    if kind not in _seen:
        _seen.add(kind)
        teach(kind)
    return True


def decided(values):
    """Is there an array among the values, or in a list of them, whose class has functions of its own? It need not be one of NumPy's."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is list or kind is tuple:
            # Lists of numbers may be long; those of arrays are short.
            if decided(value[:64]):
                return True
        elif getattr(kind, "__array_function__", None) not in usual:
            return _meet(kind)
    return False


def overrides(value):
    """Has the operand's class universal functions of its own, or none at all?"""
    kind = type(value)
    return kind not in _PLAIN and hasattr(kind, "__array_ufunc__") and not issubclass(kind, (np.ndarray, np.generic)) and _meet(kind)


def has_own(value, method):
    """Is it an object of another class that has this method?"""
    kind = type(value)
    if kind in _PLAIN or kind in (list, tuple) or isinstance(value, (np.ndarray, np.generic)) or _is_of_package(kind):
        return False
    return hasattr(value, method)


def falls_back(function, original=None):
    """A native function that leaves to NumPy's function of the same name what it raises `Fallback` for."""
    name = original.__name__ if original else function.__name__.rstrip("_")
    original, delegates = original or getattr(np, name), name in FUNCTIONS and FUNCTIONS[name].delegates
    method = name if delegates is True else delegates
    is_universal = isinstance(original, np.ufunc)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if decided(args) or kwargs and decided(kwargs.values()) or method and args and has_own(args[0], method):
            return lift(original(*args, **kwargs))
        if is_universal and any(map(overrides, args)):
            return lift(original(*args, **kwargs))
        try:
            return given(function(*args, **kwargs))
        except Fallback as reason:
            text = str(reason)
        except ValueError as error:
            # Of more dimensions than bh has, NumPy makes an array of its own.
            text = str(error)
            if "exceeds the limit of" not in text:
                raise
        return call(original, *with_named_output(function, args, kwargs), f"numpy.{name}", text)

    wrapper.__name__ = wrapper.__qualname__ = name
    return wrapper

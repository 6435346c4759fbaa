"""Warnings of floating-point errors, as NumPy's, for operations that were carried out where they were called."""

import functools
import sys
import threading

import numpy as np

from . import _fallback, _native
from ._convert import warn
from ._symbols import here

ndarray = _native.ndarray

# Modules between the program and universal functions, and the same of products.
_BETWEEN = ("bh._ufunc", "bh._reductions", "bh._folds")
PRODUCTS = ("bh._products", "bh._fallback")

# The processor's flags.
INVALID, ZERO, OVERFLOW = 1, 2, 4

# Divisions, of which whole numbers have errors without flags.
_DIVISIONS = ("floor_divide", "remainder", "fmod", "divmod")

# Operands with which arithmetic meets each error; these two stand for the largest number, and the least.
LARGEST, LEAST = "largest", "least"
_EXAMPLES = {
    "add": {OVERFLOW: (LARGEST, LARGEST), INVALID: (np.inf, -np.inf)},
    "subtract": {OVERFLOW: (LARGEST, LEAST), INVALID: (np.inf, np.inf)},
    "multiply": {OVERFLOW: (LARGEST, LARGEST), INVALID: (np.inf, 0)},
    "divide": {ZERO: (1, 0), OVERFLOW: (LARGEST, 0.5), INVALID: (0, 0)},
}


def again(function, arguments, **options):
    """Has NumPy do an operation again, and tells of the errors that it meets, at the program's line."""
    try:
        _tell(function, arguments, _fallback.lower(options))
    finally:
        # The flags that this has raised are none of the program's next operation.
        _native.take_flags()


def _tell(function, arguments, options):
    arguments, modes = _fallback.lower(arguments), np.geterr()
    warned = {kind: "call" for kind, mode in modes.items() if mode == "warn"}
    if not warned or {"call", "log"} & {*modes.values()}:
        # NumPy does what else is asked for, such as to raise.
        function(*arguments, **options)
        return
    found = []
    with np.errstate(**warned, call=lambda kind, flag: found.append(kind)):
        function(*arguments, **options)
    name = "cast" if function is np.ndarray.astype else function.__name__
    for kind in found:
        warn(f"{kind} encountered in {name}", RuntimeWarning)


def met(function, flags, dtype):
    """Tells of the errors that a function has met on operands that are gone."""
    dtype = np.dtype(dtype)
    examples = _EXAMPLES.get(function.__name__) if dtype.kind in "fc" else {ZERO: (1, 0)}
    for flag, operands in (examples or {}).items():
        if flags & flag:
            again(function, [_operand(number, dtype) for number in operands])


def _operand(number, dtype):
    """A number of these tables as an array."""
    if isinstance(number, str):
        number = np.finfo(dtype).max if number == LARGEST else np.finfo(dtype).min
    return np.full(1, number, dtype)


def divided(function, arguments):
    """Tells of the errors of a division of whole numbers by an array that is waited for."""
    modes = np.geterr()
    if not here.tracing and {modes["divide"], modes["over"]} != {"ignore"} and np.isin(_fallback.lower(arguments[1]), (0, -1)).any():
        again(function, arguments)


def after(function, arguments, out, result, where=True):
    """Tells of the errors of a call that went through Python, and was asked for by the program."""
    flags = _native.take_flags()
    results = result if isinstance(result, tuple) else (result,)
    if where is not True and where is not np._NoValue:
        # Elements that are left out are of no interest.
        known = all(type(one) is not ndarray or _native.is_at_hand(one) for one in (*results, where))
        if flags and known and any(_shows(one, _fallback.lower(where)) for one in results) and _asked_by_program():
            met(function, flags, results[0].dtype)
        return
    if function.__name__ in _DIVISIONS and results[0].dtype.kind in "iu":
        if _asked_by_program():
            _after_division(function, arguments, out, results[0])
        return
    if not all(type(one) is ndarray and _native.is_at_hand(one) for one in results) or not _asked_by_program():
        return
    shown = any(one.dtype.kind in "fc" and not np.isfinite(_fallback.lower(one)).all() for one in results)
    if shown and out is None:
        again(function, arguments)
    elif shown:
        met(function, flags or ZERO, results[0].dtype)


def _shows(result, where):
    """Is an element of the result no finite number where a mask is true?"""
    return result.dtype.kind in "fc" and not np.isfinite(_fallback.lower(result), where=where, out=np.ones(result.shape, bool)).all()


def _after_division(function, arguments, out, result):
    """Tells of the errors of a division of whole numbers, as far as its operands are known."""
    known = [type(one) is not ndarray or _native.is_at_hand(one) for one in arguments[:2]]
    if not known[1] and out is None and _native.may_wait(arguments[1]):
        divided(function, arguments)
        return
    if not known[1] or not np.isin(_fallback.lower(arguments[1]), (0, -1)).any():
        return
    if all(known) and out is None:
        again(function, arguments)
    elif result.size and not np.all(_fallback.lower(arguments[1])):
        met(function, ZERO, result.dtype)


def after_fold(function, array, axis, result):
    """The same, of a fold without further options."""
    flags = _native.take_flags()
    if asked_here():
        examine(function.reduce, (array, axis), (result,))
        return
    if flags and type(result) is ndarray and result.dtype.kind in "fc" and type(array) is ndarray and _native.is_at_hand(result):
        if not np.isfinite(_fallback.lower(result)).all() and _asked_by_program():
            again(function.reduce, (array, axis))


def after_pieces(method, arguments, result):
    """The same, of running folds and folds of slices, by a method of NumPy's function."""
    flags = _native.take_flags()
    if flags and result.dtype.kind in "fc" and _native.is_at_hand(arguments[0]) and _native.is_at_hand(result):
        if not np.isfinite(_fallback.lower(result)).all() and _asked_by_program():
            again(method, arguments)



def _asked_by_program(between=_BETWEEN):
    """Did the program call the universal function, and not a composition of this package?"""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in between:
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "") if frame is not None else ""
    return name != "bh" and not name.startswith("bh.")


# How many contexts have asked for errors, in all threads.
_depth = 0
_change = threading.Lock()


def _asks(modes):
    """Do these modes ask for more than the warnings that NumPy gives by itself?"""
    return modes["under"] != "ignore" or not {*modes.values()} <= {"warn", "ignore"}


def asked_here(between=_BETWEEN):
    """Has the program that calls asked, in this thread, that operations of any size tell of their errors?"""
    return _native.errors_asked() and not here.tracing and _asks(np.geterr()) and _asked_by_program(between)


def _enter(step):
    """One context more that asks for errors, or one less."""
    global _depth
    with _change:
        _depth += step
        _native.ask_for_errors(_depth > 0 or _asks(np.geterr()))


class errstate(np.errstate):
    """As NumPy's; where it asks for more than warnings, operations inside of it are waited for."""

    def __init__(self, **modes):
        super().__init__(**modes)
        self._modes, self._counts = modes, False

    def __enter__(self):
        super().__enter__()
        self._counts = _asks(np.geterr())
        if self._counts:
            _enter(1)

    def __exit__(self, *failure):
        super().__exit__(*failure)
        if self._counts:
            _enter(-1)

    def __call__(self, function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            with errstate(**self._modes):
                return function(*args, **kwargs)

        return inner


def seterr(all=None, divide=None, over=None, under=None, invalid=None):
    """As NumPy's; where it asks for more than warnings, operations are waited for from now on."""
    before = np.seterr(all, divide, over, under, invalid)
    _enter(0)
    return before


def examine(function, arguments, results):
    """Waits for results, and has NumPy do the operation again if they bear errors out."""
    if any(map(_bears_out, results)) or getattr(function, "__name__", "") in _DIVISIONS:
        again(function, arguments)


def _bears_out(result):
    """Has a result elements that an error may have made?"""
    value = np.asarray(_fallback.lower(result))
    if value.dtype.kind not in "fc":
        return False
    tiny = np.geterr()["under"] != "ignore" and (np.abs(value) < np.finfo(value.dtype).tiny).any()
    return tiny or not np.isfinite(value).all()

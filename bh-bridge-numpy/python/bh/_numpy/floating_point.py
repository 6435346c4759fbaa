"""Warnings of floating-point errors, as NumPy's, for operations that were carried out where they were called."""

import functools
import sys
import threading

import numpy as np

from .. import _native
from .._array.conversion import warn
from .._array.element_types import BOOL, CODE, is_inexact
from .._jit.symbols import here
from . import fallback

ndarray = _native.ndarray

# Modules between the program and universal functions, and the same of folds and products.
_BETWEEN = ("bh._ufunc.ufunc", "bh._functions.reductions", "bh._ufunc.folds")
_FOLDS = (*_BETWEEN, "bh._numpy.fallback", "bh._numpy.immediate", "bh._array.subclassing")
PRODUCTS = ("bh._functions.products", "bh._numpy.fallback")

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
    "reciprocal": {ZERO: (0,)},
    "sqrt": {INVALID: (-1,)},
    "square": {OVERFLOW: (LARGEST,)},
}


def again(function, arguments, **options):
    """Has NumPy do an operation again whose result is known, for its errors: nothing is done where the program ignores all of them."""
    if {*np.geterr().values()} == {"ignore"}:
        _native.take_flags()
    else:
        compute(function, arguments, **options)


def compute(function, arguments, **options):
    """Has NumPy do an operation, and tells of the errors that it meets, at the program's line."""
    try:
        _tell(function, arguments, fallback.lower(options))
    finally:
        # The flags that this has raised are none of the program's next operation.
        _native.take_flags()


def _tell(function, arguments, options):
    arguments, modes = fallback.lower(arguments), np.geterr()
    if function is np.ndarray.astype:
        # A method of arrays, also of those that are numbers.
        arguments = (np.asarray(arguments[0]), *arguments[1:])
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
    if not here.records and {modes["divide"], modes["over"]} != {"ignore"} and np.isin(fallback.lower(arguments[1]), (0, -1)).any():
        again(function, arguments)


def kept(arguments, out):
    """The operands of a call whose results go into `out`, with copies of the little ones that share memory with it, and None for the
    others that do: warnings that come afterwards need the operands."""
    outs = out if type(out) is tuple else (out,)
    written = {target._memory for target in outs if type(target) is ndarray}
    if not written:
        return arguments
    return [_copy(one) if type(one) is ndarray and one._memory in written else one for one in arguments]


def _copy(array):
    """A copy of an array, if it has so few bytes that its operations warn of errors."""
    return np.array(fallback.lower(array)) if _native.is_little(array) and _native.is_at_hand(array) else None


def _fresh(out):
    """Places like those that results go into."""
    outs = out if type(out) is tuple else (out,)
    made = tuple(np.empty(target.shape, target.dtype) if type(target) is ndarray else None for target in outs)
    return made if type(out) is tuple else made[0]


def _options(options):
    """The options for calling again, with new arrays for the results."""
    places = {"out": _fresh(options.get("out"))} if "out" in options or "where" in options else {}
    return {**options, **places}


def _is_known(value):
    """Is this an operand whose elements are computed?"""
    return value is not None and (type(value) is not ndarray or _native.is_at_hand(value))


def after(function, arguments, options, result):
    """Tells of the errors of a call that went through Python, and was asked for by the program. Operands that are gone are None."""
    flags = _native.take_flags()
    results = result if isinstance(result, tuple) else (result,)
    out, where = options.get("out"), options.get("where", True)
    where = True if where is np._NoValue else where
    if where is True and function.__name__ in _DIVISIONS and results[0].dtype.kind in "iu":
        if _asked_by_program():
            _after_division(function, arguments, out, results[0])
        return
    if not all(map(_is_known, (*results, where))) or not _asked_by_program():
        return
    known = all(map(_is_known, arguments))
    mask = fallback.lower(where)
    # Whole numbers tell of divisions by zero by nothing but their divisors.
    divided = known and function.__name__ in _DIVISIONS and np.isin(fallback.lower(arguments[1]), (0, -1)).any()
    if not divided and not any(_shows(one, mask) for one in results):
        return
    if known:
        again(function, arguments, **_options(options))
    else:
        met(function, flags, results[0].dtype)


def _shows(result, where):
    """Is an element of the result no finite number where a mask is true?"""
    if not is_inexact(result._code if type(result) is ndarray else CODE.get(result.dtype, BOOL)):
        return False
    shown = fallback.lower(result)
    return not (np.isfinite(shown) if where is True else np.isfinite(shown, where=where, out=np.ones(result.shape, bool))).all()


def _after_division(function, arguments, out, result):
    """Tells of the errors of a division of whole numbers, as far as its operands are known."""
    if type(arguments[1]) is ndarray and not _native.is_at_hand(arguments[1]) and out is None and _native.may_wait(arguments[1]):
        divided(function, arguments)
        return
    if not _is_known(arguments[1]) or not np.isin(fallback.lower(arguments[1]), (0, -1)).any():
        return
    if all(map(_is_known, arguments[:2])):
        again(function, arguments)
    elif result.size and not np.all(fallback.lower(arguments[1])):
        met(function, ZERO, result.dtype)


def after_fold(function, array, axis, options, result):
    """The same, of a fold; of an array that is gone, which is None, nothing is known."""
    flags = _native.take_flags()
    if not options and asked_here():
        examine(function.reduce, (array, axis), (result,))
        return
    # A first number is added by an operation of its own, which takes the flags.
    if (flags or "initial" in options) and type(result) is ndarray and result.dtype.kind in "fc" and _is_known(array) and _is_known(result):
        if not np.isfinite(fallback.lower(result)).all() and _asked_by_program(_FOLDS):
            again(function.reduce, (array, axis), **_options(options))


def after_pieces(method, arguments, result):
    """The same, of running folds and folds of slices, by a method of NumPy's function."""
    flags = _native.take_flags()
    if flags and result.dtype.kind in "fc" and _is_known(arguments[0]) and _is_known(result):
        if not np.isfinite(fallback.lower(result)).all() and _asked_by_program(_FOLDS):
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
    return _native.errors_asked() and not here.records and _asks(np.geterr()) and _asked_by_program(between)


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
    value = np.asarray(fallback.lower(result))
    if value.dtype.kind not in "fc":
        return False
    tiny = np.geterr()["under"] != "ignore" and (np.abs(value) < np.finfo(value.dtype).tiny).any()
    return tiny or not np.isfinite(value).all()

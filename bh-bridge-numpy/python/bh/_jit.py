"""`bh.jit`: functions that are recorded at their first call, and run again from what was recorded."""

import builtins
import dis
import functools
import inspect
import operator
import threading
import types
import warnings

import numpy as np

from . import _native
from ._symbols import Symbol, check_number, here
from ._ufunc import UFUNCS

_array = _native.ndarray
_one_at_a_time = threading.RLock()


def jit(function=None, *, traced=(), static=()):
    """A function whose first call records what it does with arrays, and whose later calls run that with their own arrays.

    Later calls neither run Python nor record: they take some microseconds beside their kernels. A call is recorded anew where
    it differs from earlier ones in the types, shapes, strides or shared memory of its arrays, or in the **value** of any number,
    string, tuple, list or dictionary of such among its arguments, closures and the globals that its code names. Arrays among
    those are taken as they are at each call.

    Parameters
    ----------
    traced : str or sequence of str
        Arguments that are real numbers and whose values may change without a new recording, such as a time step. In the
        function they may be used in arithmetic with numbers and arrays, and not in branches, indices or shapes.
    static : str or sequence of str
        Arguments and globals of other classes, such as `self`. A call is recorded anew for another object; changes inside of an
        object are not seen. The function keeps the object alive.

    Raises
    ------
    bh.Error
        Where the function does what later calls would not repeat: reads elements, waits, draws random numbers, keeps arrays
        elsewhere, or uses arrays that it does not name. What it has done by then is done, as by a plain call.
    TypeError
        For arguments or results that are neither arrays, numbers, strings nor tuples, lists and dictionaries of them.

    Examples
    --------
    >>> @bh.jit(traced="dt")
    ... def step(u, dt):
    ...     u[1:-1] += dt * (u[2:] - 2 * u[1:-1] + u[:-2])
    ...     return (u * u).sum()
    >>> u = bh.ones(6)
    >>> u[0] = 3
    >>> step(u, 0.25), step(u, 0.125)
    (15.25, 15.19140625)
    >>> step.traces
    1
    """
    if function is None:
        return functools.partial(jit, traced=traced, static=static)
    return Jitted(function, _names(traced), _names(static))


def _names(names):
    return frozenset((names,) if isinstance(names, str) else names)


class Jitted:
    """A function that :func:`jit` has made.

    `traces` counts how often it was recorded, and `plain` calls that were run as Python, as their arrays share memory with the
    program.
    """

    def __init__(self, function, traced, static):
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"jit takes a function written in Python, not {function!r}")
        functools.update_wrapper(self, function)
        self._function, self._traced, self._static = function, traced, static
        code = function.__code__
        self._names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if unknown := traced - set(self._names):
            raise TypeError(f"{function.__name__} has no argument {sorted(unknown)[0]!r}")
        self._positional = self._names[: code.co_argcount]
        self._plain = not (traced or static)
        self._numbers = {}
        self._outside = _nothing, None, ()
        # Recordings by what is fixed of a call; objects that are known by their identity are kept.
        self._recordings, self._held = {}, {}
        self.traces = self.plain = 0

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args, **kwargs):
        if here.tracing:
            return self._function(*args, **kwargs)
        arrays, key, numbers = self._read(args, kwargs)
        recordings = self._recordings.get(key)
        call = recordings.find(arrays) if recordings is not None else None
        if call is not None:
            rest = call.rest
            constants, returned = rest.numbers(numbers) if rest.numbers is not None else ((), ())
            made = call.run(arrays, constants)
            if made is not None:
                return rest.result(made, arrays, returned)
        return self._trace(args, kwargs, (arrays, key, numbers), call is None)

    def _read(self, args, kwargs):
        """The arrays of a call, what is fixed of it, and the values of its traced numbers."""
        arrays, key, numbers = [], [], []
        if self._plain and not kwargs:
            for value in args:
                if type(value) is _array:
                    arrays.append(value)
                    key.append(_array)
                else:
                    self._flatten(value, arrays, key, "an argument")
        else:
            for position, value in enumerate(args):
                name = self._positional[position] if position < len(self._positional) else "an argument"
                self._read_named(name, value, arrays, key, numbers)
            for name in sorted(kwargs):
                key.append(name)
                self._read_named(name, kwargs[name], arrays, key, numbers)
        look, number, collections = self._outside
        found = look()
        if found is None:
            look, number, collections = self._outside = self._look_again()
            found = look()
        arrays += found
        key.append(number)
        for name, get in collections:
            self._flatten(get(), arrays, key, name)
        return arrays, tuple(key), numbers

    def _look_again(self):
        """What looks the outside values up and finds whether they are those of now; a number for these; and what is looked at anew
        by each call."""
        # Another function may stand where one was, with names of its own.
        entries, scope = _outside(self._function, self._static)
        fixed, collections, arrays, same = [], [], [], []
        for place, (name, text, by_identity) in enumerate(entries):
            value = _look_up(text, scope)
            if type(value) is _array:
                fixed.append((text, _array))
                arrays.append(f"({text})")
                same.append(f"type({text}) is array")
                continue
            if not by_identity and isinstance(value, (tuple, list, dict)):
                fixed.append((text, None))
                collections.append((name, functools.partial(_look_up, text, scope)))
                continue
            fixed.append((text, self._same(value) if by_identity or value is _MISSING else _fixed(value, name)))
            scope[f"value{place}"] = value
            same.append(f"({text}) is value{place}" if value is not _MISSING else f"lacks(lambda: {text})")
        look = eval(f"lambda: ({''.join(part + ', ' for part in arrays)}) if {' and '.join(same) or True} else None", scope)
        return functools.partial(_tried, look), self._numbers.setdefault(tuple(fixed), len(self._numbers)), collections

    def _read_named(self, name, value, arrays, key, numbers):
        if name in self._traced:
            check_number(name, value)
            numbers.append(value)
            key.append(type(value))
        elif name in self._static:
            key.append(self._same(value))
        else:
            self._flatten(value, arrays, key, name)

    def _flatten(self, value, arrays, key, name):
        kind = type(value)
        if kind is _array:
            arrays.append(value)
            key.append(_array)
        elif issubclass(kind, (tuple, list)):
            key.append((kind, len(value)))
            for item in value:
                self._flatten(item, arrays, key, name)
        elif kind is dict:
            key.append((dict, tuple(value)))
            for item in value.values():
                self._flatten(item, arrays, key, name)
        elif isinstance(value, _KNOWN_BY_IDENTITY):
            key.append(self._same(value))
        else:
            key.append(_fixed(value, name))

    def _same(self, value):
        self._held.setdefault(id(value), value)
        return id(value)

    def _trace(self, args, kwargs, read, is_new):
        arrays, key, numbers = read
        with _one_at_a_time:
            recordings = self._recordings_of(key)
            if is_new and recordings.find(arrays) is not None:
                # Another thread has recorded it meanwhile.
                return self(*args, **kwargs)
            guard = recordings.guard(arrays)
            if guard is None:
                # Memory that is shared with the program may change between any two statements.
                self.plain += 1
                return self._function(*args, **kwargs)
            form = [(array.shape, array.strides) for array in arrays]
            recordings.begin(arrays)
            rest = _Rest(numbers)
            try:
                result = self._run(args, kwargs, rest)
                leaves = []
                rest.form(result, arrays, leaves)
                same = _same_call(self._read(args, kwargs), arrays, key)
                if not same or form != [(array.shape, array.strides) for array in arrays]:
                    changed = "a collection, a global or the form of an array"
                    raise TypeError(f"{self.__name__} changes {changed}, which later calls would not do")
            except BaseException:
                recordings.abandon(arrays)
                raise
            rest.compile(recordings.end(arrays, guard, leaves, rest))
            self.traces += 1
            return rest.first(result)

    def _recordings_of(self, key):
        if key not in self._recordings:
            if len(self._recordings) == _MANY and self._traced == frozenset():
                text = f"{self.__name__} was recorded for {_MANY} different values; numbers that change can be named in `traced`"
                warnings.warn(text, RuntimeWarning, stacklevel=4)
            if len(self._recordings) >= _MOST:
                self._recordings.clear()
                self._held.clear()
            self._recordings[key] = _native.Recordings()
        return self._recordings[key]

    def _run(self, args, kwargs, rest):
        symbols = iter(rest.symbols)
        named = self._positional[: len(args)]
        args = [next(symbols) if name in self._traced else value for name, value in zip(named, args)] + list(args[len(named) :])
        kwargs = {name: next(symbols) if name in self._traced else kwargs[name] for name in sorted(kwargs)}
        here.tracing, here.rest = True, rest
        try:
            return self._function(*args, **kwargs)
        finally:
            here.tracing, here.rest = False, None


def _same_call(read, arrays, key):
    """Are these the same arrays, themselves, and the same fixed values?"""
    return read[1] == key and len(read[0]) == len(arrays) and all(map(operator.is_, read[0], arrays))


# Objects that do not change, or whose changes do not matter.
_KNOWN_BY_IDENTITY = (type, np.dtype, np.ufunc, types.BuiltinFunctionType, types.ModuleType, type(UFUNCS["add"]))
# The number of sets of fixed values from which on there is a warning, and the most that are kept.
_MANY, _MOST = 64, 1024


def _fixed(value, name):
    """What tells a value from others."""
    kind = type(value)
    if kind is float:
        return kind, value if value == value and value else repr(value)
    if kind in (int, bool, str, bytes) or value is None or value is ...:
        return kind, value
    if kind is complex:
        return kind, repr(value)
    if kind is slice:
        return kind, tuple(_fixed(part, name) for part in (value.start, value.stop, value.step))
    if kind in (range, frozenset):
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, np.ndarray):
        raise TypeError(f"{name} is an array of NumPy, whose changes bh does not see: make it an array of bh")
    taken = "arrays, numbers, strings and collections of them; others have to be static"
    raise TypeError(f"{name} is of class {kind.__name__}: jit takes {taken}")


class _Rest:
    """What is known of a traced call beside its recording: how numbers follow from those given, and the form of the result."""

    def __init__(self, numbers):
        self._lines, self._constants, self.numbers = [], [], None
        self.symbols = [Symbol(number, self, f"given[{at}]") for at, number in enumerate(numbers)]
        self.values = numbers
        self._returned = []

    def add(self, text):
        self._lines.append(f"  t{len(self._lines) + 1} = {text}\n")
        return len(self._lines)

    def name(self, value):
        if type(value) is Symbol:
            value.check()
            return f"t{value.mark}"
        self._constants.append(value)
        return f"constants[{len(self._constants) - 1}]"

    def compile(self, marks):
        """Makes the function from the given numbers to those of the recording and of the result."""
        if marks or self._returned:
            used = "".join(f"t{mark}, " for mark in marks), "".join(f"t{mark}, " for mark in self._returned)
            source = f"def numbers(given):\n{''.join(self._lines)}  return ({used[0]}), ({used[1]})\n"
            scope = {"constants": self._constants}
            exec(source, scope)
            self.numbers = scope["numbers"]
        self.symbols = None

    def first(self, result):
        """The result of the traced call itself."""
        if not self._returned:
            return result
        leaves, arrays, self._leaves, self._arrays = self._leaves, self._arrays, None, None
        return self.result(leaves, arrays, self.numbers(self.values)[1])

    def form(self, result, arrays, leaves):
        """Finds the arrays of a result, and how to make such a result of others."""
        make = self._form(result, arrays, leaves)
        self._leaves, self._arrays = (leaves, arrays) if self._returned else (None, None)
        self.result = (lambda made, arrays, returned: made[0]) if result is (leaves[0] if leaves else self) else make

    def _form(self, value, arrays, leaves):
        kind = type(value)
        if kind is _array:
            for at, argument in enumerate(arrays):
                if argument is value:
                    return lambda made, arrays, returned: arrays[at]
            for at, leaf in enumerate(leaves):
                if leaf is value:
                    return lambda made, arrays, returned: made[at]
            leaves.append(value)
            at = len(leaves) - 1
            return lambda made, arrays, returned: made[at]
        if kind is Symbol:
            value.check(self)
            self._returned.append(value.mark)
            at = len(self._returned) - 1
            return lambda made, arrays, returned: returned[at]
        if issubclass(kind, (tuple, list)):
            parts = [self._form(part, arrays, leaves) for part in value]
            collect = kind if kind in (tuple, list) else lambda parts: kind(*parts)
            return lambda made, arrays, returned: collect([part(made, arrays, returned) for part in parts])
        if kind is dict:
            parts = {name: self._form(part, arrays, leaves) for name, part in value.items()}
            return lambda made, arrays, returned: {name: part(made, arrays, returned) for name, part in parts.items()}
        _fixed(value, "the result")
        return lambda made, arrays, returned: value


# Modules whose functions depend on nothing that changes.
_SETTLED = ("bh", "numpy", "math", "cmath", "builtins", "operator", "itertools", "functools")


def _is_settled(module):
    return str(module).partition(".")[0] in _SETTLED


def _outside(function, static):
    """What a function names outside of itself and may find changed: names, expressions that look each up, and whether its
    identity counts; and what the expressions look at."""
    scope = {"array": _array, "builtins": builtins, "lacks": _lacks}
    found = {}
    _find_outside(function, static, found, set(), scope)
    return list(found.values()), scope


def _find_outside(function, static, found, seen, scope):
    if function in seen:
        return
    seen.add(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    for value in defaults:
        found.setdefault(("default", id(value)), ("a default argument", _named(scope, value), False))
    for name, attributes in _chains(function.__code__, cells):
        if name in cells:
            root = f"{_named(scope, cells[name])}.cell_contents"
        else:
            table = _named(scope, function.__globals__)
            root = f"{table}[{name!r}]"
            if name not in function.__globals__:
                root = f"({root} if {name!r} in {table} else builtins.{name})"
        _follow(function, name, root, attributes, static, found, seen, scope)


def _named(scope, value):
    """A name for an object in expressions."""
    name = f"at{id(value)}"
    scope[name] = value
    return name


_MISSING = object()


def _look_up(text, scope):
    try:
        return eval(text, scope)
    except (KeyError, AttributeError, ValueError):
        # Not there, or not yet.
        return _MISSING


def _tried(look):
    try:
        return look()
    except (KeyError, AttributeError, ValueError):
        return None


def _lacks(look):
    try:
        look()
    except (KeyError, AttributeError, ValueError):
        return True
    return False


def _nothing():
    return None


def _chains(code, cells):
    """Names of globals and of cells in code, each with the attributes that are looked up of it."""
    root, attributes = None, []
    for instruction in dis.get_instructions(code):
        if root is not None and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.append(instruction.argval)
            continue
        if root is not None:
            yield root, tuple(attributes)
            root, attributes = None, []
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") or instruction.opname == "LOAD_DEREF" and instruction.argval in cells:
            root = instruction.argval
    if root is not None:
        yield root, tuple(attributes)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _chains(constant, cells)


def _follow(function, name, root, attributes, static, found, seen, scope):
    """Notes what a chain of attributes ends in, as far as it is not the attribute of an array or a number."""
    value, text, path = _look_up(root, scope), root, name
    for attribute in attributes:
        if path in static or isinstance(value, _CLOSED) or not hasattr(value, "__dict__"):
            break
        is_module = isinstance(value, types.ModuleType)
        if is_module and _is_settled(value.__name__):
            break
        if not is_module and isinstance(inspect.getattr_static(value, attribute, None), types.FunctionType):
            unseen = f"{function.__name__} calls the method {attribute} of {path}, whose attributes jit does not see"
            raise TypeError(f"{unseen}: make {path} static")
        found.setdefault(text, (path, text, True))
        path, text = f"{path}.{attribute}", f"{text}.{attribute}"
        value = _look_up(text, scope)
    if path not in static and isinstance(value, Jitted):
        _find_outside(value._function, static, found, seen, scope)
    elif path not in static and isinstance(value, types.FunctionType) and not _is_settled(value.__module__):
        _find_outside(value, static, found, seen, scope)
    found.setdefault(text, (path, text, path in static or not isinstance(value, _OF_VALUE)))


# Classes whose attributes do not matter.
_CLOSED = (types.FunctionType, Jitted, type, _array)
# Classes of outside values that are arrays, or are compared by value.
_OF_VALUE = (int, float, complex, str, bytes, tuple, list, dict, range, frozenset, np.generic, np.ndarray, _array, type(None))


"""`bh.jit`: functions that are recorded at their first call, and run again from what was recorded."""

import functools
import itertools
import operator
import threading
import types
import warnings

from .. import _native
from .guards import UNCHANGING, State, Unseen, fixed
from .outer_reads import ABSENT, MISSING, Outside, Reached
from .symbols import Symbol, check_number, here

_array = _native.ndarray
# The tracing thread holds the lock. Others wait at most this many seconds for it, as it may itself wait for one of them.
_one_at_a_time, _PATIENCE = threading.RLock(), 1.0

# Errors of functions that read values while they are recorded begin so, and get this note.
_READS = ("a traced function reads", "the value of a traced number", "The truth value of an array")
_CHOOSE = "bh.jit: instead of `if` on such values, write np.where(condition, a, b); keep loops that end by them outside of the function"


def jit(function=None, *, traced=(), static=()):
    """A function whose first call records what it does with arrays, and whose later calls run that with their own arrays.

    Later calls neither run Python nor record: they take some microseconds beside their kernels. A call is recorded anew where
    it differs from earlier ones in the types, shapes, strides or shared memory of its arrays, or in the **value** of anything that
    the function reads: arguments, closures, globals, attributes of objects, classes and modules, defaults, and the same of the
    functions that it calls. Arrays among those are taken as they are at each call.

    A function is not recorded if it reads something whose changes bh cannot see (a clock, an iterator, a generator of numbers), or
    if it changes what it has read: calls run as usual, and a warning names the reason. Several threads may call one function; a
    call is not kept if another thread records operations meanwhile.

    Parameters
    ----------
    traced : str or sequence of str
        Arguments that are real numbers and whose values may change without a new recording, such as a time step. In the
        function they may be used in arithmetic with numbers and arrays, and not in branches, indices or shapes.
    static : str or sequence of str
        Arguments of other classes, such as `self`, and globals whose contents do not matter. A call is recorded anew for another
        object; changes inside of an object are not seen. The function keeps the object alive.

    Raises
    ------
    bh.Error
        If the function does something that later calls would not repeat: it reads elements, waits, draws random numbers of bh, or
        uses arrays that nothing it reads holds. The effects so far remain, as after a plain call.
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
    >>> float(step(u, 0.25)), float(step(u, 0.125))
    (15.25, 15.76953125)
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

    `traces` counts how often it was recorded, and `plain` calls that were run as Python: their arrays share memory with the program,
    they read something whose changes bh cannot see, or another thread traces.
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
        # The values read outside of the arguments, the functions that were called without being named, and all code seen so far.
        self._outside, self._reached, self._codes = _NOTHING, [], {}
        # Numbers for the values that were found there, each given once.
        self._numbers, self._count = {}, itertools.count()
        # Recordings by what is fixed of a call; objects that are known by their identity are kept.
        self._recordings, self._held = {}, {}
        # Why no call is recorded, and whether that was said.
        self._closed, self._warned, self._changed = None, False, 0
        # Why its calls are run as Python from the first one on that did what cannot be recorded.
        self._given_up = None
        self.traces = self.plain = 0

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args, **kwargs):
        if here.records:
            return self._function(*args, **kwargs)
        if self._given_up is not None:
            return self._unrecorded(args, kwargs)
        try:
            read = self._read(args, kwargs)
        except Unseen as reason:
            self._warn(reason)
            return self._unrecorded(args, kwargs)
        recordings = self._recordings.get(read[1])
        if recordings is not None:
            result = self._repeat(recordings, read)
            if result is not _NOT_RECORDED:
                return result
        return self._trace(args, kwargs)

    def _repeat(self, recordings, read):
        """The result of a call that was recorded before."""
        arrays, _, numbers = read
        call = recordings.find(arrays)
        if call is None:
            return _NOT_RECORDED
        rest = call.rest
        constants, returned = rest.numbers(numbers) if rest.numbers is not None else ((), ())
        made = call.run(arrays, constants)
        return _NOT_RECORDED if made is None else rest.result(made, arrays, returned)

    def _unrecorded(self, args, kwargs):
        """The result of a call that is run as Python."""
        self.plain += 1
        return self._function(*args, **kwargs)

    def _warn(self, reason):
        if not self._warned:
            self._warned = True
            text = f"{self.__name__} is not recorded, but run as usual: {reason}. What does not matter can be named in `static`"
            warnings.warn(text, RuntimeWarning, stacklevel=4)

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
        look, _, number, objects = self._outside
        found = look()
        if found is None:
            _, get, number, objects = self._outside = self._look_again()
            # Properties give another object each time, and other threads may change what was found.
            found = _tried(get) or ()
        arrays += found
        key.append(number)
        if objects:
            self._add_states(objects, arrays, key)
        return arrays, tuple(key), numbers

    def _add_states(self, objects, arrays, key):
        state = State(arrays, key, self._same)
        for name, get in objects:
            state.add(get(), name)

    def _look_again(self):
        """A function that gives the outside arrays, as long as the other values are those of now; one that gives them in any case; a
        number for these values; and the collections and other objects that each call goes through."""
        if self._closed is not None:
            raise Unseen(self._closed)
        try:
            return self._survey()
        except Unseen as reason:
            self._closed = str(reason)
            raise

    def _survey(self):
        # Another function may stand where one was, with names of its own.
        outside = Outside((self._function, *self._reached), self._static)
        self._codes = outside.codes
        code = self._function.__code__
        self._positional = code.co_varnames[: code.co_argcount]
        known, arrays, same, objects = [], [], [], []
        for place, (text, (name, value, how)) in enumerate(outside.entries.items()):
            if type(value) is _array:
                known.append((text, _array))
                arrays.append(f"({text})")
                same.append(f"type({text}) is array")
            elif how == Outside.STATE:
                known.append((text, None))
                objects.append((name, functools.partial(outside.look_up, text)))
            else:
                by_identity = how == Outside.SAME
                known.append((text, self._same(value) if by_identity else fixed(value, name)))
                outside.scope[f"value{place}"] = value
                same.append(f"({text}) is value{place}" if value is not MISSING else f"lacks(lambda: {text})")
        self._add_states(objects, [], [])
        arrays = f"({''.join(part + ', ' for part in arrays)})"
        look = eval(f"lambda: {arrays} if {' and '.join(same) or True} else None", outside.scope)
        number = self._numbers.setdefault(tuple(known), next(self._count))
        return functools.partial(_tried, look), eval(f"lambda: {arrays}", outside.scope), number, objects

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
        elif isinstance(value, _WITHOUT_A_NAME):
            State(arrays, key, self._same).add(value, name)
        else:
            key.append(fixed(value, name))

    def _same(self, value):
        self._held.setdefault(id(value), value)
        return id(value)

    def _trace(self, args, kwargs):
        if not _one_at_a_time.acquire(timeout=_PATIENCE):
            return self._unrecorded(args, kwargs)
        try:
            self._make_room()
            try:
                read = self._read(args, kwargs)
            except Unseen as reason:
                # Another thread has met a function since the call began.
                self._warn(reason)
                return self._unrecorded(args, kwargs)
            recordings = self._recordings.setdefault(read[1], _native.Recordings())
            # Another thread may have recorded the call meanwhile, or have traced, so that it could not be repeated.
            result = self._repeat(recordings, read)
            return self._record(args, kwargs, read, recordings) if result is _NOT_RECORDED else result
        finally:
            _one_at_a_time.release()

    def _record(self, args, kwargs, read, recordings):
        """Runs the function, and keeps what it records, if later calls can do the same."""
        arrays, key, numbers = read
        guard = recordings.guard(arrays)
        if guard is None:
            # Memory that is shared with the program may change between any two statements.
            return self._unrecorded(args, kwargs)
        form = [(array.shape, array.strides) for array in arrays]
        recordings.begin(arrays)
        rest = _Rest(numbers)
        here.give_up = None if rest.symbols else functools.partial(self._give_up, recordings, arrays)
        try:
            with Reached(self._codes) as reached:
                result = self._run(args, kwargs, rest)
            if self._given_up is not None:
                self._warn(self._given_up)
                self.plain += 1
                return result
            leaves = []
            rest.form(result, arrays, leaves)
            is_kept = self._is_repeatable(args, kwargs, read, form, reached)
        except BaseException:
            if self._given_up is None:
                recordings.abandon(arrays)
            raise
        finally:
            here.give_up = None
        call = recordings.end(arrays, leaves, rest) if is_kept else recordings.abandon(arrays)
        rest.compile(() if call is None else call.marks)
        result = rest.first(result)
        if call is not None:
            # From here on other threads repeat it.
            recordings.keep(guard, call)
            self.traces += 1
        return result

    def _give_up(self, recordings, arrays, reason):
        """Ends the trace: the rest of the call, and later calls, are run as Python."""
        recordings.abandon(arrays)
        here.tracing, here.rest, here.give_up = False, None, None
        self._given_up = reason

    def _is_repeatable(self, args, kwargs, read, form, reached):
        """Will later calls do what this one did?"""
        if functions := reached.functions():
            # The next call knows what these read.
            self._reached += functions
            self._outside = _NOTHING
            return False
        try:
            arrays, key, _ = self._read(args, kwargs)
        except Unseen:
            return False
        same = key == read[1] and len(arrays) == len(read[0]) and all(map(operator.is_, arrays, read[0]))
        if same and form == [(array.shape, array.strides) for array in arrays]:
            self._changed = 0
            return True
        # Changes are tolerated until they repeat: the function may have noted a value for later, or another thread may have
        # changed it.
        self._changed += 1
        if self._changed == _OFTEN:
            self._warn("a global, an object or the form of an array changes during its calls")
        return False

    def _make_room(self):
        """Warns of many sets of fixed values, and forgets all where there are too many."""
        if len(self._recordings) == _MANY and self._traced == frozenset() and not self._warned:
            self._warned = True
            text = f"{self.__name__} was recorded for {_MANY} different values; numbers that change can be named in `traced`"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        if max(len(self._recordings), len(self._numbers)) >= _MOST:
            for known in (self._recordings, self._numbers, self._held):
                known.clear()
            self._outside = _NOTHING

    def _run(self, args, kwargs, rest):
        symbols = iter(rest.symbols)
        named = self._positional[: len(args)]
        args = [next(symbols) if name in self._traced else value for name, value in zip(named, args)] + list(args[len(named) :])
        kwargs = {name: next(symbols) if name in self._traced else kwargs[name] for name in sorted(kwargs)}
        here.tracing, here.rest = True, rest
        try:
            return self._function(*args, **kwargs)
        except (_native.Error, TypeError, ValueError) as error:
            if str(error).startswith(_READS):
                error.add_note(_CHOOSE)
            raise
        finally:
            here.tracing, here.rest = False, None


# The number of sets of fixed values from which on there is a warning, and the most that are kept.
_MANY, _MOST = 64, 1024
# Calls in a row that changed what they had read, after which there is a warning.
_OFTEN = 3
_NOT_RECORDED = object()
# Arguments that are known by their identity, or by all that can be read of them.
_WITHOUT_A_NAME = (type, types.BuiltinFunctionType, types.ModuleType, *UNCHANGING)


def _tried(look):
    try:
        return look()
    except ABSENT:
        return None


def _nothing():
    return None


# Before the first call: everything has to be looked up.
_NOTHING = (_nothing, _nothing, None, ())


class _Rest:
    """The parts of a traced call beside its recording: how numbers follow from those given, and the form of the result."""

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
        fixed(value, "the result")
        return lambda made, arrays, returned: value

"""A function of the program, compiled for types of arguments when it is called with them."""

import dataclasses

import numpy as np

from ... import _native
from ..._array.conversion import native
from ..._array.element_types import CODE
from ..._tools.runtime import using
from ..._ufunc.ufunc import one_stack
from . import liveness, own, reader, registers, runtime
from .emitter import Emitter
from .inference import Inference, infer
from .ir import TooLarge, Unsupported
from .kinds import concrete
from .loops import Plan, run
from .names import means_the_same
from .sinking import sunk

# Programs by text and arguments, and the most of them that are kept.
_programs, _MOST = {}, 256


def program_of(function, given, indices=False):
    """A function, read for calls with these arguments. Programs make functions of one text again and again: `Program` serves them all."""
    key = function.__code__, given, indices
    program = _programs.get(key)
    if program is None or not program.still_holds(function):
        program = Program(function, given, indices)
        if len(_programs) >= _MOST:
            _programs.clear()
        _programs[key] = program
    return program


class Program:
    """A function as it is read now; `still_holds` tells whether what its names mean has changed. It serves all functions of the same
    text for which it holds."""

    def __init__(self, function, given, indices=False):
        self._defaults = _defaults(function)
        read, self._names = reader.read(function, given, indices)
        self._function = dataclasses.replace(read, body=sunk(read.body))
        self._compiled, self._written = {}, {}
        self.single = self._function.single

    def still_holds(self, function):
        """Does everything mean what it did?"""
        defaults = _defaults(function)
        try:
            return means_the_same(self._defaults, defaults) and self._names.still_hold(function)
        except (AttributeError, ValueError):
            # A name, or a variable of a closure, means nothing now.
            return False

    def memory(self, arrays):
        """The bytes of lists for one element, by name: what they have room for."""
        function = self._function
        liveness.analyse(function)
        known = Inference(function, dict(zip(function.parameters, (array.dtype for array in arrays)))).known
        size = lambda leaf: concrete(known[leaf].kind).itemsize if leaf in known else 0
        return {label: sum(map(size, leaves)) for label, leaves in function.rooms.items()}

    def __call__(self, function, arrays, shape):
        """The results of a call of the function with these arrays, in this shape."""
        dtypes = tuple(array.dtype for array in arrays)
        if not arrays:
            raise Unsupported("no arguments")
        tables = [self._names.array(one, function) if type(one) is int else one.value for one in self._function.tables.values()]
        if registers.is_worth(self._function) and (results := self._at_once(dtypes, arrays, tables, shape)) is not None:
            return results
        whole = self._whole(dtypes)
        operands = one_stack([*arrays, *map(native, tables)])
        with using(arrays[0]._stack), np.errstate(all="ignore"):
            return whole(shape, *operands)

    def _at_once(self, dtypes, arrays, tables, shape):
        """The results of one operation of the stack, if it has such; else None."""
        if dtypes not in self._written:
            self._written[dtypes] = self._as_registers(dtypes)
        if (written := self._written[dtypes]) is None:
            return None
        text, kinds, owns, puts = written
        named = dict(zip(self._function.tables, tables))
        views = [one.view(named[one.table], shape) for one in owns]
        put = {one.table: named[one.table] for one in puts}
        if any(view is None for view in views) or not _are_apart((*owns, *puts), named):
            return None
        reads = [view for one, view in zip(owns, views) if one.reads]
        others = [array for name, array in named.items() if name not in put and all(one.table != name for one in owns)]
        operands = one_stack([*arrays, *reads, *map(native, others)])
        stack = operands[0]._stack
        if any(view._stack is not stack for view in (*views, *put.values())) or not _native.has_extension(text, operands[0]):
            return None
        with using(stack):
            results = tuple(_native.empty(shape, CODE[kind]) for kind in kinds)
        count = len(arrays) + len(reads)
        elements = [_native.broadcast_to(array, shape) for array in operands[:count]]
        _native.extension(text, list(results), [*elements, *operands[count:]])
        first = len(self._function.results)
        for view, result in zip(views, results[first:]):
            _native.assign(view, result)
        rest = iter(results[first + len(owns) :])
        for one in puts:
            *key, value = (next(rest) for _ in (*one.key, one.value))
            runtime.save(put[one.table], next(rest) if one.mask else None, shape, None, key, value, one.adds)
        return results[:first]

    def _as_registers(self, dtypes):
        """The function as a program of the stack, the types of its results, the elements of arrays that indices have for themselves and
        that it writes, and what it puts elsewhere; None where there is no such."""
        try:
            function, owns, puts = own.with_own(self._function)
            if puts:
                # Subscripts have types of their own, which the function without them does not tell.
                infer(self._function, dict(zip(self._function.parameters, dtypes)))
            given = (*dtypes, *(one.dtype for one in owns if one.reads))
            return *registers.written(*infer(function, dict(zip(function.parameters, given)), flat=False), given), owns, puts
        except TooLarge:
            raise
        except (registers.Unwritten, Unsupported):
            return None

    def _whole(self, dtypes):
        """The function on arrays of these types."""
        if dtypes not in self._compiled:
            self._compiled[dtypes] = compiled(self._function, dtypes)[0]
        return self._compiled[dtypes]


def _defaults(function):
    """The defaults of a function's parameters."""
    return (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items())


def _are_apart(owns, named):
    """Has each array that is written to memory of its own among these?"""
    memories = [getattr(array, "_memory", None) for array in named.values()]
    return all(memories.count(named[one.table]._memory) == 1 for one in owns)


def compiled(function, dtypes):
    """A program for these types as a function of Python, and its text."""
    function, inference = infer(function, dict(zip(function.parameters, map(np.dtype, dtypes))))
    emitter = Emitter(function, inference)
    text = emitter.write()
    scope = runtime.scope() | {name: constant.value for constant, name in emitter.constants.items()} | {"run": run, "__name__": "bh._jit.scalar.written"}
    # Calls are seen as made by the program, as all of the package's are.
    place = __file__.rpartition("program")[0] + f"<{function.name}>"
    exec(compile(text, place, "exec"), scope)
    for at, (name, dtypes, work, has_loops, counts) in enumerate(emitter.plans):
        scope[f"plan{at}"] = Plan(scope[name], dtypes, work, has_loops, counts)
    return scope["whole"], text

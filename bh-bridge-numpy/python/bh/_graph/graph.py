"""Task graphs: a source gives pieces, tasks change them, a sink takes them; stages work at the same time, each on its stack."""

import dis
import inspect
import os
import types

import numpy as np

from . import pieces as _pieces
from .run import AHEAD, GraphError, run_stages

__all__ = ["GraphError", "sink", "source", "task"]


class Stage:
    """One stage: a source, a task or a sink."""

    def __init__(self, role, function, name, takes=None, gives=None, rate=(1, 1), stack=None, ahead=None):
        self.role, self.function, self.rate, self.stack, self.ahead = role, function, rate, stack, ahead
        self.takes, self.gives = _pieces.Kind(takes), _pieces.Kind(gives)
        self.name = name

    def __str__(self):
        return f"{self.role} {self.name}"

    def call(self, pieces):
        """The pieces that the function makes of some, as a tuple."""
        for piece in pieces:
            self.takes.check(piece, f"what {self} gets")
        result = self.function(*pieces)
        results = (result,) if self.rate[1] == 1 else result
        if type(results) is not tuple or len(results) != self.rate[1]:
            raise TypeError(f"{self} gives {self.rate[1]} pieces a call, as a tuple, and returned {type(result).__name__}")
        for piece in results:
            self.gives.check(piece, f"what {self} gives")
        return results


class Graph:
    """Stages that are connected, from a source, a task or a sink on. `a >> b` connects two."""

    def __init__(self, stages):
        self._stages = stages
        # The last run's counters, by stage.
        self.counters = {}

    def __rshift__(self, other):
        if not isinstance(other, Graph):
            return NotImplemented
        one, two = self._stages[-1], other._stages[0]
        if one.role == "sink" or two.role == "source":
            raise TypeError(f"nothing comes {'after' if one.role == 'sink' else 'before'} a {one.role if one.role == 'sink' else two.role}")
        if not one.gives.meets(two.takes):
            raise TypeError(f"{one} gives {one.gives}, and {two} takes {two.takes}")
        return Graph((*self._stages, *other._stages))

    def __repr__(self):
        return " >> ".join(map(str, self._stages))

    def run(self):
        """Runs all stages until the source ends, and returns what was counted, by stage.

        Sinks are called by this thread. If a stage fails, all others end, and `GraphError` names it.
        """
        if self._stages[-1].role != "sink":
            raise TypeError(f"{self!r} has no sink: add one, or go through its pieces with `for`")
        *stages, last = self._stages
        for _ in self._go(stages, last):
            pass
        return self.counters

    def __iter__(self):
        """The pieces that the last task gives, while the stages work ahead."""
        if self._stages[-1].role == "sink":
            raise TypeError(f"{self!r} has a sink: `run` runs it")
        return self._go(self._stages, Stage("sink", lambda piece: piece, "of the program"))

    def _go(self, stages, last):
        if stages[0].role != "source":
            raise TypeError(f"{self!r} has no source")
        return run_stages(self, stages, last)


def source(pieces, *, rows=1 << 20, gives=None, name=None):
    """The first stage of a task graph, which gives pieces. It may keep state, and a thread of its own reads it.

    Parameters
    ----------
    pieces : str, path, array_like, iterable or callable
        The path of a `.npy` file or an array, which are cut into pieces; an iterable of pieces, or a function that returns one.
    rows : int
        The rows of a piece of a file or array.
    gives : str, class or tuple, optional
        The element type and extents of a piece, as "float64[:, 3]", or its class.
    name : str, optional
        The name in errors and counters.

    Examples
    --------
    >>> total = []
    >>> _ = (bh.source(bh.arange(6.0), rows=2) >> bh.task(bh.sum) >> bh.sink(total.append)).run()
    >>> [float(part) for part in total]
    [1.0, 5.0, 9.0]
    """
    if not isinstance(name, str):
        name = pieces.__name__ if hasattr(pieces, "__name__") else os.fspath(pieces) if isinstance(pieces, (str, os.PathLike)) else type(pieces).__name__
    return Graph((Stage("source", lambda: iterator(pieces, rows), f"'{name}'", gives=gives),))


def iterator(pieces, rows):
    """The pieces of a `.npy` file, of something with a shape, or of an iterable of pieces."""
    if isinstance(pieces, (str, os.PathLike)):
        pieces = np.load(pieces, mmap_mode="r")
    if hasattr(pieces, "shape"):
        return (np.array(pieces[begin : begin + rows]) for begin in range(0, pieces.shape[0], rows))
    return iter(pieces() if callable(pieces) else pieces)


def task(function, *, stack=None, takes=None, gives=None, rate=(1, 1), ahead=None, name=None):
    """A stage of a task graph that makes pieces of pieces by a function that keeps no state.

    A task with another stack, a rate or `ahead` works beside the others. Any other task runs with the one before it, and what both
    record fuses.

    Parameters
    ----------
    function : callable
        It gets a piece, and returns one.
    stack : str, optional
        The stack of this task and of the tasks after it; "numpy" gives it NumPy's arrays. A stack other than the program's
        works in a process of its own, which gets the function and the objects that it uses.
    takes, gives : str, class or tuple, optional
        The element type and extents of pieces, as "float64[:, 3]", or their class.
    rate : tuple of two ints
        How many pieces a call takes, as arguments, and how many it gives, as a tuple.
    ahead : int, optional
        How many pieces may wait before it.
    name : str, optional
        The name in errors and counters.

    Raises
    ------
    bh.GraphError
        From `run`, if the function fails: it names the stage and the piece.

    Examples
    --------
    >>> total = []
    >>> graph = bh.source([[1.0, 2.0], [3.0, 4.0]]) >> bh.task(bh.asarray) >> bh.task(bh.sum) >> bh.sink(total.append)
    >>> _ = graph.run()
    >>> [float(part) for part in total]
    [3.0, 7.0]
    """
    name = name or getattr(function, "__name__", None) or type(function).__name__
    _refuse_state(function, name)
    taken, given = (_at_least_one(number, "rate") for number in rate)
    if ahead is not None:
        _at_least_one(ahead, "ahead")
    return Graph((Stage("task", function, f"'{name}'", takes, gives, (taken, given), stack, ahead),))


def sink(function, *, stack=None, takes=None, ahead=AHEAD, name=None):
    """The last stage of a task graph: the thread that runs the graph calls a function with each piece, in order. It may keep state.

    Parameters
    ----------
    function : callable
        It gets a piece.
    stack : str, optional
        "numpy" gives it NumPy's arrays; by default it gets arrays of the program's stack.
    takes : str, class or tuple, optional
        The element type and extents of pieces, as "float64[:, 3]", or their class.
    ahead : int
        How many pieces may wait for it.
    name : str, optional
        The name in errors and counters.
    """
    name = name or getattr(function, "__name__", None) or type(function).__name__
    if stack not in (None, _pieces.HOST):
        raise ValueError(f"sinks are called by the program: their pieces are on its stack, or NumPy's with stack 'numpy', not on '{stack}'")
    return Graph((Stage("sink", function, f"'{name}'", takes, stack=stack, ahead=_at_least_one(ahead, "ahead")),))


def _at_least_one(number, name):
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"{name} needs whole numbers from 1 on, not {number!r}")
    return number


def _refuse_state(function, name):
    """Fails for functions that show that they keep state: methods of objects, generators, and those that assign outer names."""
    if not callable(function):
        raise TypeError(f"a task is a function, not {function!r}")
    plain = inspect.unwrap(function)
    if isinstance(plain, types.MethodType) and not isinstance(plain.__self__, type):
        raise TypeError(f"a task keeps no state, and '{name}' is a method of an object; sources and sinks may be such")
    if not isinstance(plain, types.FunctionType):
        return
    if inspect.isgeneratorfunction(plain):
        raise TypeError(f"a task keeps no state, and '{name}' is a generator; a source may be one")
    if outer := _assigned(plain.__code__, set(plain.__code__.co_freevars)):
        raise TypeError(f"a task keeps no state, and '{name}' assigns {', '.join(sorted(outer))}, which lives on; sources and sinks may do so")


def _assigned(code, outer):
    """The global names, and those of enclosing functions, that code assigns."""
    found = set()
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in outer:
            found.add(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _assigned(constant, outer & set(constant.co_freevars))
    return found

"""The causes that slow a program down, with its lines: reads in loops, element loops, NumPy's and one rank's work, moved arrays."""

import ast
import functools
import linecache
from collections import Counter

import numpy as np

from .. import _native
from .._cluster import ranks
from .._numpy import fallback
from .tracebacks import with_cells

# The reads or assignments of single elements by one line that make a loop of them.
_MANY = 16

_NOT_WATCHED = "bh doctor: reads and elements in loops were not watched; run `python -m bh --doctor` with the script, or call bh.doctor(watch=True) before the loop"

# The kinds of findings about reads: for each the methods of arrays that read, and the advice.
_READING = {
    "reads in a loop": (("item", "__float__", "__int__", "__index__", "__complex__", "tolist"), "each read runs what is recorded; keep results in arrays"),
    "prints in a loop": (
        ("__str__", "__repr__", "__format__"),
        "each text runs what is recorded; print every tenth step, or keep results in arrays and print them after the loop",
    ),
    "conversions in a loop": (("__array__",), "each conversion to NumPy, also by other packages, runs what is recorded; convert after the loop"),
}
# Functions of NumPy that convert without calling a method.
_CONVERTING = "asarray", "asanyarray", "array", "ascontiguousarray"

# How often lines read, by kind and place; how often they branch on values, and access elements, by place.
_reads = {kind: Counter() for kind in _READING}
_branches = Counter()
_elements = Counter()


def begin():
    """Starts to note reads that run batches and accesses to single elements that are recorded, once; both become slower."""
    ndarray = _native.ndarray
    if watches():
        return
    for kind, (names, _) in _READING.items():
        for name in names:
            setattr(ndarray, name, _noting(getattr(ndarray, name), _reads[kind]))
    ndarray.__bool__ = _noting(ndarray.__bool__, _branches)
    for name in _CONVERTING:
        setattr(np, name, _noting_conversions(getattr(np, name)))
    for name in ("__getitem__", "__setitem__"):
        setattr(ndarray, name, _noting_elements(getattr(ndarray, name)))


def watches():
    """Whether reads and accesses to single elements are noted."""
    return hasattr(_native.ndarray.item, "_notes")


# Whether a read is being noted: those that it makes itself are no others.
_within = False


def _noting(function, counter):
    def method(self, *args, **kwargs):
        global _within
        if _within or _native.is_at_hand(self):
            return function(self, *args, **kwargs)
        _, batches, _ = _native.Stack().work()
        _within = True
        try:
            result = function(self, *args, **kwargs)
        finally:
            _within = False
        if _native.Stack().work()[1] > batches:
            counter[_native.call_site()] += 1
        return result

    method._notes = counter
    return method


def _noting_conversions(function):
    noting = _noting(function, _reads["conversions in a loop"])

    @functools.wraps(function)
    def convert(*args, **kwargs):
        return (noting if args and type(args[0]) is _native.ndarray else function)(*args, **kwargs)

    return convert


def _noting_elements(function):
    def method(self, key, *value):
        if _native.is_at_hand(self) or not _is_of_element(self, key):
            return function(self, key, *value)
        recorded, _, _ = _native.Stack().work()
        result = function(self, key, *value)
        if _native.Stack().work()[0] > recorded:
            _elements[_native.call_site()] += 1
        return result

    return method


def _is_of_element(array, key):
    """Does a key name one element?"""
    parts = key if type(key) is tuple else (key,)
    return len(parts) == array.ndim and all(type(part) is int for part in parts)


@functools.cache
def _branching(file):
    """The statements of a file that branch."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.If, ast.While, ast.Assert))]


def _advice_for_branch(file, line):
    """The advice for a line that branches on values: does the branch end the loop, assert, or do something else?"""
    at = [node for node in _branching(file) if node.test.lineno <= line <= node.test.end_lineno or node.lineno == line]
    if any(isinstance(node, ast.Assert) for node in at):
        return "each test runs what is recorded; test after the loop"
    ends = any(isinstance(node, ast.While) or isinstance(node.body[-1], (ast.Break, ast.Return, ast.Raise)) for node in at)
    if ends:
        return "each test runs what is recorded, and decides whether the loop goes on; test every tenth step only, as `if step % 10 == 0 and …`"
    return "each test runs what is recorded; test every tenth step, or choose with where()"


def findings():
    """The findings as rows: kind, file, line, count, advice."""
    rows = []
    for kind, counter in _reads.items():
        # Reads of single elements are part of the loop over elements.
        many = [(place, count) for place, count in counter.items() if count >= _MANY and _elements[place] < count]
        rows += [(kind, *place, count, _READING[kind][1]) for place, count in many]
    for (file, line), count in _branches.items():
        if count >= _MANY:
            rows.append(("branch in a loop", file, line, count, _advice_for_branch(file, line)))
    read = Counter()
    for counter in _reads.values():
        read.update(counter)
    for place, count in _elements.items():
        if count >= _MANY:
            reads = read[place] >= count
            advice = "each access is an operation, and its value is read at once; take all elements at once, as a.tolist()" if reads else "each access is an operation"
            rows.append(("element loop", *place, count, advice + "; work on slices or with where()"))
    for (file, line, name), count in fallback.places.items():
        rows.append(("NumPy's work", file, line, count, f"{name} moves its arrays to NumPy and back"))
    for count, name, line, file in ranks.brought():
        rows.append(("one rank's work", file, line, count, f"{name} brings its arrays to one rank of the cluster"))
    moved = fallback.counts["moved between stacks"]
    if moved:
        rows.append(("moves between stacks", "", 0, moved, "arrays of several stacks meet; make them on one"))
    return sorted(rows, key=lambda row: -row[3])


def report(form="text"):
    """The findings as text, JSON or CSV."""
    rows = findings()
    if form == "json":
        import json

        return json.dumps([dict(zip(("kind", "file", "line", "count", "advice"), row)) for row in rows])
    if form == "csv":
        return "\n".join(["kind,file,line,count,advice", *(",".join(f'"{part}"' for part in row) for row in rows)])
    lines = [f"{with_cells(f'{file}:{line}')}: {kind}, {count} times: {advice}" for kind, file, line, count, advice in rows]
    if not watches():
        lines.append(_NOT_WATCHED)
    elif not rows:
        return "bh doctor: nothing found"
    return "\n".join(["bh doctor:", *lines] if rows else lines)


def doctor(form="text", watch=False):
    """Returns the causes that have slowed the program down so far, with lines of the program, and the code to write instead.

    Parameters
    ----------
    form : {"text", "json", "csv"}
        The form of the findings.
    watch : bool
        Begins to note lines that read results or access single elements in loops. These accesses are slower from then on.
        `python -m bh --doctor` watches from the script's first line.

    Examples
    --------
    >>> print(bh.doctor())  # doctest: +SKIP
    main.py:7: reads in a loop, 200 times: each read runs what is recorded; keep results in arrays
    """
    if watch:
        begin()
    return report(form)

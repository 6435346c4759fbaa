"""What slows a program down, with the lines of the program: reads in loops, element loops, NumPy's and one rank's work, moved arrays."""

from collections import Counter

from .. import _native
from .._cluster import ranks
from .._numpy import fallback
from .tracebacks import with_cells

# The reads or assignments of single elements by one line that make a loop of them.
_MANY = 16

_NOT_WATCHED = "bh doctor: reads and elements in loops were not watched; run `python -m bh --doctor` with the script, or call bh.doctor(watch=True) before the loop"

_reads = Counter()
_branches = Counter()
_elements = Counter()

# The methods that read an array.
_READING = ("item", "__float__", "__int__", "__index__", "__complex__", "tolist", "__array__", "__str__", "__repr__", "__format__")


def begin():
    """Starts to note reads that run batches and accesses to single elements that are recorded, once; both become slower."""
    ndarray = _native.ndarray
    if watches():
        return
    for name in _READING:
        setattr(ndarray, name, _noting(getattr(ndarray, name), _reads))
    ndarray.__bool__ = _noting(ndarray.__bool__, _branches)
    for name in ("__getitem__", "__setitem__"):
        setattr(ndarray, name, _noting_elements(getattr(ndarray, name)))


def watches():
    """Whether reads and accesses to single elements are noted."""
    return hasattr(_native.ndarray.item, "_notes")


def _noting(function, counter):
    def method(self, *args, **kwargs):
        if _native.is_at_hand(self):
            return function(self, *args, **kwargs)
        _, batches, _ = _native.Stack().work()
        result = function(self, *args, **kwargs)
        if _native.Stack().work()[1] > batches:
            counter[_native.call_site()] += 1
        return result

    method._notes = counter
    return method


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


def findings():
    """The findings as rows: kind, file, line, count, advice."""
    rows = []
    for (file, line), count in _reads.items():
        if count >= _MANY:
            rows.append(("reads in a loop", file, line, count, "each read runs what is recorded; keep results in arrays"))
    for (file, line), count in _branches.items():
        if count >= _MANY:
            rows.append(("branch in a loop", file, line, count, "each test runs what is recorded; test every tenth step, or choose with where()"))
    for (file, line), count in _elements.items():
        if count >= _MANY:
            rows.append(("element loop", file, line, count, "each access is an operation; work on slices or with where()"))
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
    """What slows the program down so far.

    `form`: "text", "json" or "csv". `watch`: starts to note the lines that read results or access single elements in loops, which
    makes these accesses slower in this process. `python -m bh --doctor` watches from the script's first line.
    """
    if watch:
        begin()
    return report(form)

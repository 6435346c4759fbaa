"""The runtime behind the arrays: stacks, flushing, counters, and what went to NumPy."""

import contextlib
import sys

import numpy as np

from .. import _native
from .._numpy import fallback as _fallback
from . import installation
from .tracebacks import with_cells

__all__ = ["check", "devices", "eager", "explain", "fallback", "flush", "info", "memory_limit", "profile", "show_config", "stacks", "threads", "using", "wait"]


class using:
    """A stack for the arrays made inside of a `with` statement; they keep it afterwards."""

    def __init__(self, name):
        self._stack = _native.Stack(name)

    def __enter__(self):
        self._before = self._stack.activate()
        return self._stack

    def __exit__(self, *_):
        if self._before is not None:
            self._before.activate()


def flush(wait=True):
    """Runs everything recorded so far, and waits for it."""
    _native.flush(wait)


def wait(*arrays):
    """Runs what these arrays depend on, and waits for them; what was recorded later goes on."""
    for array in arrays:
        if type(array) is _native.ndarray and array.size:
            _native.Stack(array._stack).flush(False)
    for array in arrays:
        if type(array) is _native.ndarray and array.size:
            _native.item_of(array[(slice(0, 1),) * array.ndim])


def threads(number=None):
    """How many threads the engine of the present stack uses, the program's own included, after setting it if a number is given."""
    if number is not None and int(number) < 1:
        raise ValueError(f"{number} is no number of threads")
    answer = _native.Stack().message("threads" if number is None else f"threads {int(number)}")
    if not answer:
        raise _native.Error("the stack has no engine whose threads can be set")
    return int(_native.Stack().message("threads"))


def eager(on=True):
    """Runs each operation of the present stack before its call returns, so that errors and times belong to lines; `eager(False)` records again."""
    _native.Stack().set_eager(bool(on))


def check(*checks):
    """Finds the operations of the present stack that make bad numbers: an error names the operation, its line, the element and its operands.

    `"nan"` finds a NaN that is made of other numbers, `"inf"` an infinity of finite numbers, `"overflow"` a sum, difference or product of
    integers beyond their type, and `"zero-division"` a division of integers by zero. Programs run fused as before. `"nan-all"` also finds
    numbers that no result keeps, and `"bounds"` indices out of range; both run operations one by one. `check()` ends the checks.
    """
    _native.Stack().set_checks(",".join(checks) or "none")


def stacks():
    """The names of the stacks that `bh.using`, `--stack` and `BH_STACK` take, as a list."""
    try:
        _native.Stack("a name that no stack has")
    except _native.Error as error:
        # The configuration is the runtime's, which lists its stacks where it does not know one.
        return str(error).rpartition("; stacks: ")[2].split(", ")


def devices():
    """The devices of each driver that finds some, as lists of texts under the names of the drivers' stacks.

    The place of a device in its list is the number that `BH_DEVICE` takes. Processors that a driver offers are among them.
    """
    found = {}
    for name in ("cuda", "opencl"):
        with contextlib.suppress(_native.Error):
            lines = [line.partition(": ") for line in _native.Stack(name).message_first("devices").splitlines()]
            if texts := [text for number, _, text in lines if number.isdecimal()]:
                found[name] = texts
    return found


def memory_limit():
    """The most bytes of host memory that arrays of the present stack may take; None without a limit. `BH_MEMORY_LIMIT=8GiB` sets it."""
    limit = _native.Stack().memory()[3]
    return None if limit > sys.maxsize else limit


@contextlib.contextmanager
def fallback(mode):
    """Another way to deal with work that bh leaves to NumPy, inside of a `with` statement: warn, error or silent."""
    before = _fallback.mode(mode)
    try:
        yield
    finally:
        _fallback.mode(before)


class Profile(dict):
    """Counters by name. Shown as a table."""

    def __repr__(self):
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {_shown(name, value)}" for name, value in self.items() if value)

    def _repr_html_(self):
        rows = "".join(f"<tr><td>{name}</td><td>{_shown(name, value)}</td></tr>" for name, value in self.items() if value)
        return f"<table><tr><th>counter</th><th>value</th></tr>{rows}</table>"


def _shown(name, value):
    if name.endswith("_ns"):
        return f"{value / 1e6:.3f} ms"
    if name.endswith("bytes") and value >= 1 << 20:
        return f"{value / (1 << 20):.1f} MiB"
    return value


def profile():
    """What was counted since the start: recorded, run, moved, and left to NumPy."""
    flush()
    counters = Profile(_native.Stack().counters())
    for name, count in sorted(_fallback.counts.items()):
        counters[f"fallback.{name}"] = count
    return counters


def info(object=None, maxwidth=76, output=None, toplevel="numpy"):
    """The versions and components that run the arrays, and what is missing for others, as text; of an object `numpy.info`."""
    if object is not None:
        return np.info(object, maxwidth, output, toplevel)
    python = ".".join(map(str, sys.version_info[:3]))
    missing = "".join(f"{line}\n" for line in installation.missing())
    return f"{_native.Stack().describe()}Python {python}, NumPy {np.__version__}\n{missing}"


def show_config(mode="stdout"):
    """`numpy.show_config`, after what `bh.info()` says; with the mode "dicts" a dictionary that has that under "bh"."""
    if mode == "dicts":
        return {"bh": info(), **np.show_config(mode)}
    print(info())
    return np.show_config(mode)


class Explanation(str):
    """Text about kernels. In notebooks it is a picture."""

    pictures = ()

    def _repr_svg_(self):
        return self.pictures[-1] if self.pictures else None


def explain(array=None):
    """What the fuser makes of everything recorded and not yet run: kernels, their operations with lines, bytes of memory.

    Runs what is recorded. With an array, on the stack of that array. Then the lines whose results were not stored so far, as
    nobody had looked at them.
    """
    import tempfile
    from pathlib import Path

    stack = _native.Stack(array._stack if array is not None else None)
    recipes = stack.message("recipes")
    with tempfile.TemporaryDirectory() as directory:
        stack.message_first(f"fuser graph {directory}")
        try:
            stack.flush()
        finally:
            stack.message_first("fuser graph")
        return _explained(Path(directory), stack.work()[2], recipes)


def _explained(directory, immediate, recipes):
    texts, pictures = [], []
    for file in sorted(directory.iterdir()):
        if file.suffix == ".txt":
            texts.append(with_cells(file.read_text()))
        elif file.suffix == ".svg":
            pictures.append(file.read_text())
    at_once = f"; {immediate} operations on little data were carried out where they were called" if immediate else ""
    text = "\n".join(texts) or f"nothing new: what was recorded had run, or its kernels were known{at_once}"
    result = Explanation(text + (f"\nnot stored, as nobody looked at them:\n{recipes}" if recipes else ""))
    result.pictures = tuple(pictures)
    return result

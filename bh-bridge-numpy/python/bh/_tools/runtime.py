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
    """Makes arrays inside of a `with` statement on another stack; they keep it afterwards.

    Operations run on the stack of their operands. Operands of other stacks are copied, which `bh.profile()` counts.

    Parameters
    ----------
    name : str
        A stack that `bh.stacks()` lists.

    Raises
    ------
    bh.Error
        If there is no stack of this name, or a component of it cannot be loaded.

    Examples
    --------
    >>> with bh.using("cpu-plain"):
    ...     x = bh.arange(3.0)
    >>> x + 1
    array([1., 2., 3.])
    """

    def __init__(self, name):
        self._stack = _native.Stack(name)

    def __enter__(self):
        self._before = self._stack.activate()
        return self._stack

    def __exit__(self, *_):
        if self._before is None:
            _native.leave_stack()
        else:
            self._before.activate()


def flush(wait=True):
    """Runs everything recorded so far.

    Parameters
    ----------
    wait : bool
        Whether to wait until it has run.

    Raises
    ------
    bh.Error
        The first error of an operation that nobody has read, with the line that recorded it.

    Examples
    --------
    >>> x = bh.ones(1000) * 2
    >>> bh.flush()
    """
    _native.flush(wait)


def wait(*arrays):
    """Runs the operations that these arrays depend on, and waits for their values. Use it around code that you time.

    Parameters
    ----------
    *arrays : ndarray
        Arrays of bh. Other objects are ignored.

    Raises
    ------
    bh.Error
        The error of an operation that an array depends on.

    Examples
    --------
    >>> x = bh.linspace(0, 1, 1000) ** 2
    >>> bh.wait(x)
    """
    for array in arrays:
        if type(array) is _native.ndarray and array.size:
            _native.Stack(array._stack).flush(False)
    for array in arrays:
        if type(array) is _native.ndarray and array.size:
            _native.item_of(array[(slice(0, 1),) * array.ndim])


def threads(number=None):
    """Returns how many threads the engine of the present stack uses, including the program's own, and sets their number if you give one.

    Results have the same bits for any number of threads.

    Parameters
    ----------
    number : int, optional
        The new number of threads, 1 or more.

    Raises
    ------
    ValueError
        If the number is smaller than 1.
    bh.Error
        If the stack has no engine whose threads can be set.

    Examples
    --------
    >>> before = bh.threads()
    >>> bh.threads(1)
    1
    >>> bh.threads(before) == before
    True
    """
    if number is not None and int(number) < 1:
        raise ValueError(f"{number} is no number of threads")
    answer = _native.Stack().message("threads" if number is None else f"threads {int(number)}")
    if not answer:
        raise _native.Error("the stack has no engine whose threads can be set")
    return int(_native.Stack().message("threads"))


def eager(on=True):
    """Runs each operation of the present stack before its call returns, so that errors and times belong to lines. Nothing fuses meanwhile.

    Parameters
    ----------
    on : bool
        False records operations again.

    Examples
    --------
    >>> bh.eager()
    >>> x = bh.ones(1000) + 1
    >>> bh.eager(False)
    """
    _native.Stack().set_eager(bool(on))


def check(*checks):
    """Finds the operations of the present stack that make bad numbers: an error names the operation, its line, the element and its operands.

    `"nan"` finds a NaN that is made of other numbers, `"inf"` an infinity of finite numbers, `"overflow"` a sum, difference or product of
    integers beyond their type, `"zero-division"` a division of integers by zero, and `"cancellation"` a sum or difference of floats that loses 40 bits, or 18 in
    single precision; `"cancellation=20"` finds losses of 20 bits. Programs run fused as before. `"nan-all"` also finds numbers that no
    result keeps, and `"bounds"` indices out of range; both run operations one by one. `check()` ends the checks.

    Parameters
    ----------
    *checks : str
        The names above.

    Raises
    ------
    bh.Error
        For another name; later, at the read of a result, for a bad number.

    Examples
    --------
    >>> bh.check("nan")
    >>> bh.check()
    """
    _native.Stack().set_checks(",".join(checks) or "none")


def stacks():
    """Returns the names of the stacks that `bh.using`, `--stack` and `BH_STACK` take, as a list.

    Examples
    --------
    >>> "cpu" in bh.stacks(), "gpu" in bh.stacks()
    (True, True)
    """
    try:
        _native.Stack("a name that no stack has")
    except _native.Error as error:
        # The configuration is the runtime's, which lists its stacks where it does not know one.
        return str(error).rpartition("; stacks: ")[2].split(", ")


def devices():
    """Returns the devices of each driver that finds some, as lists of texts under the names of the drivers' stacks.

    The place of a device in its list is the number that `BH_DEVICE` takes. Processors that a driver offers are among them.

    Examples
    --------
    >>> bh.devices()  # doctest: +SKIP
    {'cuda': ['NVIDIA H100 80GB HBM3'], 'opencl': ['NVIDIA H100 80GB HBM3']}
    """
    return {stack: found for stack in ("cuda", "opencl") if (found := installation.devices(stack)[0])}


def memory_limit():
    """Returns the most bytes of host memory that arrays of the present stack may take; None without a limit.

    `BH_MEMORY_LIMIT=8GiB` sets it before the program starts. Without it, the limit is 90% of the memory of the machine or container.

    Examples
    --------
    >>> bh.memory_limit()  # doctest: +SKIP
    8589934592
    """
    limit = _native.Stack().memory()[3]
    return None if limit > sys.maxsize else limit


@contextlib.contextmanager
def fallback(mode):
    """Chooses inside of a `with` statement what happens when NumPy has to do what bh lacks.

    Parameters
    ----------
    mode : {"warn", "error", "silent"}
        Warns once for each line, raises `bh.FallbackError`, or does neither. `BH_FALLBACK` sets it for the whole program.

    Raises
    ------
    ValueError
        For another mode.

    Examples
    --------
    >>> with bh.fallback("silent"):
    ...     mantissa, exponent = bh.frexp(bh.ones(3))
    """
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
    """Runs the recorded operations, and returns the counters since the start: operations, kernels, bytes, cache hits, and what NumPy did.

    It is a dictionary that prints as a table, in notebooks too. Times are in nanoseconds, under names that end in `_ns`.

    Examples
    --------
    >>> before = bh.profile()["recorded"]
    >>> x = bh.arange(100_000.0) * 2 + 1
    >>> bh.profile()["recorded"] - before
    3
    """
    flush()
    counters = Profile(_native.Stack().counters())
    for name, count in sorted(_fallback.counts.items()):
        counters[f"fallback.{name}"] = count
    return counters


def info(object=None, maxwidth=76, output=None, toplevel="numpy"):
    """Returns as text the versions and components that run the arrays, and the missing parts of other stacks.

    Parameters
    ----------
    object : object, optional
        Something else, for which `numpy.info` prints its text with the other parameters.

    Examples
    --------
    >>> print(bh.info())  # doctest: +SKIP
    bh 0.1.0, stack cpu
      filter (filter, bh 0.1.0)
      ...
    """
    if object is not None:
        return np.info(object, maxwidth, output, toplevel)
    python = ".".join(map(str, sys.version_info[:3]))
    missing = "".join(f"{line}\n" for line in installation.missing())
    stack = _native.Stack()
    # An answer only where there is a cluster.
    alone = stack.name.startswith("cluster") and stack.message_first("cluster ranks") in ("", "1")
    ranks = "one rank, which computes alone: `mpirun -n 4 python program.py` starts four\n" if alone else ""
    return f"{stack.describe()}Python {python}, NumPy {np.__version__}\n{ranks}{missing}"


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
    """Runs the recorded operations, and returns how they fused: the kernels, their operations with lines of the program, and the bytes that they move.

    Put it in the place of the first read, because a read runs the recorded operations. At its end, the text lists lines whose results were not
    stored, as nothing has read them. In notebooks the result is a picture.

    Parameters
    ----------
    array : ndarray, optional
        Explains the stack of this array instead of the present one.

    Examples
    --------
    >>> x = bh.arange(1e6)
    >>> y = x * 2 + 1
    >>> print(bh.explain())  # doctest: +SKIP
    1 kernel for 3 operations; 32010000 bytes instead of 64030000 by cost model traffic
    ...
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
    at_once = f"; {immediate} operation{'s' * (immediate != 1)} on little data ran immediately" if immediate else ""
    text = "\n".join(texts) or f"nothing new: no operations were pending, or their kernels are known{at_once}"
    result = Explanation(text + (f"\nnot stored, because nothing read them:\n{recipes}" if recipes else ""))
    result.pictures = tuple(pictures)
    return result

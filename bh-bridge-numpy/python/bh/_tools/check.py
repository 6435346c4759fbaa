"""`python -m bh --check`: runs a script twice, as configured and operation by operation, and names the first value that differs.

Each run writes what the script reads, in order, with the line that reads it, and the arrays that its names hold at the end.
"""

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# Every operation as it was written, one after the other, by one thread.
PLAIN = """
[stacks]
plain = ["fuser-singleton", "node", "ve-cpu"]
default = "plain"
[recorder]
immediate_bytes = 0
[components.fuser-singleton]
library = "bh_fuser"
algorithm = "singleton"
[components.ve-cpu]
threads = 1
planning = "direct"
windows = "off"
jit = "off"
"""
# The variables that mean the same on every stack.
_KEPT = ("BH_LIBRARY_PATH", "BH_FALLBACK")
# By how much of the largest number rounding may change a value: functions and sums are not taken in the same order.
_ROUNDING = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-4, "complex64": 1e-4}
_READS = ("item", "__float__", "__int__", "__bool__", "__index__", "__complex__", "tolist", "__array__", "__repr__", "__str__", "__format__")


class Recording:
    """Writes what the script reads to a file, while the script runs."""

    def __init__(self, path):
        self._file, self._busy = open(path, "wb"), False

    def begin(self):
        """Starts to note reads. Elements stay arrays, as reads of NumPy's scalars are not seen."""
        from .. import _native

        _native.set_shortcuts(False)
        for name in _READS:
            if hasattr(_native.ndarray, name):
                setattr(_native.ndarray, name, self._noting(getattr(_native.ndarray, name), name))

    def _noting(self, function, name):
        from .. import _native

        def method(array, *args, **kwargs):
            if not self._busy:
                self.note(_native.call_site(), name, array)
            return function(array, *args, **kwargs)

        return method

    def note(self, place, name, array):
        """Writes the values of an array that is read at a place."""
        from .._numpy import fallback

        self._busy = True
        try:
            pickle.dump((place, name, fallback.to_numpy(array)), self._file)
        finally:
            self._busy = False

    def end(self, names):
        """Notes the arrays that the script's names hold."""
        from .. import _native

        for name, value in sorted(names.items()):
            if isinstance(value, _native.ndarray):
                self.note(("", 0), name, value)
        self._file.close()


def _recorded(path):
    with open(path, "rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            yield pickle.load(file)


def _run(command, record, config=None):
    environment = dict(os.environ) | {"BH_CHECK_RECORD": str(record)}
    if config is not None:
        environment = {name: value for name, value in environment.items() if not name.startswith("BH_") or name in _KEPT}
        environment |= {"BH_CHECK_RECORD": str(record), "BH_CONFIG": str(config)}
    # The second run is silent: its output is the first one's, or the difference is reported.
    return subprocess.run(command, env=environment, stdout=None if config is None else subprocess.DEVNULL).returncode


def check(arguments):
    """Runs `python -m bh` with the arguments twice and prints what differs first. The exit status: 0 if nothing does."""
    command = [sys.executable, "-m", "bh", *arguments]
    with tempfile.TemporaryDirectory() as directory:
        config, mine, plain = (Path(directory) / name for name in ("plain.toml", "configured", "plain"))
        config.write_text(PLAIN)
        codes = _run(command, mine), _run(command, plain, config)
        count, found = compared(_recorded(mine), _recorded(plain))
    if not found and codes[0] != codes[1]:
        found = f"the script ends with {codes[0]} as configured, and with {codes[1]} operation by operation"
    print(f"bh check: {found or f'{count} values read, all as operation by operation'}", file=sys.stderr)
    return 1 if found else 0


def compared(mine, plain):
    """How many values are the same, and what is wrong with the first that is not; none if all are."""
    count, end = 0, (("", 0), "", None)
    mine, plain = iter(mine), iter(plain)
    while True:
        (place, name, value), (right_place, right_name, right) = next(mine, end), next(plain, end)
        if value is None and right is None:
            return count, None
        if (place, name) != (right_place, right_name):
            return count, f"{_where(place, name)}: the script reads something else here; operation by operation it goes on with {_where(right_place, right_name)}"
        wrong = _differences(value, right)
        if wrong is not None:
            return count, f"{_where(place, name)}: {wrong}"
        count += 1


def _where(place, name):
    if not name:
        return "the end"
    file, line = place
    if not line:
        return f"array '{name}' at the end"
    with contextlib.suppress(OSError, IndexError, UnicodeDecodeError):
        return f"{file}:{line}: `{Path(file).read_text().splitlines()[line - 1].strip()}`"
    return f"{file}:{line}"


def _differences(value, right):
    if (value.shape, value.dtype) != (right.shape, right.dtype):
        return f"shape {value.shape} of {value.dtype}, not {right.shape} of {right.dtype}"
    share = _ROUNDING.get(str(right.dtype))
    with np.errstate(all="ignore"):
        wrong = value != right
        if share is not None:
            size = float(np.abs(right[np.isfinite(right)]).max(initial=0.0))
            wrong &= ~(np.abs(value - right) <= share * size) & ~(np.isnan(value) & np.isnan(right))
    if not wrong.any():
        return None
    place = tuple(map(int, np.argwhere(wrong)[0])) if right.ndim else ()
    at = f" at {list(place)}" if place else ""
    return f"{int(wrong.sum())} of {right.size} elements differ; the first{at} is {value[place]}, not {right[place]}"

"""Arrays of more elements than memory has room for: what cannot be had fails at once, in NumPy's words."""

import subprocess
import sys

import numpy
import pytest

BEGIN = """
import re, resource, signal
import numpy, bh as np
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
signal.alarm(60)
HUGE = 1 << 40
r, philox, row = np.random.default_rng(0), np.random.Generator(np.random.Philox(1)), np.arange(3.0)
try:
    result = {}
    print("ok", type(result).__name__)
except (MemoryError, ValueError) as error:
    print(type(error).__name__, error)
# This program's own peak: getrusage counts that of the process which started it, too.
grown = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
assert grown < 400 << 10, f"{{grown}} KiB"
"""
NO_ROOM = "MemoryError Unable to allocate {} for an array with shape {} and data type {}"
CASES = {
    "r.random(HUGE)": NO_ROOM.format("8.00 TiB", "(1099511627776,)", "float64"),
    "r.random(HUGE, dtype='f4')": NO_ROOM.format("4.00 TiB", "(1099511627776,)", "float32"),
    "r.random((1 << 20, 1 << 20))": NO_ROOM.format("8.00 TiB", "(1048576, 1048576)", "float64"),
    "r.random((HUGE, HUGE))": "ValueError array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.",
    "r.uniform(2, 3, HUGE)": NO_ROOM.format("8.00 TiB", "(1099511627776,)", "float64"),
    "r.integers(0, 8, HUGE)": NO_ROOM.format("8.00 TiB", "(1099511627776,)", "int64"),
    "r.integers(0, 1 << 40, HUGE)": NO_ROOM.format("8.00 TiB", "(1099511627776,)", "int64"),
    "philox.random(HUGE)": NO_ROOM.format("8.00 TiB", "(1099511627776,)", "float64"),
    "r.normal(size=HUGE)": NO_ROOM.format("8.00 TiB", "(1099511627776,)", "float64"),
    "np.random.rand(HUGE)": NO_ROOM.format("8.00 TiB", "(1099511627776,)", "float64"),
    "np.repeat(row, HUGE).tolist()": NO_ROOM.format("24.0 TiB", "(3298534883328,)", "float64"),
    "np.bincount(np.arange(3), minlength=HUGE)": NO_ROOM.format("8.00 TiB", "(1099511627776,)", "int64"),
    "np.take(row, np.broadcast_to(1, (HUGE,)))": None,
    "np.broadcast_to(row, (HUGE, 3)).tolist()": None,
    # Nothing of these is computed.
    "np.ones(HUGE)": "ok ndarray",
    "np.arange(HUGE) * 2": "ok ndarray",
    "np.repeat(row, HUGE)": "ok ndarray",
    "repr(np.broadcast_to(row, (HUGE, 3)))": "ok str",
}


@pytest.mark.parametrize("expression", CASES)
def test_what_cannot_be_had_fails_at_once(expression):
    done = subprocess.run([sys.executable, "-c", BEGIN.format(expression)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip()
    assert said == CASES[expression] if CASES[expression] else said.startswith(("MemoryError", "ok ndarray")), said


@pytest.mark.parametrize("draw", [lambda np: np.random.default_rng(0).random(1 << 62), lambda np: np.random.default_rng(0).random((1 << 40, 1 << 40))])
def test_what_no_memory_has_fails_as_in_numpy(draw):
    import bh

    with pytest.raises((MemoryError, ValueError)) as mine:
        draw(bh)
    with pytest.raises((MemoryError, ValueError)) as theirs:
        draw(numpy)
    assert (type(mine.value), str(mine.value)) == (type(theirs.value), str(theirs.value))

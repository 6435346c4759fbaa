"""Checks of fused programs: the operation that made the first bad number is named, with its line, element and operands."""

import io
import linecache
import os
import re
import subprocess
import sys

import numpy
import pytest

import bh
from conftest import BUILD_QUICKLY, LIMIT

# Each plants a NaN, and marks the line that makes the first one that is stored.
PROGRAMS = {
    "in place": """
a = np.linspace(1, -1, 20_000)
a *= 2
np.sqrt(a, out=a)  # NaN
a += 1
""",
    "a stencil in time": """
u = np.ones((200, 300)) * 2
u[100, 150] = -9
w = np.zeros_like(u)
for step in range(12):
    u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    v = np.sqrt(u)  # NaN
    w += v
""",
    "numbers": """
a = np.arange(50_000.0)
count = (a < 0).sum()
total = np.where(a < 0, a, 0.0).sum()
mean = total / count  # NaN
twice = mean * 2
""",
    "a function of scalars": """
def grown(x):
    n = 0
    while n < 30 and x > 0.1:
        x = x * x
        n += 1
    return x - x

a = np.linspace(0.5, 1.5, 10_000)
b = np.vectorize(grown, otypes=[float])(a)  # NaN
""",
    "a long loop": """
a = np.linspace(0.1, 0.3, 5_000)
for turn in range(1_000):
    a = a + 0.001
    b = np.arcsin(a)  # NaN
    c = b * 2
""",
    "a discarded one before": """
a = np.linspace(-1, 1, 30_000)
root = np.where(a > 0, np.sqrt(a), 0.0)
scaled = root * 3 - 1
b = np.log(scaled)  # NaN
del root, scaled
""",
    "a product": """
a = np.ones((60, 60))
b = np.ones((60, 60))
a[3, 5], b[5, 7] = np.inf, 0
c = a @ b  # NaN
""",
    "complex numbers": """
z = np.arange(20_000) * (1 + 0j)
w = z * np.inf  # NaN
""",
    "columns": """
a = np.arange(60_000, dtype="f4").reshape(6_000, 10) % 7
a[:, 4] = 2
low, high = a.min(axis=0), a.max(axis=0)
scaled = (a - low) / (high - low)  # NaN
best = scaled.sum(axis=0)
""",
    "a running sum": """
a = np.ones(30_000)
a[100], a[2_000] = np.inf, -np.inf
b = np.cumsum(a)  # NaN
""",
}


def place(program):
    """The number of the marked line."""
    return 1 + next(number for number, line in enumerate(program.splitlines()) if line.endswith("# NaN"))


def failure(program, name="planted.py"):
    """The text of the error that a program ends with, under the names that it made."""
    names = {"np": bh}
    # Functions of scalars are read from their source.
    linecache.cache[name] = (len(program), None, program.splitlines(True), name)
    with numpy.errstate(all="ignore"), pytest.raises(bh.Error) as failed:
        exec(compile(program, name, "exec"), names)
        bh.flush()
    return str(failed.value)


@pytest.fixture
def checked():
    bh.flush()
    yield bh.check
    bh.check()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_of_the_first_nan_is_named(name, checked):
    checked("nan")
    text = failure(PROGRAMS[name])
    assert f"planted.py:{place(PROGRAMS[name])}: " in text and "of the result is " in text and "nan" in text, text
    checked()
    # The same program runs to its end without the check.
    with numpy.errstate(all="ignore"):
        exec(compile(PROGRAMS[name], "planted.py", "exec"), {"np": bh})
        bh.flush()


def test_operands_and_the_lines_that_made_them_are_named(checked):
    checked("nan")
    text = failure("a = np.arange(20_000.0)\nb = a - 3\nc = b * 2\nd = np.sqrt(c)\ndel a, b, c\n")
    assert "planted.py:4: sqrt: element 0 of the result is nan, but no NaN went into it (operands: -6); elements like that: 3" in text
    assert text.endswith("its operands come from planted.py:3 (multiply), planted.py:2 (subtract), planted.py:1 (range)"), text


def test_nans_that_are_there_are_not_told_again(checked):
    a = bh.array(numpy.tile([1.0, numpy.nan], 20_000))
    checked("nan")
    b = a * 2 + 1
    bh.flush()
    assert numpy.isnan(numpy.asarray(b)).sum() == 20_000
    with pytest.raises(bh.Error, match="sqrt: element 0 of the result is nan.*elements like that: 20000"):
        c = bh.sqrt(-b)
        bh.flush()
    del c


@pytest.mark.parametrize(
    ("check", "program", "found"),
    [
        ("inf", "a = np.arange(20_000.0)\nb = 1 / a\n", "planted.py:2: divide: element 0 of the result is inf"),
        ("overflow", "a = np.arange(20_000, dtype='i4')\nb = a * 300_000\n", "planted.py:2: multiply: element 7159 of the result is beyond its type"),
        ("cancellation", "x = np.full(20_000, 1e-7)\ny = 1 - np.cos(x)\n", "planted.py:2: subtract: element 0 of the result has lost 47 of its 53 bits by cancellation (operands: 1, 0."),
        ("cancellation=10", "x = np.full(20_000, 3.0, 'f4')\nx[7] = 3.001\ny = x - 3\n", "planted.py:3: subtract: element 7 of the result has lost 11 of its 24 bits by cancellation (operands: 3.001, 3)"),
        (
            "cancellation",
            "x = np.linspace(-1, 1, 20_000).reshape(200, 100) ** 3 + 0.5\nx[7] = np.sin(np.arange(100)) * 1e13\nx[7, -1] -= x[7].sum() - 0.25\ntotal = x.sum(axis=1)\n",
            "planted.py:4: add_reduce: element 7 of the result has lost 5",
        ),
        ("overflow", "a = np.full((300, 200), 100, 'i1')\ntotal = a.sum(axis=0, dtype='i1')\n", "planted.py:2: add_reduce: element 0 of the result is beyond its type (numbers added: 300)"),
        ("overflow", "a = np.arange(1, 20_001).reshape(500, 40)\ntotal = np.prod(a, axis=1)\n", "planted.py:2: multiply_reduce: element 0 of the result is beyond its type (numbers multiplied: 40)"),
        (
            "cancellation",
            "def last(x):\n    n = 0\n    while n < 5 and x < 9:\n        x = x * 0.5 + 0.25\n        n += 1\n    return x - 0.5\na = np.linspace(0, 1, 20_001)\na[3] = 0.5 + 2.0**-38\nb = np.vectorize(last, otypes=[float])(a)\n",
            "element 3 of the result has a sum or difference that has lost at least 40 bits by cancellation; elements like that: 1",
        ),
        ("zero-division", "a = np.arange(20_000)\nb = 7 // a\n", "planted.py:2: floor_divide: element 0 of the result is divided by zero"),
    ],
)
def test_other_bad_numbers_are_found(check, program, found, checked):
    checked(check)
    assert found in failure(program)


READS = {
    "asarray": numpy.asarray,
    "an assignment to NumPy's": lambda y: numpy.zeros(20_000).__setitem__(slice(None), y),
    "a function of NumPy": lambda y: numpy.save(io.BytesIO(), y),
    "memoryview": memoryview,
    "a number": lambda y: float(y.sum()),
    "a text": str,
}


@pytest.mark.parametrize("name", READS)
def test_each_way_to_read_raises_the_error_once(name, checked):
    x = bh.linspace(-1, 1, 20_000)
    bh.flush()
    checked("nan")
    y = bh.sqrt(x)
    with pytest.raises(bh.Error, match="sqrt: element 0 of the result is nan"):
        READS[name](y)
    bh.flush()
    numpy.asarray(y)


def test_checks_have_names(checked):
    with pytest.raises(ValueError, match="'nans' is no check; valid: bounds, cancellation, cancellation=BITS, inf, nan, nan-all, overflow, zero-division"):
        checked("nans")


@pytest.mark.parametrize("seed", range(12))
def test_results_are_the_same_with_checks(seed, checked):
    rng = numpy.random.default_rng(seed)
    a, b = rng.uniform(0.5, 1, size=(2, 150, 120))

    def program(np, a, b):
        a, b = np.array(a), np.array(b)
        kept = []
        for _ in range(8):
            a[1:-1] += 0.1 * (a[2:] + a[:-2])
            b *= np.where(a > 0, 0.5, 0.25)
            kept.append((a * b).sum(axis=int(seed) % 2))
            a, b = b + 1, a - 9
        return [numpy.asarray(x) for x in (a, b, *kept)]

    expected = program(bh, a, b)
    checked("nan", "inf", "overflow", "cancellation=20")
    for mine, other in zip(program(bh, a, b), expected):
        assert numpy.array_equal(mine, other)


DRIVER = """
import sys
import bh, numpy
sys.path.insert(0, {tests!r})
from test_bad_numbers import PROGRAMS, failure, place
for name, program in PROGRAMS.items():
    bh.check("nan")
    text = failure(program)
    print("found" if f"planted.py:{{place(program)}}: " in text else f"{{name}}: {{text}}")
    bh.check()
"""

RANKS = """
[stacks]
default = "simulated"
simulated = ["filter", "cluster", "fuser", "node", "ve-cpu"]
[components.cluster]
ranks = 3
small_bytes = 1024
"""


def found_on(tmp_path, **variables):
    program = DRIVER.format(tests=os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **variables}, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["found"] * len(PROGRAMS) + [""], done.stdout


def test_ranks_are_checked(tmp_path):
    (tmp_path / "ranks.toml").write_text(RANKS)
    found_on(tmp_path, BH_CONFIG=str(tmp_path / "ranks.toml"))


@pytest.mark.skipif(not bh.devices().get("opencl"), reason="there is no device of OpenCL")
def test_devices_are_checked(tmp_path):
    found_on(tmp_path, BH_STACK="opencl", BH_OPENCL_DEVICE="cpu", BH_OPENCL_PLACEMENT="device", **BUILD_QUICKLY)


def test_the_command_line_has_the_check(tmp_path):
    (tmp_path / "script.py").write_text("import numpy as np\na = np.arange(20_000.0) - 5\nb = np.log(a)\nprint(b.sum())\n")
    command = [sys.executable, "-m", "bh", "--check-nan", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), timeout=LIMIT)
    assert done.returncode and re.search(r"script.py:3: log: element 0 of the result is nan", done.stderr), done.stderr

"""Decimal digits that results keep: classic cases of numerical mathematics, told line by line."""

import json
import os
import subprocess
import sys

import numpy
import pytest

import bh
from conftest import LIMIT


def digits_of(program):
    """The digits of the worst element and of whole arrays, by lines of a program, and its names."""
    names = {"np": bh}
    bh.digits(watch=True)
    try:
        exec(compile(program, "classic.py", "exec"), names)
        rows = bh.digits()
    finally:
        bh.digits(watch=False)
    elements, arrays = {}, {}
    for row in rows:
        if row["file"].endswith("classic.py"):
            for key, least in (("element", elements), ("array", arrays)):
                least[row["line"]] = min(row[key], least.get(row["line"], 99.0))
    return elements, arrays, names


def shown(page):
    """The data of a page of the report."""
    return json.loads(page.read_text().rpartition("show(")[2].partition(");\n</script>")[0])


def test_variance_of_large_numbers():
    lines, arrays, names = digits_of(
        "a = 1e6 + np.sin(np.arange(20_000.0))\n"
        "mean = a.mean()\n"
        "naive = (a * a).mean() - mean * mean\n"
        "stable = ((a - mean) ** 2).mean()\n"
        "bh_wait = float(naive), float(stable)\n"
    )
    # E[a²] has 12 digits before the point, the variance none.
    assert 2 < lines[3] < 6 and arrays[4] > 8, (lines, arrays)
    exact = numpy.asarray(names["a"]).astype(numpy.longdouble).var()
    naive, stable = names["bh_wait"]
    # The reported digits are the correct ones.
    assert abs(naive - exact) / exact < 10 ** (1.5 - lines[3])
    assert abs(stable - exact) / exact < 10 ** (1.5 - arrays[4])


def test_one_minus_cosine():
    lines, *_ = digits_of("x = np.linspace(1e-6, 2e-6, 10_000)\ndirect = 1 - np.cos(x)\nhalf = np.sin(x * 0.5)\nstable = half * half * 2\n")
    assert lines[2] < 4.5 and lines[4] > 14, lines


def test_quadratic_formula():
    lines, *_ = digits_of(
        "b = np.linspace(1e7, 2e7, 10_000)\nroot = np.sqrt(b * b - 4)\nsmall = (b - root) / 2\nlarge = (b + root) / 2\nstable = 1 / large\n"
    )
    assert lines[3] < 2.5 and lines[4] > 14.5 and lines[5] > 14.5, lines


def test_sums_of_small_numbers_in_single_precision():
    lines, *_ = digits_of("a = np.full(200_000, 1 / 3, 'f4')\ntotal = a.sum()\nrunning = np.float32(0)\n")
    assert 5 < lines[2] <= 7.3, lines


def test_small_numbers_that_a_large_sum_swallows():
    # A loop that adds 1e8 times 1e-8 in single precision never exceeds 0.25: from there on, each term is less than half a unit of the
    # sum. The test begins there, and ends after 2,000 terms. A sum by parts loses less.
    lines, _, names = digits_of(
        "total = np.full(1_000, 0.25, 'f4')\nfor _ in range(2_000):\n    total = total + np.float32(1e-8)\nparts = np.full(2_000_000, 1e-8, 'f4').sum()\nparts.item()\n"
    )
    lost = 1 - float(names["total"][0]) / (0.25 + 2_000 * 1e-8)
    assert (numpy.asarray(names["total"]) == 0.25).all() and abs(float(names["parts"]) / 0.02 - 1) < 1e-5
    # The shadows move around exact sums, and go on growing. The other sum has more digits.
    assert abs(lines[3] + numpy.log10(lost)) < 0.3 and lines[3] + 1 < lines[4], (lines, lost)


@pytest.mark.parametrize("dtype, start, term, statement", [("f4", 0.25, 1e-8, "total -= term"), ("f8", 1.0, 1e-16, "total = term + total")])
def test_differences_and_double_precision_that_swallow_small_numbers(dtype, start, term, statement):
    lines, _, names = digits_of(
        f"total, term = np.full(1_000, {start}, '{dtype}'), np.{numpy.dtype(dtype).name}({term})\nfor _ in range(3_000):\n    {statement}\nbh_wait = total.max().item()\n"
    )
    lost = abs(float(names["total"][0]) / (start + (-3_000 if "-" in statement else 3_000) * term) - 1)
    assert abs(lines[3] + numpy.log10(lost)) < 0.3, (lines, lost)
    # The program's own sum does not move where the difference of its neighbours is twice a term or more.
    assert names["bh_wait"] == start or "-" in statement


def test_exact_and_infinite_sums_are_not_moved():
    lines, *_ = digits_of(
        "a = np.arange(10_000.0)\nexact = a + 1\nb = np.where(a > 5_000, np.inf, a)\ninfinite = b + 1\nundefined = b - b\nbig = a * 0 + 1.5e308\nbeyond = big + big\n"
    )
    assert all(digits > 15 for digits in lines.values()), lines


def test_mullers_recurrence():
    lines, _, names = digits_of(
        "x, y = np.full(2_000, 4.0), np.full(2_000, 4.25)\nfor _ in range(24):\n    x, y = y, 108 - (815 - 1500 / x) / y\n    np.abs(y).max().item()\n"
    )
    # The true limit is 5; rounding leads to 100.
    assert lines[3] < 1 and abs(float(names["y"][0]) - 100) < 1e-3, lines


def test_results_are_those_of_the_program_alone():
    rng = numpy.random.default_rng(7)
    values = rng.normal(size=(120, 150))

    def program():
        a = bh.array(values)
        for _ in range(5):
            a[1:-1] = bh.where(a[1:-1] > 0, bh.sqrt(abs(a[2:])), a[:-2] * 0.5)
            b = a @ a.T + a.sum(axis=1)
        return numpy.asarray(a), numpy.asarray(b)

    expected = program()
    bh.digits(watch=True)
    try:
        found = program()
    finally:
        bh.digits(watch=False)
    for mine, other in zip(found, expected):
        assert numpy.array_equal(mine, other)


def test_digits_and_checks_do_not_meet():
    bh.check("nan")
    try:
        with pytest.raises(ValueError, match="digits: are not counted while operations are checked"):
            bh.digits(watch=True)
    finally:
        bh.check()
    bh.digits(watch=True)
    try:
        with pytest.raises(ValueError, match="check: operations are not checked while digits are counted"):
            bh.check("nan")
    finally:
        bh.digits(watch=False)
    assert "no digits were counted" in str(bh.digits())


def test_lines_that_could_be_single_precision(tmp_path):
    def spread(a):
        shifted = a + 1e4
        mean = shifted.mean()
        scaled = a * a
        return {"variance": (shifted * shifted).mean() - mean * mean, "sum": scaled.sum()}

    values = numpy.sin(numpy.arange(30_000.0))
    table = bh.narrow(spread, bh.array(values))
    first = spread.__code__.co_firstlineno
    digits = {row["line"] - first: row["digits"] for row in table}
    chosen = {row["line"] - first for row in table if row["narrow"]}
    # The difference of 1e8 and 1e8 has no digits of single precision.
    assert digits[3] > 7 and digits[4] < 1 and digits[1] < 6, table
    assert chosen == {3} and 6 < table.together < 15, table
    assert str(table).count("\n") == len(table) + 1
    # The lines have double precision again.
    assert numpy.array_equal(numpy.asarray(bh.array(values) * 0.3), values * 0.3)
    script = "import numpy as np\nx = np.linspace(1, 2, 10_000)\ny = 1 / x\nz = (y + 1e9) - 1e9\nprint(y.shape)\n"
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "-m", "bh", "--float32", "y,z", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), timeout=LIMIT)
    assert done.returncode == 0 and done.stdout == "(10000,)\n", done.stderr
    lines = {line.split("script.py:")[1][0]: line for line in done.stderr.splitlines() if "script.py:" in line}
    assert " yes " in lines["3"] and " no " in lines["4"] and done.stderr.rstrip().endswith("are float32"), done.stderr
    command[4] = "nothing"
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), timeout=LIMIT)
    assert done.returncode and "the script has no variable 'nothing' at its end" in done.stderr, done.stderr


def test_the_report_has_the_lines_and_the_first_bad_number(tmp_path):
    (tmp_path / "script.py").write_text("import numpy as np\nx = np.linspace(1e-6, 2e-6, 10_000)\nd = 1 - np.cos(x)\nd.sum().item()\n")
    command = [sys.executable, "-m", "bh", "--digits", "--report", "page.html", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    data = shown(tmp_path / "page.html")
    (file,) = data["digits"]
    digits = {line["line"]: line["digits"] for line in file["lines"] if line["digits"] is not None}
    assert digits[3] < 4.5 and file["lines"][2]["text"] == "d = 1 - np.cos(x)", file
    (tmp_path / "script.py").write_text("import numpy as np\nx = np.ones((3, 80, 200))\nx[1, 40, 150:] = -1\ny = np.sqrt(x)\nprint(y.sum())\n")
    command.remove("--digits")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "BH_CHECK": "nan"}, timeout=LIMIT)
    assert done.returncode == 1, done.stderr
    bad = shown(tmp_path / "page.html")["bad"]
    assert bad["what"].startswith("script.py:4: sqrt: element (1, 40, 150) of the result is nan"), bad
    assert (bad["shape"], bad["plane"], bad["high"], bad["wide"], bad["count"]) == ([3, 80, 200], [1], 48, 48, 50)
    marked = [at for at, count in enumerate(bad["bad"]) if count]
    assert {at // 48 for at in marked} == {24} and {at % 48 for at in marked} == set(range(36, 48)) and sum(bad["bad"]) == 50
    assert bad["means"][0] == 1.0 and bad["means"][marked[-1]] in (None, 1.0)


def test_the_command_line_prints_the_table(tmp_path):
    (tmp_path / "script.py").write_text("import numpy as np\nx = np.linspace(1e-6, 2e-6, 10_000)\nd = 1 - np.cos(x)\nprint(d.shape)\n")
    command = [sys.executable, "-m", "bh", "--digits", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), timeout=LIMIT)
    assert done.returncode == 0 and done.stdout == "(10000,)\n", done.stderr
    first = done.stderr.splitlines()[1]
    assert first.endswith("script.py:3: subtract  d = 1 - np.cos(x)"), done.stderr

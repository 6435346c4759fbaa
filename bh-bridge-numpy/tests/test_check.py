"""`python -m bh --check`: values that differ between two runs of a script are reported with their lines."""

import os
import subprocess
import sys

import numpy

from bh._tools import check as _check
from conftest import LIMIT

# A script that gets another number where it runs as configured: what an error of bh looks like from outside.
PLANTED = """import numpy as np
a = np.arange(1000.0)
b = a * 0.5 + 1
b[17] += "stack plain" not in np.info()
print(float(b[3]))
{read}
"""


def check(tmp_path, text, *arguments):
    script = tmp_path / "main.py"
    script.write_text(text)
    command = [sys.executable, "-m", "bh", "--check", str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    return done, done.stderr.replace(str(tmp_path) + os.sep, "")


def test_the_first_value_that_differs_is_told_with_its_line(tmp_path):
    done, errors = check(tmp_path, PLANTED.format(read="c = float(b.sum())\nd = float(b[17])"))
    assert done.returncode == 1 and done.stdout == "2.5\n"
    assert "bh check: main.py:6: `c = float(b.sum())`: 1 of 1 elements differ" in errors


def test_arrays_that_are_never_read_are_compared_at_the_end(tmp_path):
    done, errors = check(tmp_path, PLANTED.format(read="c = b * 2"))
    assert done.returncode == 1
    assert "bh check: array 'b' at the end: 1 of 1000 elements differ; the first at [17] is 10.5, not 9.5" in errors


def test_another_course_is_told_where_it_begins(tmp_path):
    done, errors = check(tmp_path, PLANTED.format(read="if 'stack plain' in np.info():\n    print(b[0])\nprint(b[1])"))
    assert done.returncode == 1
    assert "bh check: main.py:8: `print(b[1])`: the script reads something else here" in errors and "main.py:7: `print(b[0])`" in errors


def test_a_right_script_is_said_to_be_right(tmp_path):
    text = "import numpy as np, sys\nx = np.linspace(0, 1, 50_000)\nprint(float(np.exp(x).sum()), sys.argv[1:], np.sqrt(x)[:2])\n"
    done, errors = check(tmp_path, text, "--depth", "3")
    assert done.returncode == 0 and "['--depth', '3']" in done.stdout
    assert "bh check: 3 values read, all as operation by operation" in errors


def test_a_script_that_fails_only_as_configured_is_told(tmp_path):
    done, errors = check(tmp_path, "import bh, sys\nsys.exit(0 if 'stack plain' in bh.info() else 3)\n")
    assert done.returncode == 1 and "the script ends with 3 as configured, and with 0 operation by operation" in errors


def test_rounding_is_measured_by_the_largest_number():
    value = numpy.array([1e-3, 1e3])
    assert _check._differences(value + numpy.array([1e-7, 0]), value) is None
    assert "1 of 2 elements differ" in _check._differences(value + numpy.array([1e-4, 0]), value)
    assert "float32" in _check._differences(value, value.astype("float32"))
    assert "differ" in _check._differences(numpy.array([1, 2]), numpy.array([1, 3]))
    assert _check._differences(numpy.array([numpy.nan, numpy.inf]), numpy.array([numpy.nan, numpy.inf])) is None

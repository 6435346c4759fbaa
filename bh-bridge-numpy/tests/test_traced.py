"""Traced functions, loops over indices, streams, the table of coverage, documentation."""

import doctest
import importlib
import math
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import bh
from conftest import LIMIT, same

ROOT = Path(__file__).resolve().parents[2]


def test_traced_functions():
    @bh.vectorize
    def price(x, limit=3.0):
        return bh.where(x > limit, limit, abs(x) ** 2 + math.sin(x)) * 2 - numpy.exp(-x)

    x = numpy.linspace(-2, 5, 9)
    expected = numpy.where(x > 3, 3.0, numpy.abs(x) ** 2 + numpy.sin(x)) * 2 - numpy.exp(-x)
    same(price(bh.asarray(x)), expected)
    same(price(bh.asarray(x)[:, None], bh.asarray([3.0, 3.0])), numpy.stack([expected, expected], 1))


def test_loops_become_views():
    a = numpy.arange(30.0).reshape(5, 6)
    x = bh.asarray(a)
    mine = bh.parallel(lambda i, j: x[i, j] + x[i + 2, 2 * j + 1] * x[4 - i, 5 - j] + i - 2 * j, (3, 3))
    expected = numpy.array([[a[i, j] + a[i + 2, 2 * j + 1] * a[4 - i, 5 - j] + i - 2 * j for j in range(3)] for i in range(3)])
    same(mine, expected)
    with pytest.raises(IndexError, match="from 3 to 5 in an axis of size 5"):
        bh.parallel(lambda i: x[i + 3, 0], 3)


def test_streams(tmp_path):
    a = numpy.arange(10.0).reshape(5, 2)
    numpy.save(tmp_path / "a.npy", a)
    for source in (a, tmp_path / "a.npy", (a[i : i + 2] for i in range(0, 5, 2))):
        assert [float(part) for part in bh.stream(bh.sum, source, rows=2)] == [6.0, 22.0, 17.0]

    def broken():
        yield a
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(bh.stream(bh.sum, broken()))


def test_table_of_coverage():
    text = (ROOT / "docs" / "python-coverage.md").read_text()
    # In a process of its own: other libraries change what NumPy's module holds.
    made = subprocess.run([sys.executable, "-m", "bh._tools.coverage"], capture_output=True, text=True, check=True, timeout=LIMIT).stdout
    if f"NumPy {numpy.__version__};" not in text:
        pytest.skip("the table is of another version of NumPy")
    assert text == made, "run: python -m bh._tools.coverage > docs/python-coverage.md"
    for line in made.splitlines():
        assert "| missing |" not in line, line


def modules():
    """The modules of the package whose documentation has examples."""
    folder = Path(bh.__file__).parent
    found = [file.relative_to(folder).with_suffix("") for file in sorted(folder.rglob("*.py")) if ">>> " in file.read_text()]
    return [".".join(part for part in file.parts if part != "__init__") for file in found]


@pytest.mark.parametrize("name", modules())
def test_examples_in_documentation(name):
    module = importlib.import_module(f"bh.{name}") if name else bh
    failed, _ = doctest.testmod(module, extraglobs={"bh": bh})
    assert not failed


@pytest.mark.parametrize("page", ["python.md", "scalars.md"])
def test_examples_of_the_guide(page):
    failed, tried = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert tried and not failed

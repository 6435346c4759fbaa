"""Calls that go to the recorder without Python in between: the same as NumPy's, whatever their form."""

import subprocess
import sys

import numpy as np
import pytest

import bh
from bh import FallbackError

TYPES = "bool int8 int64 uint8 uint64 float32 float64 complex64 complex128".split()


def same(mine, reference):
    mine = np.asarray(mine)
    assert mine.dtype == np.asarray(reference).dtype and mine.shape == np.shape(reference)
    np.testing.assert_allclose(mine, reference, rtol=1e-6)


def outcome(work):
    """What a call gives, or the class of its exception."""
    try:
        return work()
    except Exception as error:
        return type(error)


def agree(work):
    mine, reference = outcome(lambda: work(bh)), outcome(lambda: work(np))
    if mine is FallbackError:
        return
    if isinstance(reference, type):
        assert mine is reference
    else:
        same(mine, reference)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", "add multiply maximum minimum logical_and logical_or bitwise_or".split())
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 0, 3)])
def test_reductions_of_all_forms(name, dtype, shape):
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3).astype(dtype)
    for axis in (None, 0, -1, 1, (0, 1), (0, 0), ()):
        for keywords in ({}, {"keepdims": True}):
            # The second call finds what the first has put into the table.
            for _ in range(2):
                agree(lambda module: getattr(module, name).reduce(module.array(values), axis=axis, **keywords))
    agree(lambda module: getattr(module, name).reduce(module.array(values)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", "negative positive square reciprocal fabs ceil trunc conjugate absolute".split())
def test_functions_of_one_operand(name, dtype):
    for values in (np.array([0.0, -0.0, 1.5, -2.5, np.nan, np.inf]), np.array([[1, 2], [3, 4]]), np.array(3)):
        with np.errstate(all="ignore"):
            values = values.astype(dtype)
            for _ in range(2):
                agree(lambda module: getattr(module, name)(module.array(values)))
            if name == "negative" and np.dtype(dtype).kind == "f":
                assert (np.signbit(np.asarray(-bh.array(values))) == np.signbit(-values))[~np.isnan(values)].all()


def test_scalars_of_numpy_before_any_type_was_asked_for():
    program = "import numpy, bh; a = bh.zeros(3); b = a * numpy.float64(2); print(b.dtype, (numpy.float64(2) + a).dtype, (a > numpy.int8(1)).dtype)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["float64", "float64", "bool"]


def test_lines_of_long_programs_are_told_apart(tmp_path):
    count, file = 3000, str(tmp_path / "long.py")
    found = {}
    exec(compile("def run(site):\n    return [\n" + "        site(),\n" * count + "    ]\n", file, "exec"), found)
    for _ in range(2):
        assert found["run"](bh._native.call_site) == [(file, line) for line in range(3, count + 3)]

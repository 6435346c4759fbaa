"""Gradients on ranks and on a device: those of the processor within rounding, with and without a bound of memory."""

import os

import numpy
import pytest
from conftest import BUILD_QUICKLY
from test_bounded_derivatives import FIELD, GRID, field, in_place, known, least, new_arrays, two_loops
from test_opencl import SETTINGS
from test_ranks import THERE, launched, run

import bh

PROGRAMS = [in_place, new_arrays, two_loops, known]
# States in memory and on disk beside the least bound; without a bound, a way back keeps all values.
BOUNDS = [None, (2, None), (1, 30)]



def text(programs):
    """A program that saves the gradients of these programs, the first ones."""
    return f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import numpy
import test_derivatives_elsewhere as tests
numpy.savez("found.npz", *[numpy.asarray(part) for part in tests.gradients({programs})])
print(dict(tests.bh._native.Stack().counters()))
"""


def gradients(programs):
    """Values and gradients of the first programs within each bound, one after the other."""
    found = []
    for program in PROGRAMS[:programs]:
        smallest = least(program)
        for bound in BOUNDS:
            within = {} if bound is None else {"memory": smallest + bound[0] * FIELD, "disk": bound[1] and bound[1] * FIELD}
            value, slopes = bh.value_and_grad(program, (0, 1), **within)(field(), field(1))
            found += [value, *slopes]
    return found


def compare(tmp_path, done, programs):
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    with numpy.load(tmp_path / "found.npz") as file:
        found = [file[name] for name in file.files]
    expected = gradients(programs)
    assert len(found) == len(expected) and any(part.shape == GRID for part in found)
    for mine, reference in zip(found, expected):
        numpy.testing.assert_allclose(mine, numpy.asarray(reference), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", THERE)
def test_gradients_on_four_ranks(tmp_path, name):
    compare(tmp_path, launched(name, tmp_path, text(len(PROGRAMS)), ranks=4, BH_CLUSTER_SMALL_BYTES="16"), len(PROGRAMS))


def test_gradients_on_a_device(tmp_path):
    settings = {f"BH_OPENCL_{key}": value for key, value in SETTINGS.items()} | {"BH_OPENCL_DEVICE": os.environ.get("BH_TEST_DEVICE", "cpu")}
    caches = {"XDG_CACHE_HOME": str(tmp_path / "caches")}
    done = run([], tmp_path, text(2), BH_STACK="opencl", **settings, **caches, **BUILD_QUICKLY)
    if "opencl.kernels built" not in done.stdout:
        pytest.skip("there is no OpenCL")
    compare(tmp_path, done, 2)

"""Operations that a program brings in a library of its own: `bh.extension_method`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from conftest import LIMIT

import bh

KIT = Path(__file__).resolve().parents[2] / "docs/engine-kit"
HEADERS = Path(__file__).resolve().parents[2] / "bh-bridge-c/include"

# A weighted sum of two arrays, and its least and greatest element.
SOURCE = r"""
#include "bh_component.h"
#include <stdio.h>

static double at(const bh_method_array *array, int64_t i) {
    return ((const double *)array->data)[i * array->stride[0]];
}

bh_status weighted(const bh_method_array *outs, size_t out_count, const bh_method_array *ins, size_t in_count, bh_error_record *error) {
    if (out_count != 2 || in_count != 3 || ins[0].rank != 1 || ins[0].dtype != BH_TYPE_F64 || outs[0].dtype != BH_TYPE_F64) {
        snprintf((char *)error->text, sizeof error->text, "weighted takes two lines of f64 and a number");
        return error->status = BH_STATUS_ARGUMENT;
    }
    double *sum = outs[0].data, *ends = outs[1].data;
    for (int64_t i = 0; i < ins[0].shape[0]; i++) {
        double value = at(&ins[0], i) + ((const double *)ins[2].data)[0] * at(&ins[1], i);
        sum[i * outs[0].stride[0]] = value;
        if (i == 0 || value < ends[0]) ends[0] = value;
        if (i == 0 || value > ends[outs[1].stride[0]]) ends[outs[1].stride[0]] = value;
    }
    return BH_OK;
}
"""

TWICE = """
__kernel void twice(__global float *out, __global const float *in, __global const long *views) {
    const long at = get_global_id(0);
    if (at < views[0]) out[views[1] + at * views[19]] = 2 * in[views[36] + at * views[54]];
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the libraries; its name has a space."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no compiler")
    folder = tmp_path_factory.mktemp("of the program")
    (folder / "weighted.c").write_text(SOURCE)
    (folder / "twice.cl").write_text(TWICE)
    for source, library in ((folder / "weighted.c", "weighted.so"), (KIT / "method-c/method.c", "method.so")):
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", f"-I{HEADERS}", str(source), "-o", str(folder / library)], check=True)
    return folder


@pytest.fixture(scope="module")
def running(folder):
    """The method of the engine kit."""
    return bh.extension_method("running_maximum", folder / "method.so")


@pytest.mark.parametrize("part", [slice(None), slice(None, None, -3), slice(5, 5)], ids=str)
@pytest.mark.parametrize("length", [1, 7, 70_000])
def test_a_method_runs_among_operations(running, length, part):
    numbers = numpy.random.default_rng(length).normal(size=length)
    x = bh.asarray(numbers)[part] * 2
    result = running(x) + 1
    assert type(result) is bh.ndarray
    numpy.testing.assert_array_equal(numpy.asarray(result), numpy.maximum.accumulate(numbers[part] * 2) + 1)


def test_outputs_may_be_parts_and_several(folder):
    weighted = bh.extension_method("weighted", str(folder / "weighted.so"))
    a, b, sums, ends = bh.arange(6.0), bh.ones(6), bh.zeros((6, 2)), bh.zeros(2)
    outs = (sums[:, 1], ends)
    assert weighted(a, b, 3, out=outs) is outs
    assert sums.tolist() == [[0, i + 3] for i in range(6)] and ends.tolist() == [3, 8]
    # An array of NumPy is an input as well.
    weighted(numpy.arange(6.0), b, -1.0, out=outs)
    assert ends.tolist() == [-1, 4]


def test_a_method_is_registered_on_each_stack(running):
    with bh.using("cpu-plain"):
        other = bh.asarray([3.0, 1.0, 4.0])
    result = running(other)
    assert result._stack == "cpu-plain" and result.tolist() == [3, 3, 4]
    # Operands come to the stack of the output.
    result = bh.zeros(3)
    assert running(other, out=result) is result
    assert result.tolist() == [3, 3, 4]
    with bh.using("cpu-plain"):
        elsewhere = bh.zeros(3)
    with pytest.raises(ValueError, match="one stack"):
        running(other, out=(result, elsewhere))


def test_errors_name_the_method_and_its_files(running, folder, tmp_path):
    with pytest.raises(ValueError, match="one-dimensional f64 arrays"):
        numpy.asarray(running(bh.ones((2, 2))))
    with pytest.raises(bh.Error, match="nowhere.so"):
        bh.extension_method("mine", tmp_path / "nowhere.so")
    with pytest.raises(bh.Error, match="mine"):
        bh.extension_method("mine", folder / "method.so")
    with pytest.raises(bh.Error, match="'nobody'"):
        bh.extension_method("running_maximum", folder / "method.so", "nobody")
    with pytest.raises(ValueError, match="must be a word"):
        bh.extension_method("running maximum", folder / "method.so")
    with pytest.raises(TypeError, match="not list"):
        running(bh.ones(2), out=[0.0, 0.0])
    with pytest.raises(TypeError, match="needs an array"):
        running(1.0)
    with pytest.raises(ValueError, match="one output or more"):
        running(bh.ones(2), out=())


@pytest.mark.parametrize("part", [slice(None), slice(None, None, -1)], ids=str)
def test_an_output_may_share_memory_with_an_input(running, part):
    numbers = numpy.random.default_rng(3).normal(size=5000)
    a = bh.asarray(numbers)
    running(a, out=a[part])
    numpy.testing.assert_array_equal(numpy.asarray(a)[part], numpy.maximum.accumulate(numbers))


def test_outputs_share_no_memory(folder):
    weighted = bh.extension_method("weighted", folder / "weighted.so")
    a = bh.ones(4)
    with pytest.raises(ValueError, match="two outputs overlap"):
        weighted(bh.ones(4), bh.ones(4), 1.0, out=(a, a[:2]))


def test_a_failing_call_loses_its_output_only(running):
    a, wrong = bh.ones(3), bh.zeros((2, 2))
    running(a, out=wrong)
    with pytest.raises(ValueError, match="one-dimensional"):
        wrong.tolist()
    assert (a + 1).tolist() == [2, 2, 2]


ON_A_DEVICE = """
import sys, bh
if not bh.devices().get("opencl"):
    sys.exit("no device")
twice = bh.extension_method("twice", sys.argv[1], "opencl")
numbers = bh.arange(100_000, dtype="float32")
assert (twice(numbers[::2]) == 2 * numbers[::2]).all()
"""


def test_kernels_of_files_run_on_devices(folder):
    settings = {"BH_STACK": "opencl", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_PLACEMENT": "device"}
    command = [sys.executable, "-c", ON_A_DEVICE, str(folder / "twice.cl")]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=LIMIT)
    if "no device" in done.stderr:
        pytest.skip("there is no device")
    assert done.returncode == 0, done.stderr

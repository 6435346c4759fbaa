"""The runtime's queries and settings: stacks, devices, the limit of memory, eager mode, versions."""

import os
import subprocess
import sys

import numpy
import pytest

import bh
from bh._array import memory
from conftest import LIMIT


def test_stacks_are_those_that_can_be_used():
    names = bh.stacks()
    assert {"cpu", "cpu-plain", "cluster", "gpu", "opencl"} <= set(names) and names == sorted(names)
    with bh.using("cpu-plain") as stack:
        assert stack.name in names
    with pytest.raises(bh.Error, match="unknown stack 'a name of nothing'; stacks: .*cpu-plain"):
        bh.using("a name of nothing")


def test_devices_are_texts_by_driver():
    found = bh.devices()
    assert set(found) <= {"cuda", "opencl"}
    assert all(texts and all(isinstance(text, str) and "units" in text for text in texts) for texts in found.values())


def test_the_limit_of_memory_is_the_environments():
    command = [sys.executable, "-c", "import bh; print(bh.memory_limit())"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"BH_MEMORY_LIMIT": "2GiB"}, timeout=LIMIT)
    assert done.stdout == f"{2 << 30}\n", done.stderr


def test_eager_operations_run_before_they_return():
    bh.wait(x := bh.ones(100_000))
    batches = lambda: bh.profile()["batches"]
    ran = {}
    for on in (True, False):
        bh.eager(on)
        try:
            before = batches()
            kept = [x + 1, x + 2, x + 3]
            ran[on] = batches() - before
        finally:
            bh.eager(False)
    assert len(kept) == 3 and ran == {True: 3, False: 1}


@pytest.mark.filterwarnings("ignore:Install `pyyaml`")
def test_the_configuration_has_bhs(capsys):
    bh.show_config()
    shown = capsys.readouterr().out
    assert shown.startswith(bh.info()) and "SIMD Extensions" in shown
    assert bh.show_config("dicts") == {"bh": bh.info(), **numpy.show_config("dicts")}


def test_errors_have_the_name_by_which_programs_catch_them():
    assert f"{bh.Error.__module__}.{bh.Error.__qualname__}" == "bh.Error"


def test_what_bh_asks_of_a_stack_runs_nothing_that_is_recorded():
    failing = bh.arange(100_000.0)[bh.arange(100_000) * 2]
    memory.stack_in_process.cache_clear()
    memory.ranks_of.cache_clear()
    # The first question about a stack is asked here, and the failure is none of its results.
    assert float(bh.linalg.inv(bh.eye(3) * 2).sum()) == 1.5 and bh.ranks() == 1
    with pytest.raises(IndexError, match="index 100000 is out of bounds for axis 0 with size 100000"):
        failing.sum().item()

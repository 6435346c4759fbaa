"""On a device of OpenCL: what the loops of programs build there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD_QUICKLY

BENCHES = Path(__file__).resolve().parents[2] / "benches"
PROGRAM = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/common"]
from rivals import program_of
from bh import _native
import numpy as np

stack = _native.Stack()
built = lambda: stack.message("finish building") or dict(stack.counters())["opencl.kernels built"]
setup, run = program_of(sys.argv[2])
state = setup(int(sys.argv[3]), np.float64)
np.flush()
before = built()
result = run(state, int(sys.argv[4]))
np.flush()
print(json.dumps([built() - before, result()]))
"""
SETTINGS = {"DEVICE": "cpu", "PLACEMENT": "device", "WHILE_BUILDING": "off", "TUNE": "off"}


def kernels(tmp_path, name, n, steps, **settings):
    """How many kernels a program of the benchmarks builds in a number of steps, and its checksums."""
    if not (BENCHES / "rivals.py").exists():
        pytest.skip("the benchmarks are not here")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    caches = {"XDG_CACHE_HOME": str(tmp_path / f"{steps}{settings}")}
    env = {**os.environ, **caches, "BH_STACK": "opencl", **{f"BH_OPENCL_{key}": value for key, value in SETTINGS.items()}, **settings}
    words = [sys.executable, "-m", "bh", str(file), str(BENCHES), name, str(n), str(steps)]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    if "opencl.kernels built" in done.stderr:
        pytest.skip("there is no OpenCL")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_turns_of_a_loop_share_kernels_whatever_batches_they_are_in(tmp_path):
    found = [kernels(tmp_path, "shallow_water", 300, steps) for steps in (12, 31)]
    assert max(built for built, _ in found) <= 12, found


def test_what_only_has_a_name_changes_no_result(tmp_path):
    plain, lazy = (kernels(tmp_path, "heat_equation", 60, 30, BH_RECORDER_RECIPES=mode)[1] for mode in ("off", "always"))
    assert lazy == pytest.approx(plain, rel=1e-12)


def methods(count, *kinds, **settings):
    """The output of random calls of methods, of all kinds or of these, on the device alone."""
    env = {**os.environ, "BH_STACK": "opencl-only", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_CACHE_DIR": "", **BUILD_QUICKLY, **settings}
    script = Path(__file__).with_name("random_methods.py")
    done = subprocess.run([sys.executable, str(script), "0", str(count), *kinds], capture_output=True, text=True, env=env)
    if "OpenCL" in done.stderr and done.returncode:
        pytest.skip("there is no OpenCL")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("group", ["16", "256"])
def test_methods_on_the_device_give_what_numpy_gives(group):
    found = methods(30, BH_OPENCL_GROUP=group)
    assert "30 calls, 0 differ" in found, found


@pytest.mark.parametrize("placements", ["auto", "none"])
def test_elements_of_sorted_lines_are_those_that_numpy_finds(placements):
    found = methods(6, "selected", BH_OPENCL_PLACEMENTS=placements)
    kernels = int(found.split("opencl.kernels ")[1].split()[0])
    # Two kernels for each digit, or one for each doubling of the sorted stretches.
    assert "6 calls, 0 differ" in found and (kernels > 80) == (placements == "auto"), found


def test_transforms_of_real_numbers_on_the_device_give_what_numpy_gives():
    found = methods(20, "real_fft")
    assert "20 calls, 0 differ" in found, found


def test_methods_are_the_next_engines_if_the_device_is_not_to_run_them():
    found = methods(20, BH_STACK="opencl", BH_OPENCL_METHODS="false", BH_OPENCL_PLACEMENT="device")
    assert "20 calls, 0 differ" in found and "blocks unsupported" in found, found


READS = """
import json
import numpy as np
import bh
from bh import _native

rng = np.random.default_rng(3)
square = rng.random((300, 300)) + 300 * np.eye(300)
keys, square, side = (bh.asarray(array) for array in (rng.integers(0, 40, 5000), square @ square.T, rng.random(300)))
calls = {
    "bincount": lambda: bh.bincount(keys),
    "solve": lambda: bh.linalg.solve(square, side),
    "cholesky": lambda: bh.linalg.cholesky(square),
    "inv": lambda: bh.linalg.inv(square),
}
count = lambda: dict(_native.Stack().counters())["opencl.batches"]
found = {}
for name, call in calls.items():
    bh.flush()
    before = count()
    result = call()
    found[name] = count() - before
print(json.dumps(found))
"""


def test_functions_that_have_to_know_a_value_read_once(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(READS)
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "BH_STACK": "opencl", **{f"BH_OPENCL_{key}": value for key, value in SETTINGS.items()}}
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env=env)
    if "opencl.batches" in done.stderr:
        pytest.skip("there is no OpenCL")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"bincount": 1, "solve": 1, "cholesky": 1, "inv": 1}


def test_batches_that_repeat_have_the_same_bits_prepared_or_not(tmp_path):
    def found(placements):
        env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "BH_STACK": "opencl", **{f"BH_OPENCL_{key}": value for key, value in SETTINGS.items()}}
        script = Path(__file__).with_name("repeated_batches.py")
        # PoCL takes long to optimise, and keeps kernels itself.
        quick = {"BH_OPENCL_CACHE_DIR": "", "POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable", "POCL_CACHE_DIR": str(tmp_path)}
        env |= {**quick, "BH_OPENCL_PLACEMENTS": placements}
        done = subprocess.run([sys.executable, str(script), "opencl"], capture_output=True, text=True, env=env)
        if "OpenCL" in done.stderr and done.returncode:
            pytest.skip("there is no OpenCL")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    plain, prepared = (found(f"private,local,padding,unroll,filled{more}") for more in ("", ",prepared"))
    assert plain[0] == prepared[0]
    assert plain[1] == 0 and prepared[1] > 100, prepared[1:]

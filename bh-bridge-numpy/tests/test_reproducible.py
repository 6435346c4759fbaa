"""The key `reproducible`: the same bits on processors, instruction sets, threads, a device, ranks and siblings, and errors for functions that lack them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIMIT
from test_ranks import LAUNCHERS, LIBRARIES, SIBLINGS, SIMULATED, THERE

PROGRAMS = Path(__file__).resolve().parents[2] / "benches" / "reproducible" / "programs.py"
WIDE = SIMULATED.replace("ranks = 4", "ranks = 16\nsmall_bytes = 64")

SETTINGS = {
    "one thread": {"BH_VE_CPU_THREADS": "1"},
    "five threads": {"BH_VE_CPU_THREADS": "5", "BH_RECORDER_IMMEDIATE_BYTES": "0"},
    "compiled": {"BH_VE_CPU_JIT": "on"},
    "in blocks": {"BH_VE_CPU_JIT": "off"},
    "the plainest instruction set": {"BH_VE_CPU_ISA": "portable"},
    "without fusion": {"BH_FUSER_ALGORITHM": "singleton"},
    "a device": {"BH_STACK": "opencl", "BH_OPENCL_DEVICE": "cpu", "BH_OPENCL_PLACEMENT": "device"},
    "four ranks": SIMULATED,
    "sixteen ranks": WIDE,
    "siblings": SIBLINGS,
}


@pytest.fixture(scope="module")
def hashes(tmp_path_factory):
    """The hashes of the programs in a setting, as text."""
    folder = tmp_path_factory.mktemp("reproducible")

    def of(setting, *before):
        if isinstance(setting, str):
            (folder / "stacks.toml").write_text(setting)
            setting = {"BH_CONFIG": str(folder / "stacks.toml")}
        environment = {**os.environ, "BH_VE_CPU_THREADS": "2", **setting}
        done = subprocess.run([*before, sys.executable, str(PROGRAMS)], capture_output=True, text=True, env=environment, timeout=LIMIT)
        if done.returncode and "OpenCL" in done.stderr:
            pytest.skip("there is no OpenCL device")
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    if not PROGRAMS.exists():
        pytest.skip("the benchmarks are not here")
    return of


@pytest.fixture(scope="module")
def wanted(hashes):
    return hashes({})


def test_processors_give_the_bits_of_the_table(wanted):
    table = PROGRAMS.with_suffix(".txt").read_text().splitlines()
    assert len(wanted) > 100 and len({line.split(" ", 1)[1] for line in wanted}) == len(wanted)
    assert [mine for mine, other in zip(wanted, table, strict=True) if mine != other] == []


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_give_the_same_bits(hashes, wanted, setting):
    found = hashes(SETTINGS[setting])
    assert [mine for mine, other in zip(found, wanted, strict=True) if mine != other] == []


@pytest.mark.parametrize("setting", ["compiled", "in blocks", "the plainest instruction set", "a device"])
def test_functions_give_the_bits_of_the_table(setting):
    program = PROGRAMS.parent / "functions.py"
    if not program.exists():
        pytest.skip("the benchmarks are not here")

    environment = {**os.environ, "BH_RECORDER_REPRODUCIBLE": "true", **SETTINGS[setting]}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment, timeout=LIMIT)
    if done.returncode and "OpenCL" in done.stderr:
        pytest.skip("there is no OpenCL device")
    assert done.returncode == 0 and "panicked" not in done.stderr, done.stderr
    *found, kernels = done.stdout.splitlines()
    wanted = program.with_suffix(".txt").read_text().splitlines()
    assert len(wanted) == 50 and [mine for mine, other in zip(found, wanted, strict=True) if mine != other] == []
    assert setting != "a device" or int(kernels.split()[-1]) >= 50


PLACES = """
import bh as np
x = np.arange(60_000.0) / 7
z, at, total = x / 1e4 + 1j * (x - 3) / 1e4, np.arange(60_000) % 1001, np.zeros(1001)
np.wait(x, z, at, total)

def kernels():
    return dict(np._native.Stack().counters()).get("opencl.kernels", 0)

calls = {
    "function": lambda: np.exp(-x),
    "sum": lambda: x.sum(),
    "complex product": lambda: z * z,
    "complex quotient": lambda: z / z,
    "complex function": lambda: np.exp(z),
    "running sum": lambda: x.cumsum(),
    "sums at indices": lambda: np.add.at(total, at, x) or total,
}
for name, call in calls.items():
    before = kernels()
    np.wait(call())
    print(name if kernels() > before else name + " falls")
"""


@pytest.mark.parametrize("reproducible", [True, False])
def test_operations_without_one_form_on_devices_fall_to_the_processor(reproducible, tmp_path):
    (tmp_path / "places.py").write_text(PLACES)
    environment = {**os.environ, "BH_RECORDER_REPRODUCIBLE": str(reproducible).lower(), **SETTINGS["a device"]}
    done = subprocess.run([sys.executable, str(tmp_path / "places.py")], capture_output=True, text=True, env=environment, timeout=LIMIT)
    if done.returncode and "OpenCL" in done.stderr:
        pytest.skip("there is no OpenCL device")
    assert done.returncode == 0, done.stderr
    falls = [line.removesuffix(" falls") for line in done.stdout.splitlines() if line.endswith(" falls")]
    assert falls == (["complex function", "running sum", "sums at indices"] if reproducible else []), done.stdout


@pytest.mark.parametrize("launcher", THERE)
def test_launched_ranks_give_the_same_bits(hashes, wanted, launcher):
    variables = {"BH_STACK": "cluster", "BH_LIBRARY_PATH": LIBRARIES, "BH_CLUSTER_SMALL_BYTES": "64"}
    variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert hashes(variables, *LAUNCHERS[launcher], "-n", "2") == wanted


MOVED = """
import json, bh as np
x = np.arange(1_000_000.0).reshape(10_000, 100) / 7
np.wait(x)
def sent():
    return sum(rank["bytes"] for rank in json.loads(np._native.Stack().message("cluster traffic")))
before = sent()
total, columns, largest = float(x.sum()), x.sum(axis=0).tolist(), float((x * x).max())
print(sent() - before)
"""


def test_ranks_send_results_of_chunks(tmp_path):
    (tmp_path / "stacks.toml").write_text(SIMULATED + "[recorder]\nreproducible = true\n")
    (tmp_path / "moved.py").write_text(MOVED)
    environment = {**os.environ, "BH_CONFIG": str(tmp_path / "stacks.toml")}
    done = subprocess.run([sys.executable, str(tmp_path / "moved.py")], capture_output=True, text=True, env=environment, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    # Three folds read 8 MB of elements each.
    assert 0 < int(done.stdout) < 1_000_000, done.stdout


REFUSED = """
import bh as np
a = np.eye(30) + np.ones((30, 30))
for name, call in {"solve": lambda: np.linalg.solve(a, a), "fft": lambda: np.fft.fft(a), "svd": lambda: np.linalg.svd(a)}.items():
    try:
        np.asarray(call()[0]).tolist()
    except Exception as error:
        print(name, type(error).__name__, error)
    else:
        print(name, "is computed")
"""


def test_methods_with_bits_of_their_own_are_errors(tmp_path):
    (tmp_path / "refused.py").write_text(REFUSED)
    environment = {**os.environ, "BH_RECORDER_REPRODUCIBLE": "true"}
    done = subprocess.run([sys.executable, str(tmp_path / "refused.py")], capture_output=True, text=True, env=environment, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and all("the key 'reproducible'" in line for line in lines), done.stdout

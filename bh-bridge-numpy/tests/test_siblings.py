"""The papers' programs at small sizes on several engines of one machine: results equal those of one engine."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import LIMIT

LIBRARIES = os.environ.get("BH_TEST_LIBRARIES", "")
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"], "mpich": ["mpirun.mpich"]}
THERE = [
    name for name, line in LAUNCHERS.items() if shutil.which(line[0]) and (Path(LIBRARIES) / f"libbh_cluster_{name}.so").is_file()
]
BENCHES = Path(__file__).resolve().parents[2] / "benches"
CATALOG = tomllib.loads((BENCHES / "catalog.toml").read_text())["program"]

# Runs all programs in one process, each as if it were called alone, and then prints what the engines did.
ALL = """
import json, runpy, sys
folder, *lines = sys.argv[1:]
for line in lines:
    name, *rest = line.split()
    sys.argv = [name, *rest]
    runpy.run_path(f"{folder}/{name}/numpy_version.py", run_name="__main__")
import bh
print(json.dumps(bh.profile()))
"""

# Heat on 60 rows of 500 numbers: what a step sends, in bytes and messages, when the arrays lie where they are to be.
HEAT = """
import json, bh as np
grid = np.zeros((60, 500))
grid[0] = 100.0
def sent():
    ranks = json.loads(np._native.Stack().message("cluster traffic"))
    return sum(rank["bytes"] for rank in ranks), sum(rank["messages"] for rank in ranks)
for _ in range(6):
    before = sent()
    new = (grid[1:-1, 1:-1] + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) * 0.2
    change = np.sum(np.abs(new - grid[1:-1, 1:-1]))
    grid[1:-1, 1:-1] = new
    value = float(change)
print(json.dumps([after - one for after, one in zip(sent(), before)]))
"""

CPU = '["fuser", "node", "ve-cpu"]'
GPU = '["fuser", "node", "opencl*", "ve-cpu"]'
STACKS = {
    "uneven": (f"{CPU}, {CPU}, {CPU}", "[1, 2, 3]"),
    "one": (f"{CPU}, {CPU}", "[1, 0]"),
    "devices": (GPU, "[2, 1]"),
    "device": (f"{GPU}, {CPU}", "[1, 1]"),
    "ranks": (f"{CPU}, {CPU}", "[1, 2, 2, 1]"),
}


def run(tmp_path, name, program, *arguments):
    """The output of a program as JSON on siblings of this name, or on one engine."""
    script, stacks = tmp_path / "script.py", tmp_path / "stacks.toml"
    script.write_text(program)
    variables, command = {"BH_STACK": "cpu"}, []
    if name != "alone":
        children, weights = STACKS[name]
        keys = '[components.opencl]\ndevice = "cpu"\nplacement = "device"\n' if "device" in name else ""
        stacks.write_text(
            f'[stacks]\nit = ["filter", "cluster", [{children}]]\n[components.cluster]\nweights = {weights}\nsmall_bytes = 64\n{keys}'
        )
        variables = {"BH_CONFIG": str(stacks), "BH_STACK": "it"}
    if name == "devices":
        variables["POCL_DEVICES"] = "pthread pthread"
    if name == "ranks":
        if not THERE:
            pytest.skip("bh was built without MPI")
        command = [*LAUNCHERS[THERE[0]], "-n", "2"]
        variables |= {"BH_LIBRARY_PATH": LIBRARIES, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = {**os.environ, "BH_VE_CPU_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **variables}
    line = [*command, sys.executable, "-m", "bh", str(script), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=LIMIT)
    if "device" in name and "OpenCL" in done.stderr and done.returncode:
        pytest.skip(f"no OpenCL: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(row) for row in done.stdout.splitlines() if row[:1] in "{["]


def chosen(name):
    """The programs that run on siblings of this name: on devices, for which each kernel is built anew, a few unless all are asked for."""
    few = "device" in name and not os.environ.get("BH_TEST_ALL")
    return [program for program in CATALOG if not few or program["name"] in ("black_scholes", "heat_equation", "leibnitz_pi")]


def results(tmp_path, name):
    """The checksums of programs by name, and the counters."""
    few = {"small_ops": 50}
    lines = [f"{program['name']} {program['small'][0]} {few.get(program['name'], 2)} f64" for program in chosen(name)]
    *rows, counts = run(tmp_path, name, ALL, str(BENCHES), *lines)
    return {row["bench"]: row["checksum"] for row in rows}, counts


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return results(tmp_path_factory.mktemp("alone"), "alone")[0]


@pytest.mark.parametrize("name", STACKS)
def test_programs_of_papers_give_what_one_engine_gives(tmp_path, alone, name):
    found, counts = results(tmp_path, name)
    for program in chosen(name):
        one, several = alone[program["name"]], found[program["name"]]
        near = [abs(a - b) <= program["tolerance"]["f64"] * max(abs(a), abs(b)) for a, b in zip(one, several, strict=True)]
        assert all(near), (program["name"], one, several)
    assert counts["cluster.batches given to one child" if name == "one" else "cluster.messages"] > 0
    engines = {"uneven": ["ve-cpu", "ve-cpu#2", "ve-cpu#3"], "devices": ["opencl", "opencl#2"], "device": ["opencl", "ve-cpu#2"]}
    assert all(counts[f"{engine}.kernels"] > 0 for engine in engines.get(name, ["ve-cpu"])), counts


@pytest.mark.parametrize("name", STACKS)
def test_heat_sends_borders_and_a_number_from_each_engine(tmp_path, name):
    engines = {"uneven": 3, "one": 1, "ranks": 4}.get(name, 2)
    [sent] = run(tmp_path, name, HEAT)
    assert sent == [(engines - 1) * (2 * 500 * 8 + 8), 3 * (engines - 1)]

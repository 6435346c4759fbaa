"""Every script of the benchmarks runs, at a tiny size: what it needs is there, and what it sets is known."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIMIT

BENCHES = Path(__file__).resolve().parents[2] / "benches"
LIBRARIES = Path(os.environ.get("BH_TEST_LIBRARIES", "."))

# Arguments of a tiny run by script, and what has to be there beside Python. `{out}` is a folder for results.
RUNS = {
    "ablation.py": [("--check", "prefix"), ("python --check --table {out}/ablation.md", "")],
    "access.py": [("--sizes 16,32 --strides 1,3 --elements 1000 --rounds 1 --json {out}/access.json", "")],
    "backends.py": [("--sizes 10 --rounds 1", ""), ("--programs small --runs 1 snakes_and_ladders --json {out}/backends.json", "")],
    "by_hand.py": [("--device cpu --runs 1 --host coulomb_128 mvt_8192 mri_fhd --json {out}/by_hand.json", "prefix pocl")],
    "cards.py": [("heat=60 --device cpu --drivers opencl --cards 1,2 --forms gpus --weak= --seconds 0.01 --warm 0 --limit 300 --out {out}", "pocl")],
    "check.py": [("monte_carlo_options nbody_collisions mvt mri_fhd rpes", "cc"), ("mvt rpes --dtype f64", "prefix")],
    "checks.py": [("--size 10000 --rounds 1 --checks nan overflow", "")],
    "cluster.py": [("--prefix {prefix} --build {build}/cluster --ranks 1,2 --repeat 1 --quick --no-weak black_scholes", "prefix mpirun")],
    "corpus/run.py": [("sod_shock_tube --sizes small --processes 1 --seconds 0 --json {out}/corpus.json --table {out}/corpus.md", "")],
    "cxx.py": [("--size small --runs 1 heat_equation --json {out}/cxx.json", "prefix")],
    "derivatives.py": [("24 2", "")],
    "device.py": [("--programs", "")],
    "factorisations.py": [("--sizes 8 --runs 1 solve", "prefix")],
    "functions.py": [("--elements 400 --seconds 0 --below 0 --json {out}/functions.json", "")],
    "functional/run.py": [("k_means --systems numpy,bh --size little --runs 1 --json {out}/functional.json", "")],
    "fusion.py": [(f"leibnitz_pi --runs {runs} --json {{out}}/fusion.json", "prefix examples/partition_costs") for runs in (0, 1)],
    "graphs.py": [("--turns 1 --json {out}/graphs.json", ""), ("stream --limit 4 --turns 1", ""), ("stream --limit 4 --turns 1", "prefix")],
    "hosts.py": [("heat=20 --delays 0,0.5 --rounds 1 --json {out}/hosts.json", "namespaces mpirun libbh_cluster_openmpi.so")],
    "jit.py": [("--operations 10 --elements 10 --seconds 0.01", "")],
    "little.py": [("solve svd matmul --sizes 3 --repeat 1 --cpu", "")],
    "loops.py": [("--sizes 6 --runs 2 --json {out}/loops.json", "prefix")],
    "micro.py": [("--device cpu --mib 4 --json {out}/micro.json", "pocl")],
    "methods_gpu.py": [("--systems bh --scale 4096 --runs 1 --table", "")],
    "npbench.py": [("{suite} --seconds 0.01 --json {out}/npbench.json", "")],
    "paper_sizes.py": [("--tiny --runs 1 knn gauss --json {out}/paper_sizes.json", "")],
    "planning.py": [("heat --sizes 10,20 --json {out}/planning.json", "bh-planning")],
    "products/run.py": [("--only thin --repeat 1", "")],
    "planted.py": [("--size 20000 --rounds 1", "")],
    "python.py": [("leibnitz_pi --runs 1 --json {out}/python.json", "")],
    "ranks.py": [
        ("--ranks 2 --rounds 1 --seconds 0 --warm 0 heat=40 fft2=32 --json {out}/ranks.json", "mpirun libbh_cluster_openmpi.so"),
        ("--ranks 2 --rounds 1 --seconds 0 --warm 0 --weak water=40", "mpirun libbh_cluster_openmpi.so"),
        ("--ranks 2 --rounds 1 --seconds 0 --warm 0 --balanced black_scholes=40", "mpirun libbh_cluster_openmpi.so"),
    ],
    "ranks_threads.py": [("--prefix {prefix} --build {build}/cluster --cores 1,2 --repeat 1 --quick black_scholes --json {out}/ranks_threads.json", "prefix mpirun")],
    "report.py": [("--check", "")],
    "reproducible/functions.py": [("", "")],
    "reproducible/price.py": [("leibnitz_pi --scale 1 --rounds 1", "")],
    "reproducible/programs.py": [("--stack numa", "")],
    "gradients_device.py": [("--stack numa --size 40 --steps 3", "")],
    "rivals.py": [("leibnitz_pi --runs 1 --turns 1 --threads 1 --json {out}/rivals.json", "")],
    "run.py": [("leibnitz_pi --runs 1 --most-runs 1 --numpy-runs 1 --json {out}/run.json --plot {out}/run.svg", "prefix")],
    "objects.py": [("--elements 100 --python 20 --runs 1 --json {out}/objects.json", "")],
    "scalars.py": [("--elements 100 --numpy 20 --runs 1 --json {out}/scalars.json", "")],
    "scalars_gpu.py": [("--by opencl --device cpu --elements 100 --runs 1 --warm 1 newton kepler --json {out}/scalars_gpu.json", "pocl")],
    "siblings.py": [("cpu numa --programs heat,host --sizes 20 --rounds 1 --steps 2 --json {out}/siblings.json", ""), ("--uneven --weights 1,1 --programs heat --sizes 20 --rounds 1", "")],
    "specialise.py": [("--device cpu --size tiny --dtype f64 --json {out}/specialise.json", "prefix pocl")],
    "statements.py": [("--elements 100 --rounds 1 --json {out}/statements.json", "prefix")],
    "statements/small.py": [("--sizes 4", "")],
    "transparent.py": [("sor snakes_and_ladders --stack numa --cores --sizes tiny --json {out}/transparent.json", "")],
    "time_tiles.py": [("heat points7 --scale 0.01 --runs 1 --batches 2 --threads 1 --json {out}/time_tiles.json", "")],
}
# Those that run elsewhere: the .NET and MiniMatlab ones in the tests of these, gradients beside JAX where JAX and NPBench are, the others where
# there is a GPU.
ELSEWHERE = {"fronts.py", "gradients_jax.py", "methods_gpu.py", "rivals_gpu.py"}


def scripts():
    """All scripts that are called by name."""
    return {str(path.relative_to(BENCHES)) for path in BENCHES.rglob("*.py") if path.read_text().startswith("#!")}


def test_all_are_here():
    assert scripts() == {*RUNS, *ELSEWHERE}


@pytest.mark.parametrize("script", sorted({*RUNS, *ELSEWHERE}))
def test_help(script):
    done = subprocess.run([sys.executable, BENCHES / script, "--help"], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and "usage:" in done.stdout, done.stderr


def missing(needs, prefix):
    """The missing requirements of a run."""
    for need in needs.split():
        namespaces = os.geteuid() == 0 and os.access("/dev/net/tun", os.W_OK)
        there = {"namespaces": namespaces, "cc": shutil.which("cc"), "mpirun": shutil.which("mpirun"), "prefix": prefix and shutil.which("g++"), "pocl": Path("/etc/OpenCL/vendors/pocl.icd").exists()}
        if not there.get(need, (LIBRARIES / need).exists() and need not in there):
            return need
    return None


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The files of an installation, made of the libraries that were built for the tests."""
    if not (LIBRARIES / "libbh_bridge_c.so").exists():
        return None
    folder = tmp_path_factory.mktemp("prefix")
    (folder / "include").symlink_to(BENCHES.parent / "bh-bridge-c" / "include")
    (folder / "lib").mkdir()
    for name in ("libbh_bridge_c.so", "libbh_bridge_c.so.0"):
        (folder / "lib" / name).symlink_to((LIBRARIES / "libbh_bridge_c.so").resolve())
    return folder


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A suite as NPBench is, of one kernel."""
    folder = tmp_path_factory.mktemp("suite")
    code = folder / "npbench" / "benchmarks" / "twice"
    code.mkdir(parents=True)
    (folder / "bench_info").mkdir()
    (code / "twice.py").write_text("import numpy as np\n\n\ndef initialize(N):\n    return np.arange(N, dtype=np.float64)\n")
    (code / "twice_numpy.py").write_text("import numpy as np\n\n\ndef kernel(x):\n    return x * 2\n")
    info = {
        "name": "Twice", "short_name": "twice", "relative_path": "twice", "module_name": "twice", "func_name": "kernel",
        "parameters": {"S": {"N": 10}}, "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["x"]},
        "input_args": ["x"], "array_args": ["x"], "output_args": [],
    }  # fmt: skip
    (folder / "bench_info" / "twice.json").write_text(json.dumps({"benchmark": info}))
    return folder


@pytest.mark.parametrize("script, arguments, needs", [(script, *run) for script, runs in RUNS.items() for run in runs])
def test_tiny_runs(script, arguments, needs, prefix, suite, tmp_path):
    if lacking := missing(needs, prefix):
        pytest.skip(f"{lacking} is not here")
    # Programs are compiled once for all runs of the tests.
    build = os.environ.get("BH_BENCH_BUILD") or (LIBRARIES / "benches" if prefix else tmp_path)
    environment = {
        **os.environ, "BH_BENCH_BUILD": str(build), "BH_PREFIX": str(prefix or ""), "BH_FALLBACK": "silent", "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "BH_PARTITION_COSTS": str(LIBRARIES / "examples" / "partition_costs"),
        "BH_PLANNING": str(LIBRARIES / "bh-planning"), "BH_LIBRARY_PATH": str(LIBRARIES),
    }  # fmt: skip
    if not needs:
        environment.pop("BH_LIBRARY_PATH")
    words = arguments.format(out=tmp_path, prefix=prefix, build=build, suite=suite).split()
    done = subprocess.run([sys.executable, BENCHES / script, *words], env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert not any(word in done.stdout for word in ("DISAGREE", "DIFFER", "FAILED", "nan s")), done.stdout[-2000:]
    for written in tmp_path.glob("*.json"):
        assert json.loads(written.read_text()), written


def test_claims_name_scripts_and_results(monkeypatch):
    """Commands in the tables of claims call scripts that are here, and figures come from results with a known commit, or from a commit."""
    for folder in (BENCHES / "common", BENCHES):
        monkeypatch.syspath_prepend(str(folder))
    import report

    commands, commits = set(), set()
    for name in (name for name in vars(report) if name.startswith("claims_")):
        for row in getattr(report, name)().splitlines()[2:]:
            command, commit = row.strip("| ").split(" | ")[-2:]
            commands.add(command.strip("`").split(" ")[0])
            commits.add(commit)
    assert all((BENCHES.parent / command).is_file() for command in commands - {"–"}), commands
    assert all(re.fullmatch("[0-9a-f]{8}|–", commit) for commit in commits), commits

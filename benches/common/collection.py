"""The collection as check.py, run.py and fusion.py see it: catalog, building, running one program once, comparing."""

import json
import math
import os
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
DEFAULT_BUILD = Path(os.environ.get("BH_BENCH_BUILD") or HERE.parent / "target" / "benches")

with open(HERE / "catalog.toml", "rb") as _file:
    CATALOG = tomllib.load(_file)
PROGRAMS = {program["name"]: program for program in CATALOG["program"]}


def chosen(parser, names):
    """The programs of these names, or all; leaves through `parser` if one is unknown."""
    for name in names:
        if name not in PROGRAMS:
            parser.error(f"no program {name!r}; there are {', '.join(PROGRAMS)}")
    return [program for name, program in PROGRAMS.items() if not names or name in names]


def extent(program, size):
    """n and iterations; `middle` is the geometric mean of the two sizes, and even, with the iterations of the one that has more."""
    if size != "middle":
        return program[size]
    (small, some), (full, other) = program["small"], program["full"]
    return 2 * round(math.sqrt(small * full) / 2), max(some, other)


def _older(binary, inputs):
    return not binary.exists() or binary.stat().st_mtime < max(path.stat().st_mtime for path in inputs)


def _compile(command):
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode or built.stderr:
        sys.stderr.write(built.stderr)
    if built.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed")


def build_twin(name, folder=DEFAULT_BUILD, wide=False):
    """Compiles a twin if its binary is missing or older than its sources; returns the binary."""
    settings = CATALOG["twin"]
    source, binary = HERE / name / "twin.c", folder / name / ("twin-wide" if wide else "twin")
    if _older(binary, [source, *(HERE / "common").glob("*.h")]):
        binary.parent.mkdir(parents=True, exist_ok=True)
        flags = settings["flags"] + (settings["wide_flags"] if wide else [])
        _compile([settings["compiler"], *flags, source, "-o", binary, *settings["libraries"]])
    return binary


def build_bh(name, prefix, folder=DEFAULT_BUILD, prebuilt=False):
    """As build_twin, for the program on bh, against the installation in `prefix`; `prebuilt` takes what is there."""
    settings = CATALOG["bh"]
    prefix = Path(prefix).resolve()
    if prebuilt:
        return folder / name / "bh"
    source, binary = HERE / name / "bh.cpp", folder / name / "bh"
    inputs = [source, *(HERE / "common").glob("*.h*"), *(prefix / "include").rglob("*.h*")]
    linked = folder / name / "bh-prefix"
    if _older(binary, inputs) or not linked.exists() or linked.read_text() != str(prefix):
        binary.parent.mkdir(parents=True, exist_ok=True)
        libraries = [f"-L{prefix / 'lib'}", "-lbh_bridge_c", f"-Wl,-rpath,{prefix / 'lib'}"]
        _compile([settings["compiler"], *settings["flags"], f"-I{prefix / 'include'}", source, "-o", binary, *libraries])
        linked.write_text(str(prefix))
    return binary


def build_all(programs, prefix, folder=DEFAULT_BUILD, wide=False, prebuilt=False):
    """Builds what is out of date of these programs, several at a time; `prefix` may be empty to build the twins only."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        builds = [pool.submit(build_twin, program["name"], folder, wide) for program in programs]
        if prefix and not prebuilt:
            builds += [pool.submit(build_bh, program["name"], prefix, folder) for program in programs]
        for build in builds:
            build.result()


def numpy_command(name):
    """The command of the NumPy form."""
    return [sys.executable, "-B", HERE / name / "numpy_version.py"]


def environment_of(threads):
    """The environment of a run with a number of threads."""
    env = dict(os.environ)
    if prefix := env.get("BH_PREFIX"):
        # Programs that were compiled elsewhere find the libraries as well.
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(Path(prefix).resolve() / "lib"), env.get("LD_LIBRARY_PATH")]))
    if threads:
        env["OMP_NUM_THREADS"] = env["BH_VE_CPU_THREADS"] = str(threads)
    return env


def run_once(command, n, iters, dtype, *, warm=True, threads=None, environment=None, limit=None):
    """Runs one form once and returns its line as a dictionary."""
    env = dict(environment_of(threads), **(environment or {}))
    words = [*map(str, command), str(n), str(iters), dtype, *(["--warm"] if warm else [])]
    run = subprocess.run(words, capture_output=True, text=True, env=env, timeout=limit)
    if run.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {run.returncode}: {run.stderr.strip()[-500:]}")
    return json.loads(run.stdout)


def agree(left, right, tolerance):
    """Whether two lists of checksums are equal within the tolerance."""
    return len(left) == len(right) and all(
        abs(a - b) <= tolerance * max(abs(a), abs(b)) for a, b in zip(left, right)
    )

#!/usr/bin/env python3
"""The papers' programs from their NumPy sources on bh, beside NumPy, numexpr, Numba, JAX, PyTorch and Devito in one run.

    benches/rivals.py [NAME...] [--size small|full] [--runs N] [--threads N] [--json FILE] [--table FILE]

`bh` must be importable; of the others those that are. Each process runs a program once untimed, so that compilers are
done, and then --runs times; processes of all systems follow each other, and the median of all their runs counts. Where a
system has no form of a program its field is empty.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = """heat_equation black_scholes shallow_water nbody leibnitz_pi rosenbrock stencil_27_point game_of_life
gauss heat_steps""".split()
SYSTEMS = {"bh": "bh", "numpy": "numpy", "numexpr_arrays": "numexpr", "numba_arrays": "numba", "numba_loops": "numba",
           "jax_arrays": "jax", "torch_arrays": "torch", "devito_arrays": "devito",
           "devito_skewed": "devito"}  # fmt: skip
THREADS = ["BH_VE_CPU_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS", "OMP_NUM_THREADS"]


def program_of(name):
    """`setup` and `run` of the NumPy version."""
    sys.path.insert(0, str(HERE / "common"))
    import harness

    found = {}
    harness.main = lambda _, setup, run: found.update(setup=setup, run=run)
    spec = importlib.util.spec_from_file_location(name, HERE / name / "numpy_version.py")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return found["setup"], found["run"]


def measure(name, system, n, iterations, runs):
    """The output of a process for one program on one system: seconds of each run, and checksums."""
    import numpy as np

    setup, run = program_of(name)
    import harness

    # Where `numpy` is a system that records (`python -m bh`), the work has to be done when a run ends.
    flush = getattr(np, "flush", lambda: None)
    finish = lambda result: flush()
    if system not in ("bh", "numpy"):
        sys.path.insert(0, str(HERE / "rivals"))
        rival = importlib.import_module(system)
        run = getattr(rival, name, None)
        finish = getattr(rival, "finish", finish)
        if run is None:
            return {"seconds": []}
    seconds = []
    for number in range(runs + 1):
        state = setup(n, np.float64)
        flush()
        begin = time.perf_counter()
        result = run(state, iterations)
        finish(result)
        seconds.append(time.perf_counter() - begin)
    result = result() if callable(result) else [checksum_of(harness, value) for value in result]
    return {"seconds": seconds[1:], "checksum": [float(value) for value in result]}


def checksum_of(harness, value):
    import numpy as np

    if isinstance(value, tuple):
        return sum(checksum_of(harness, part) for part in value)
    return harness.checksum(np.asarray(value)) if getattr(value, "ndim", 0) else float(value)


def process(name, system, n, iterations, args):
    """Runs `measure` in a process of its own."""
    env = {**os.environ, **{variable: str(args.threads) for variable in THREADS}, "BH_FALLBACK": "error"}
    words = [sys.executable, *(["-m", "bh"] if system == "bh" else []), __file__, "--inside", system, name, str(n), str(iterations), str(args.runs)]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    if done.returncode:
        print(f"{name} on {system}: {done.stderr.strip()[-300:]}", flush=True)
        return {"seconds": []}
    return json.loads(done.stdout.splitlines()[-1])


def compare(name, systems, args):
    """A program's median seconds on each system, and which checksums differ from NumPy's."""
    catalog = tomllib.loads((HERE / "catalog.toml").read_text())["program"]
    entry = next(row for row in catalog if row["name"] == name)
    n, iterations = entry[args.size]
    lines = {system: [process(name, system, n, iterations, args) for _ in range(args.turns)] for system in systems}
    tolerance = entry["tolerance"]["f64"] * 10
    wanted = lines["numpy"][0].get("checksum", [])
    row = {"bench": name, "n": n, "iters": iterations, "seconds": {}, "differ": []}
    for system, turns in lines.items():
        seconds = [one for turn in turns for one in turn["seconds"]]
        if not seconds:
            continue
        row["seconds"][system] = statistics.median(seconds)
        pairs = zip(turns[0]["checksum"], wanted, strict=True)
        if not all(abs(a - b) <= tolerance * max(abs(a), abs(b)) for a, b in pairs):
            row["differ"].append(system)
    return row


def markdown(rows, systems):
    """Milliseconds on each system; of the others in parentheses, how many times as long as bh."""
    lines = [f"| program | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for row in rows:
        mine = row["seconds"].get("bh")
        cells = []
        for system in systems:
            taken = row["seconds"].get(system)
            ratio = f" ({taken / mine:.2f})" if taken and mine and system != "bh" else ""
            cells.append(f"{taken * 1e3:.1f}{ratio}" if taken else "–")
        lines.append(f"| {row['bench']} {row['n']} × {row['iters']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:2] == ["--inside"]:
        system, name, *numbers = sys.argv[2:]
        print(json.dumps(measure(name, system, *map(int, numbers))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of a process")
    parser.add_argument("--turns", type=int, default=2, help="processes of each system")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"there is no program {unknown[0]}; there are {', '.join(PROGRAMS)}")
    systems = [system for system, module in SYSTEMS.items() if importlib.util.find_spec(module)]
    rows = []
    for name in args.names or PROGRAMS:
        rows.append(compare(name, systems, args))
        print(json.dumps(rows[-1]), flush=True)
        if args.json:
            args.json.write_text(json.dumps({"threads": args.threads, "programs": rows}, indent=1) + "\n")
        if args.table:
            args.table.write_text(markdown(rows, systems))
    print(markdown(rows, systems))
    return 1 if any("bh" in row["differ"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

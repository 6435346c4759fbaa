#!/usr/bin/env python3
"""The papers' programs from their NumPy sources on a GPU: bh, JAX and CuPy in one run, first calls included.

    benches/rivals_gpu.py [NAME...] [--systems LIST] [--runs N] [--steps N] [--json FILE] [--table]

`bh` must be importable, and runs on the stack `cuda`, and as `bh-opencl` on the stack `opencl`; of the others those that are. A program runs `steps` and three times
as many steps; their difference is what steps take, without what a run takes once (uploads, downloads). `first` is what the
first run of one step takes in a new process with empty caches, `again` in one that finds the caches of another; what
importing takes is not in them. `--table` writes the rows of the table in docs/opencl-measurements.md instead. Figures are milliseconds, medians of all runs; bh's also have the kernels that were built.
"""

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE / "common"))

# Program, elements, type, steps.
TABLE = [
    ("heat_equation", 8192, "float64", 50),
    ("black_scholes", 33554432, "float64", 50),
    ("black_scholes", 33554432, "float32", 50),
    ("shallow_water", 4096, "float64", 40),
    ("shallow_water", 4096, "float32", 40),
    ("nbody", 8192, "float64", 50),
    ("nbody", 16384, "float32", 50),
    ("leibnitz_pi", 200000000, "float64", 20),
    ("rosenbrock", 200000000, "float64", 50),
    ("stencil_27_point", 384, "float64", 50),
    ("game_of_life", 8192, "float64", 50),
]
SYSTEMS = {"bh": "bh", "bh-opencl": "bh", "jax": "jax", "cupy": "cupy"}
STACKS = {"bh": "cuda", "bh-opencl": "opencl"}
# Runs before those that are measured.
WARM = 3
# Where systems keep compiled kernels: empty folders for first calls.
CACHES = ["XDG_CACHE_HOME", "CUDA_CACHE_PATH", "CUPY_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR"]


def on_device(state, asarray):
    """A program's state, whose arrays are moved."""
    if isinstance(state, (tuple, list)):
        return type(state)(on_device(one, asarray) for one in state)
    return asarray(state) if getattr(state, "ndim", 0) else state


def prepared(name, system, n, dtype):
    """Functions that make the program's state on the device, run steps of it, and wait for them."""
    import harness
    import numpy

    from rivals import program_of

    if system == "cupy":
        import cupy

        sys.modules["numpy"] = cupy
        _, run = program_of(name)
        sys.modules["numpy"] = numpy
        harness.checksum = lambda array: float(abs(array).sum())
        setup, _ = program_of(name)
        return lambda: on_device(setup(n, dtype), cupy.asarray), run, lambda _: cupy.cuda.Device().synchronize()
    setup, run = program_of(name)
    if system == "jax":
        import jax

        sys.path.insert(0, str(HERE / "rivals"))
        rival = importlib.import_module("jax_arrays")
        run = getattr(rival, name)
        return lambda: on_device(setup(n, dtype), jax.numpy.asarray), run, jax.block_until_ready
    return lambda: setup(n, dtype), run, lambda _: numpy.flush()


def timed(make, run, finish, steps):
    """Milliseconds of a run of `steps` steps."""
    state = make()
    finish(state)
    begin = time.perf_counter()
    finish(run(state, steps))
    return (time.perf_counter() - begin) * 1e3


def inside(name, system, n, dtype, steps, runs):
    """A process's figures: the first run, and `runs` times what a step takes."""
    make, run, finish = prepared(name, system, n, dtype)
    found = {"first": timed(make, run, finish, 1), "step": []}
    # Until nothing is built beside the program any more: what steps take in the long run is asked for.
    for _ in range(WARM if runs else 0):
        for length in (steps, 3 * steps):
            timed(make, run, finish, length)
        if system in STACKS:
            from bh import _native

            _native.Stack().message("finish building")
    for _ in range(runs):
        short, long = timed(make, run, finish, steps), timed(make, run, finish, 3 * steps)
        found["step"].append((long - short) / (2 * steps))
    if system in STACKS:
        from bh import _native

        wanted = ("kernels built", "kernels loaded", "kernels", "build_ns", "kernel_ns", "upload_bytes", "download_bytes")
        found["counters"] = {key: value for key, value in _native.Stack().counters() if key.startswith(STACKS[system]) and key.endswith(wanted)}
    return found


def process(row, system, runs, caches):
    """Runs `inside` in a process of its own that keeps compiled kernels in `caches`."""
    env = {**os.environ, "BH_STACK": STACKS.get(system, ""), "RIVALS_PLATFORM": "cuda", **{key: f"{caches}/{key}" for key in CACHES}}
    for key in CACHES:
        os.makedirs(env[key], mode=0o700, exist_ok=True)
    words = [sys.executable, *(["-m", "bh"] if system in STACKS else []), __file__, "--inside", system, *map(str, row), str(runs)]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    if done.returncode:
        return {"error": done.stderr.strip()[-400:]}
    return json.loads(done.stdout.splitlines()[-1])


def compare(row, systems, runs):
    """A program's figures on each system."""
    found = {"bench": row[0], "n": row[1], "dtype": row[2]}
    for system in systems:
        caches = tempfile.mkdtemp(prefix="rivals-")
        first, again = process(row, system, 0, caches), process(row, system, runs, caches)
        shutil.rmtree(caches, ignore_errors=True)
        error = first.get("error") or again.get("error")
        figures = {"first": first.get("first"), "again": again.get("first"), "counters": again.get("counters")}
        found[system] = {"error": error} if error else {**figures, "step": statistics.median(again["step"]), "steps": again["step"]}
    return found


def text(value):
    """A figure with two digits or more."""
    return "–" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def line(row, systems):
    """The row of a table: steps, then first calls."""
    name = f"{row['bench']} {row['n']}" + (", `f32`" if row["dtype"] == "float32" else "")
    cells = [text(row[system].get(key)) for key in ("step", "first") for system in systems]
    return f"| {' | '.join([name, *cells])} |"


def main():
    if sys.argv[1:2] == ["--inside"]:
        system, name, n, dtype, steps, runs = sys.argv[2:]
        print(json.dumps(inside(name, system, int(n), dtype, int(steps), int(runs))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--systems", type=lambda text: text.split(","), default=list(SYSTEMS), help="some of them, as in bh,jax")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, help="instead of the table's")
    parser.add_argument("--scale", type=int, default=1, help="divides the number of elements")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    systems = [system for system, module in SYSTEMS.items() if system in args.systems and importlib.util.find_spec(module)]
    rows = []
    for name, n, dtype, steps in TABLE:
        if args.names and name not in args.names:
            continue
        row = compare((name, n // args.scale, dtype, args.steps or steps), systems, args.runs)
        rows.append(row)
        print(line(row, systems) if args.table else json.dumps(row), flush=True)
        if args.json:
            args.json.write_text(json.dumps({"programs": rows}, indent=1) + "\n")
    return 1 if any("error" in row.get(system, {}) for row in rows for system in STACKS) else 0


if __name__ == "__main__":
    sys.exit(main())

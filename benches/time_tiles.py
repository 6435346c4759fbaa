#!/usr/bin/env python3
"""Times steps in time that share a pass over memory: one step a batch, many with and without tiles, and small arrays in the caches.

    benches/time_tiles.py [--device cpu|gpu] [--threads N] [--runs N] [--scale S] [--json FILE] [NAME...]

Milliseconds a step, each the least of the runs, in processes of their own that take turns. *one* reads (flushes) after each
step, without tiles; *off* and *auto* after as many as the table says. *cached* is one thread on arrays that its caches hold, without tiles: what a step
takes that does not wait for memory, in nanoseconds of a thread for a point; *bound* is how many times as fast as *one* tiles would
be at 0.8 of that rate. Results of all ways must be equal, bit by bit.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import harness

# Seconds in which kernels are compiled beside a program, and the most that a device takes for those of tiles.
LEAST_WARM, MOST_WARM = 0.5, 40
WAYS = {"one": "off", "off": "off", "auto": "auto"}


def heat(n, dtype="float64"):
    """The five-point mean, in place."""
    grid = _filled((n, n), dtype)
    inside = grid[1:-1, 1:-1]

    def step():
        inside[:] = 0.2 * (inside + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])

    return step, [grid]


def jacobi(n, dtype="float64"):
    """The same between two grids, a pair of steps."""
    grids = [_filled((n, n), dtype), _filled((n, n), dtype)]

    def step():
        for grid, other in (grids, grids[::-1]):
            mean = 0.2 * (grid[1:-1, 1:-1] + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
            other[1:-1, 1:-1] = mean

    return step, grids


def life(n, _=None):
    """Conway's game with cells of whole numbers."""
    board = (_filled((n, n), "float64") < 0.3).astype("int64")

    def step():
        near = board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2]
        near = near + board[1:-1, 2:] + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        board[1:-1, 1:-1] = (near == 3) | ((near == 2) & (board[1:-1, 1:-1] == 1))

    return step, [board]


def points7(n, dtype="float64"):
    """The seven-point mean of a cube."""
    grid = _filled((n, n, n), dtype)
    inside, all_but = grid[1:-1, 1:-1, 1:-1], (slice(None, -2), slice(2, None))

    def step():
        near = inside
        for axis, side in itertools.product(range(3), all_but):
            near = near + grid[tuple(side if axis == at else slice(1, -1) for at in range(3))]
        inside[:] = near * (1 / 7)

    return step, [grid]


def points27(n, dtype="float64"):
    """The mean of all 27 neighbours in a cube."""
    grid = _filled((n, n, n), dtype)
    shifts = [tuple(slice(at, n - 2 + at) for at in offsets) for offsets in itertools.product(range(3), repeat=3)]

    def step():
        near = grid[shifts[0]] + grid[shifts[1]]
        for shift in shifts[2:]:
            near += grid[shift]
        grid[1:-1, 1:-1, 1:-1] = near * (1 / 27)

    return step, [grid]


def shallow_water(n, dtype="float64"):
    """The benchmark of this name."""
    program = _benchmark("shallow_water")
    state = program["setup"](n, numpy_like().dtype(dtype).type)
    return (lambda: program["run"](state, 1)), list(state)


def d2q9(n, dtype="float64"):
    """The benchmark `lattice_boltzmann_d2q9`."""
    program = _benchmark("lattice_boltzmann_d2q9")
    state = program["setup"](n, numpy_like().dtype(dtype).type)
    return (lambda: program["run"](state, 1)), list(state[0])


# Size, dimensions, steps of a batch, and the size that caches hold; steps of a call.
PROGRAMS = {
    "heat": (heat, 8000, 2, 24, 250, 1), "jacobi": (jacobi, 8000, 2, 6, 200, 2), "life": (life, 8192, 2, 12, 250, 1), "points7": (points7, 384, 3, 12, 48, 1),
    "points27": (points27, 400, 3, 12, 48, 1), "shallow_water": (shallow_water, 4000, 2, 12, 150, 1), "d2q9": (d2q9, 4000, 2, 4, 120, 1),
}  # fmt: skip


def numpy_like():
    """bh, where it is loaded: in the processes that run programs."""
    return sys.modules.get("bh", numpy)


def _filled(shape, dtype):
    count = int(numpy.prod(shape))
    return numpy_like().array(harness.pseudo(count, 5, numpy.dtype(dtype).type).reshape(shape))


def _benchmark(name):
    """The names of a benchmark's NumPy version, on bh."""
    text = (Path(__file__).resolve().parent / name / "numpy_version.py").read_text()
    names = {"__file__": str(Path(__file__).resolve().parent / name / "numpy_version.py")}
    body = text.replace("import numpy as np", "import bh as np").replace("harness.main(", "_ = (")
    exec(compile(body, name, "exec"), names)
    return names


def one_way(name, n, steps, batches):
    """Runs a program in this process: the least seconds of a step, the part of kernels that ran in tiles, and what tells whether
    results are equal."""
    import bh

    def batch(step):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        bh.flush()
        bh.wait()
        return (time.perf_counter() - start) / steps / PROGRAMS[name][5]

    def engine(step):
        # Little arrays take less time than what records their operations.
        before = bh.profile()["ve-cpu.own_ns"]
        batch(step)
        return (bh.profile()["ve-cpu.own_ns"] - before) * 1e-9 / steps / PROGRAMS[name][5]

    def tiled():
        return sum(count for key, count in bh.profile().items() if key.endswith(".kernels in tiles"))

    # Frequent kernels are compiled beside the program, and devices plan chains when a batch repeats.
    step, arrays = PROGRAMS[name][0](n)
    start, most = time.perf_counter(), float(os.environ.get("BENCH_WARM", "0"))
    for number in itertools.count():
        passed = time.perf_counter() - start
        if number > 4 and passed > LEAST_WARM and (passed > most or tiled()):
            break
        batch(step)
    del step, arrays
    step, arrays = PROGRAMS[name][0](n)
    bh.flush()
    before = tiled()
    seconds = min([batch(step) for _ in range(batches)][batches // 3 :])
    if "BH_STATS" in os.environ:
        seconds = min(engine(step) for _ in range(batches))
    kernels = tiled() - before
    sums = [hash(numpy.asarray(array).tobytes()) for array in arrays]
    print(json.dumps({"seconds": seconds, "in tiles": kernels / (batches * steps), "hash": sums}))


def run(name, way, n, steps, batches, args, threads):
    """The line of a process that runs a program in one way."""
    component = "OPENCL" if args.device == "gpu" else "VE_CPU"
    keys = {f"BH_{component}_TIME_TILES": WAYS.get(way, "off"), "PYTHONHASHSEED": "0"}
    if args.device == "gpu":
        keys |= {"BH_STACK": "opencl", "BENCH_WARM": str(MOST_WARM if way == "auto" else 0)}
    keys |= {"BH_VE_CPU_THREADS": str(threads)} if threads else {}
    # Times of components are counted where statistics are asked for.
    keys |= {"BH_STATS": os.devnull} if way == "cached" else {}
    command = [sys.executable, __file__, "--one", f"{name},{n},{steps},{batches}"]
    done = subprocess.run(command, env={**os.environ, **keys}, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def measured(name, args):
    """A row of the table."""
    _, size, dimensions, steps, small, _ = PROGRAMS[name]
    n = max(int(size * args.scale), 8)
    # All ways do the same number of steps in all, so that results can be compared.
    row = {"program": name, "n": n, "steps": steps}
    hashes = set()
    for _ in range(args.runs):
        for way in WAYS:
            batches = args.batches * (steps if way == "one" else 1)
            found = run(name, way, n, 1 if way == "one" else steps, batches, args, args.threads)
            row[way] = min(row.get(way, float("inf")), found["seconds"] * 1e3)
            hashes.add(tuple(found["hash"]))
            row["in tiles"] = found["in tiles"]
        if args.device == "cpu":
            n_small = max(int(small * args.scale), 8) if args.scale < 0.1 else small
            found = run(name, "cached", n_small, 40, 12, args, 1)
            cached = found["seconds"] / n_small**dimensions * 1e9
            row["cached"] = min(row.get("cached", float("inf")), cached)
    row["gain"] = row["one"] / row["auto"]
    # Arrays of a few bytes never come to the engine.
    if row.get("cached"):
        threads = args.threads or os.cpu_count()
        row["bound"] = 0.8 * row["one"] / (row["cached"] * 1e-6 * n**dimensions / threads)
    row["equal"] = len(hashes) == 1
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--batches", type=int, default=9, help="batches of many steps in one run")
    parser.add_argument("--scale", type=float, default=1.0, help="of the extents of arrays")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        name, *numbers = args.one.split(",")
        return one_way(name, *map(int, numbers))
    unknown = set(args.names) - set(PROGRAMS)
    if unknown:
        parser.error(f"no program {', '.join(sorted(unknown))}")
    rows = []
    for name in args.names or PROGRAMS:
        rows.append(measured(name, args))
        print(" ".join(f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if not all(row["equal"] for row in rows):
        raise SystemExit("results differ")


if __name__ == "__main__":
    main()

"""Programs of Python for `ablation.py`: loops over steps in time, and functions of scalars between operations on arrays.

    recorded.py SIZE RUNS [NAME...]

SIZE is the side of grids of two dimensions; other sizes follow from it. Prints a line of JSON for each program: the median seconds
of its runs after the first, also of the processor, and a checksum of its results.
"""

import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy
import scalars
import time_tiles

import bh

# Steps in time between two reads, and the programs of `time_tiles.py` that take them; `d2q9` would take longer than all others together.
STEPS = 12
STEPPED = ["heat", "jacobi", "life", "points7", "points27", "shallow_water"]


def stepped(make, side, dimensions):
    """A loop over steps in time: how to run it, and its results."""
    step, arrays = make(side if dimensions == 2 else max(int(side ** (2 / 3)), 8))

    def run():
        for _ in range(STEPS):
            step()
        bh.flush()
        bh.wait()

    return run, lambda: arrays


def mapped(function, side):
    """A function of scalars for each element, between two operations on whole arrays."""
    make, _ = scalars.PROGRAMS[function]
    arrays = [bh.asarray(array) for array in make(numpy.random.default_rng(1), max(side * side // 16, 64))]
    made, results = bh.vectorize(function), []

    def run():
        results[:] = [2.0 * made(*[array * 1 for array in arrays]) + 1.0]
        bh.wait(results[0])

    return run, lambda: results


def rolled(side):
    """A step in time over rolled arrays, which have no borders."""
    grid = [time_tiles._filled((side, side), "float64")]

    def run():
        old = grid[0]
        grid[0] = 0.2 * (old + bh.roll(old, 1, 0) + bh.roll(old, -1, 0) + bh.roll(old, 1, 1) + bh.roll(old, -1, 1))
        bh.flush()
        bh.wait()

    return run, lambda: grid


def programs(side):
    """All programs by name: what makes each."""
    made = {name: lambda name=name: stepped(time_tiles.PROGRAMS[name][0], side, time_tiles.PROGRAMS[name][2]) for name in STEPPED}
    made |= {function.__name__: lambda function=function: mapped(function, side) for function in scalars.PROGRAMS}
    return made | {"rolled": lambda: rolled(side)}


def main():
    side, runs, *names = sys.argv[1:]
    for name, make in programs(int(side)).items():
        if names and name not in names:
            continue
        run, results = make()
        times = []
        for _ in range(int(runs)):
            begin = time.perf_counter(), time.process_time()
            run()
            times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
        seconds, processor = (statistics.median(each) for each in zip(*times[1:]))
        checksum = sum(float(numpy.nansum(numpy.abs(numpy.asarray(array), dtype="float64"))) for array in results())
        print(json.dumps({"loop": name, "later": seconds, "processor": processor, "checksum": checksum}), flush=True)


if __name__ == "__main__":
    main()

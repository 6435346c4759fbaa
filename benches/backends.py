#!/usr/bin/env python3
"""The cost of the interface between functions and back ends, and of work that a back end leaves to NumPy.

    benches/backends.py [--sizes N...] [--rounds N]
    benches/backends.py --programs small|full [NAME...]

For each size: one addition and a chain of ten operations, written into given arrays, by NumPy alone and through the back ends
`numpy`, `numexpr` (where it is installed) and `bh`; on bh a function that runs on the stack beside one that goes to NumPy
and back; and a product of matrices that a back end does, and that it leaves to NumPy. The package `bh` must be importable. Figures are the least of several rounds, in microseconds.

With `--programs`: the programs of the npbackend paper, from their NumPy sources, by NumPy alone and by `python -m bh --backend NAME`:
its Figs. 9 to 13, at its sizes with `paper`. The back end `numpy` runs without the memory that it keeps, too, and where products
of matrices count, `numpy` and `numexpr` also leave these to NumPy. Milliseconds of processor time on one thread, medians of runs in turn.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path

import numpy

import bh
from bh.backends.layer import numpy_on
from bh.backends import BACKENDS, NumPy, backend

sys.path.insert(0, str(Path(__file__).resolve().parent / "common"))
import collection

# Beside those that the catalog names for the paper: one whose work falls back, and one of arithmetic alone.
PROGRAMS = ("snakes_and_ladders", "black_scholes")


def least(work, rounds):
    """The least time of a call, in microseconds."""
    best = math.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best * 1e6


def through(work, size, operations):
    """Operations through a back end's primitives, as a function without arguments."""
    a, b, out = (work.view(work.empty(size, numpy.dtype(float)), 0, (size,), (1,)) for _ in range(3))
    for array in (a, b):
        work.method("arange", array)

    def run():
        work.ufunc("add", out, a, b)
        for _ in range(operations - 1):
            work.ufunc("multiply", out, out, 0.5)
        work.get(out)

    return run


def directly(size, operations):
    """The same by NumPy without the interface."""
    a, b, out = numpy.arange(float(size)), numpy.arange(float(size)), numpy.empty(size)

    def run():
        numpy.add(a, b, out=out)
        for _ in range(operations - 1):
            numpy.multiply(out, 0.5, out=out)

    return run


class WithoutProducts(NumPy):
    """The back end `numpy` without products of matrices."""

    def method(self, name, out, *inputs):
        """Leaves everything to NumPy."""
        raise NotImplementedError


def products(side, rounds):
    """Powers of a matrix by NumPy alone, through the back end `numpy`, and through one that leaves products to NumPy."""
    figures = {}
    os.environ["BH_FALLBACK"] = "silent"
    for name, module in ("NumPy alone", numpy), ("numpy", numpy_on("numpy")), ("left to NumPy", numpy_on(WithoutProducts())):
        matrix = module.ones((side, side)) / side
        figures[name] = least(lambda: matrix @ matrix, rounds)
    return figures


# The paper's extents, with fewer iterations.
PAPER = {"heat_equation": (3000, 10), "shallow_water": (2000, 10), "snakes_and_ladders": (1000, 10), "black_scholes": (4_000_000, 5)}
ONE_THREAD = {"BH_FALLBACK": "silent", "BH_VE_CPU_JIT": "on", "BH_VE_CPU_THREADS": "1", "NUMEXPR_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# `python -m bh`, with something changed before.
CHANGED = "import runpy, sys; from bh.backends import numpy_backend as _eager; exec(sys.argv[1]); sys.argv = ['bh', *sys.argv[2:]]; runpy.run_module('bh', run_name='__main__', alter_sys=True)"
NOTHING_KEPT = "_eager.NumPy.kept = 0"
NO_PRODUCTS = """
def without(kind):
    whole = kind.method
    def method(self, name, out, *inputs):
        if name == "matmul":
            raise NotImplementedError
        whole(self, name, out, *inputs)
    kind.method = method
without(_eager.NumPy)
try:
    from bh.backends.numexpr_backend import Numexpr
    without(Numexpr) if "method" in vars(Numexpr) else None
except ImportError:
    pass
"""


def ways(name):
    """The commands by which a program runs, by form."""
    script = str(collection.HERE / name / "numpy_version.py")
    through = lambda change, other: [sys.executable, "-c", CHANGED, change, "--backend", other, script]
    commands = {"NumPy alone": [sys.executable, script]}
    for other in BACKENDS:
        with contextlib.suppress(ImportError):
            backend(other)
            commands[other] = [sys.executable, "-m", "bh", "--backend", other, script]
            if other == "numpy":
                commands["numpy, nothing kept"] = through(NOTHING_KEPT, other)
            if name == "snakes_and_ladders" and other != "bh":
                commands[f"{other}, products left"] = through(NO_PRODUCTS, other)
    return commands


def programs(args):
    """Runs whole programs by each way, with checksums that must agree. Returns the rows, and whether they do."""
    rows, good = [], True
    for program in collection.PROGRAMS.values():
        name = program["name"]
        if name not in args.names if args.names else "npbackend" not in program["source"] and name not in PROGRAMS:
            continue
        n, iters = PAPER[name] if args.programs == "paper" else program[args.programs]
        commands, seconds, sums = ways(name), {}, {}
        for _ in range(args.runs):
            for form, command in commands.items():
                line = collection.run_once(command, n, iters, "f64", limit=args.limit, environment=ONE_THREAD)
                seconds.setdefault(form, []).append(line["processor"])
                sums[form] = line["checksum"]
        wrong = [form for form, found in sums.items() if not collection.agree(found, sums["NumPy alone"], program["tolerance"]["f64"])]
        times = {form: statistics.median(values) for form, values in seconds.items()}
        shown = "  ".join(f"{form} {1e3 * value:9.1f}" for form, value in times.items())
        print(f"{name:22} n={n:<8} iters={iters:<4} {shown}  {f'DISAGREE {wrong}' if wrong else 'agree'}", flush=True)
        rows.append({"program": name, "n": n, "iters": iters, "seconds": times})
        good &= not wrong
    return rows, good


def left(size):
    """A function of the stack, and one that NumPy does for it, on an array of bh."""
    x = bh.arange(float(size)) + 1
    bh.flush()

    def complete(function):
        def run():
            function(x)
            bh.flush()

        return run

    return complete(bh.sqrt), complete(lambda value: bh.ldexp(value, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the programs, of those in the catalog")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 10_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--programs", choices=["small", "paper", "full"], help="whole programs of this size instead")
    parser.add_argument("--runs", type=int, default=5, help="runs of whole programs")
    parser.add_argument("--json", type=Path, help="a file for the times of whole programs")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a program is given up")
    args = parser.parse_args()
    if args.programs:
        rows, good = programs(args)
        if args.json:
            args.json.write_text(json.dumps({"programs": rows}, indent=1) + "\n")
        return 0 if good else 1
    for size in args.sizes:
        for operations in (1, 10):
            figures = {"NumPy alone": least(directly(size, operations), args.rounds)}
            for name in BACKENDS:
                try:
                    figures[name] = least(through(backend(name), size, operations), args.rounds)
                except ImportError:
                    continue
            shown = "  ".join(f"{name} {figure:10.1f}" for name, figure in figures.items())
            print(f"{size:>9} elements, {operations:>2} operations: {shown}")
        with bh.fallback("silent"):
            native, fallen = (least(work, args.rounds) for work in left(size))
        print(f"{size:>9} elements, a function of the stack {native:10.1f}, one left to NumPy {fallen:10.1f}")
        side = max(math.isqrt(size), 1)
        shown = "  ".join(f"{name} {figure:10.1f}" for name, figure in products(side, args.rounds).items())
        print(f"{size:>9} elements, a product of matrices: {shown}")


    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the interface between functions and back ends costs, and what work that a back end leaves to NumPy costs.

    benches/backends.py [--sizes N...] [--rounds N]

For each size: one addition and a chain of ten operations, written into given arrays, by NumPy alone and through the back ends
`numpy`, `numexpr` (where it is installed) and `bh`; and on bh a function that runs on the stack beside one that goes to NumPy
and back. The package `bh` must be importable. Figures are the least of several rounds, in microseconds.
"""

import argparse
import math
import time

import numpy

import bh
from bh.backends import BACKENDS, backend


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
    kind = numpy.dtype(float)
    a, b, out = work.range(size, kind), work.range(size, kind), work.empty((size,), kind)

    def run():
        work.ufunc("add", out, a, b)
        for _ in range(operations - 1):
            work.ufunc("multiply", out, out, 0.5)
        work.flush()

    return run


def directly(size, operations):
    """The same by NumPy without the interface."""
    a, b, out = numpy.arange(float(size)), numpy.arange(float(size)), numpy.empty(size)

    def run():
        numpy.add(a, b, out=out)
        for _ in range(operations - 1):
            numpy.multiply(out, 0.5, out=out)

    return run


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
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 10_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=50)
    args = parser.parse_args()
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


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The cost of the checks of fused programs: each program with and without them, alternating, the least of the processor times.

    benches/checks.py [--size N] [--rounds N] [--checks nan inf ...]
"""

import argparse
import time

import bh


def expression(a, b):
    """Four operations in one kernel, whose result is stored."""
    for _ in range(40):
        c = a * 2 + b - a * b
        bh.wait(c)


def in_place(a, b):
    """Updates of one array in place."""
    for _ in range(40):
        a *= 0.5
        a += b
        bh.wait(a)


def stencil(a, b):
    """Steps of a stencil over a grid, ten to a batch."""
    grid = a[: int(len(a) ** 0.5) ** 2].reshape(int(len(a) ** 0.5), -1)
    for _ in range(10):
        for _ in range(10):
            grid[1:-1, 1:-1] = 0.2 * (grid[1:-1, 1:-1] + grid[2:, 1:-1] + grid[:-2, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2])
        bh.wait(grid)


def functions(a, b):
    """Functions that take more time than memory does."""
    for _ in range(3):
        bh.wait(bh.exp(-a) * bh.sin(b))


def sums(a, b):
    """Reads alone: folds of stored arrays."""
    for _ in range(40):
        float((a * b).sum())


def small(a, b):
    """Small operations, which run at once without the checks."""
    x = a[:100].copy()
    for _ in range(300):
        x = x * 0.5 + 1
    float(x.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--checks", nargs="+", default=["nan"])
    options = parser.parse_args()
    print(f"{'program':12} {'without':>10} {'with':>10}  ratio   (ms, {options.size} elements, {' '.join(options.checks)})")
    for program in (expression, in_place, stencil, functions, sums, small):
        least = {}
        for turn in range(2 * options.rounds + 2):
            checks = options.checks if turn % 2 else []
            a, b = bh.linspace(0, 1, options.size), bh.linspace(1, 2, options.size)
            bh.wait(a, b)
            bh.check(*checks)
            begin = time.process_time()
            program(a, b)
            elapsed = time.process_time() - begin
            bh.check()
            # The first of each plans.
            if turn > 1:
                least[turn % 2] = min(least.get(turn % 2, elapsed), elapsed)
        without, checked = least[0] * 1e3, least[1] * 1e3
        print(f"{program.__name__:12} {without:10.2f} {checked:10.2f}  {checked / without:5.2f}")


if __name__ == "__main__":
    main()

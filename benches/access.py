#!/usr/bin/env python3
"""How fast memory is read by how it is walked: the micro-benchmarks of "affine loop nests on GPUs" (TR78), on a stack of bh and NumPy.

    benches/access.py [--sizes 2048,4096] [--strides 1,2,4] [--elements N] [--rounds N] [--stack NAME] [--json FILE]

Sums of the rows and of the columns of an n x n matrix of single precision: on a GPU, an item of work for each row walks memory
in blocks, and one for each column in turns with its neighbours (the paper's Table 1). Sums of every s-th element (its Fig. 1).
Gigabytes of summed elements a second, the best of several rounds; results are compared. Its Figs. 2 and 3 are about memory
inside of a GPU's cores, which array programs do not name.
"""

import argparse
import json
import math
import os
import sys
import time

import numpy


def best(work, rounds):
    """The result and the least seconds of a call."""
    least, result = math.inf, None
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        result = numpy.array(work())
        least = min(least, time.perf_counter() - begin)
    return result, least


def cases(args):
    """Names with a function of a NumPy-like module and an array, the array, and how many elements it sums."""
    rng = numpy.random.default_rng(1)
    for n in args.sizes:
        matrix = rng.random((n, n), dtype=numpy.float32)
        yield f"rows of {n} x {n}", lambda np, a: np.sum(a, axis=1), matrix, n * n
        yield f"columns of {n} x {n}", lambda np, a: np.sum(a, axis=0), matrix, n * n
    vector = rng.random(args.elements, dtype=numpy.float32)
    for stride in args.strides:
        yield f"every {stride} of {args.elements}", lambda np, a, stride=stride: np.sum(a[::stride]), vector, -(-args.elements // stride)


def main():
    numbers = lambda text: list(map(int, text.split(",")))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=numbers, default=[2048, 4096, 8192])
    parser.add_argument("--strides", type=numbers, default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stack", help="the stack to run on, instead of BH_STACK's")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.stack:
        os.environ["BH_STACK"] = args.stack
    import bh

    rows, failed = [], False
    print(f"{'sums of':28} {'NumPy GB/s':>11} {'bh GB/s':>9}")
    for name, work, data, count in cases(args):
        there = bh.asarray(data)
        expected, plain = best(lambda: work(numpy, data), args.rounds)
        found, mine = best(lambda: work(bh, there), args.rounds)
        agree = numpy.allclose(found, expected, rtol=1e-3)
        failed |= not agree
        rows.append({"case": name, "numpy": count * 4e-9 / plain, "bh": count * 4e-9 / mine})
        print(f"{name:28} {rows[-1]['numpy']:11.2f} {rows[-1]['bh']:9.2f}{'' if agree else '  DISAGREE'}", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"stack": bh.Stack().name, "rows": rows}, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

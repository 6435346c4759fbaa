#!/usr/bin/env python3
"""Linear algebra of stacks of little matrices beside NumPy: the best of some runs, and how many times as fast bh is.

    PYTHONPATH=… benches/little.py [--sizes 2,3,4,8,16] [--kinds f8] [--repeat N] [NAME...]

NumPy uses one thread for such stacks, bh all (BH_CPU_THREADS). `--cpu` compares the time of processors instead of that of the clock, which
other programs on the machine change less.
"""

import argparse
import time

import numpy

import bh

# Functions of a stack of square matrices, or of one of definite matrices.
NAMES = {
    "solve": lambda np, a, p: np.linalg.solve(a, a[..., :1]),
    "inv": lambda np, a, p: np.linalg.inv(a),
    "det": lambda np, a, p: np.linalg.det(a),
    "cholesky": lambda np, a, p: np.linalg.cholesky(p),
    "matmul": lambda np, a, p: np.matmul(a, p),
    "qr": lambda np, a, p: np.linalg.qr(a),
    "eigh": lambda np, a, p: np.linalg.eigh(p),
    "svd": lambda np, a, p: np.linalg.svd(a),
}
# Elements of a stack.
ELEMENTS = 1 << 20


def stacks(size, kind):
    random = numpy.random.default_rng(size)
    shape = (ELEMENTS // (size * size), size, size)
    a = random.standard_normal(shape) + (1j * random.standard_normal(shape) if kind[0] == "c" else 0)
    definite = a @ numpy.conj(numpy.swapaxes(a, -1, -2)) + numpy.eye(size)
    return a.astype(kind), definite.astype(kind)


def best(call, repeat, clock):
    call()
    times = []
    for _ in range(repeat):
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--sizes", default="2,3,4,6,8,12,16")
    parser.add_argument("--kinds", default="f8")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    print("| function | type | size | systems | NumPy, ms | bh, ms | times as fast |\n|---|---|---|---|---|---|---|")
    for name in options.names or NAMES:
        for kind in options.kinds.split(","):
            for size in map(int, options.sizes.split(",")):
                theirs = stacks(size, kind)
                ours = [bh.array(value) for value in theirs]
                one = best(lambda: NAMES[name](numpy, *theirs), options.repeat, clock)
                other = best(lambda: (NAMES[name](bh, *ours), bh.flush()), options.repeat, clock)
                print(f"| {name} | {kind} | {size} | {len(theirs[0])} | {one:.1f} | {other:.1f} | {one / other:.1f} |", flush=True)


if __name__ == "__main__":
    main()

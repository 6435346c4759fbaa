#!/usr/bin/env python3
"""Products of matrices in every shape, beside NumPy: medians, and how many times as fast bh is.

    PYTHONPATH=… benches/products/run.py [--only NAME] [--repeat N]

Both run with the threads that they have (OPENBLAS_NUM_THREADS, BH_CPU_THREADS).
"""

import argparse
import statistics
import time

import numpy

import bh


def array(random, shape, kind):
    values = random.standard_normal(shape)
    return (values + 1j * random.standard_normal(shape) if kind[0] == "c" else values).astype(kind)


# Name, operands' shapes, and the product of them; `np` is either module.
CASES = [
    ("square 64", [(64, 64), (64, 64)], lambda np, a, b: a @ b),
    ("square 256", [(256, 256), (256, 256)], lambda np, a, b: a @ b),
    ("square 1024", [(1024, 1024), (1024, 1024)], lambda np, a, b: a @ b),
    ("transposed 512", [(512, 512), (512, 512)], lambda np, a, b: a.T @ b.T),
    ("tall", [(20000, 32), (32, 32)], lambda np, a, b: a @ b),
    ("wide", [(32, 32), (32, 20000)], lambda np, a, b: a @ b),
    ("thin", [(2000, 4), (4, 2000)], lambda np, a, b: a @ b),
    ("long inner", [(8, 200000), (200000, 8)], lambda np, a, b: a @ b),
    ("gram", [(100000, 16)], lambda np, a: a.T @ a),
    ("matrix by vector", [(2000, 2000), (2000,)], lambda np, a, x: a @ x),
    ("vector by matrix", [(2000,), (2000, 2000)], lambda np, x, a: x @ a),
    ("strided", [(1024, 1024), (1024, 1024)], lambda np, a, b: a[::2, ::2] @ b[::2, ::2]),
    ("stack of 8 x 128", [(8, 128, 128), (8, 128, 128)], lambda np, a, b: a @ b),
    ("stack of 1000 x 16", [(1000, 16, 16), (1000, 16, 16)], lambda np, a, b: a @ b),
    ("stack of 100000 x 3", [(100000, 3, 3), (100000, 3, 3)], lambda np, a, b: a @ b),
    ("stack, shared right", [(64, 64, 64), (64, 64)], lambda np, a, b: a @ b),
    ("scalar products", [(100000, 16), (100000, 16)], lambda np, a, b: np.einsum("ij,ij->i", a, b)),
    ("batched einsum", [(8, 256, 64), (8, 256, 64)], lambda np, a, b: np.einsum("bqd,bkd->bqk", a, b)),
    ("two inner axes", [(64, 32, 48), (48, 32, 64)], lambda np, a, b: np.einsum("ijk,kjl->il", a, b)),
    ("tensordot", [(32, 24, 40), (24, 40, 64)], lambda np, a, b: np.tensordot(a, b, 2)),
]
KINDS = ["f4", "f8", "c16"]


def median(call, repeat):
    call()
    call()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    print("| product | type | NumPy, ms | bh, ms | times as fast |\n|---|---|---|---|---|")
    random = numpy.random.default_rng(1)
    for name, shapes, compute in CASES:
        for kind in KINDS if options.only in name else []:
            theirs = [array(random, shape, kind) for shape in shapes]
            ours = [bh.array(value) for value in theirs]
            one = median(lambda: compute(numpy, *theirs), options.repeat)
            # Reading an element waits for all of them.
            other = median(lambda: compute(bh, *ours).ravel()[:1].tolist(), options.repeat)
            print(f"| {name} | {kind} | {one:.3f} | {other:.3f} | {one / other:.2f} |", flush=True)


if __name__ == "__main__":
    main()

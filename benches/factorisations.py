#!/usr/bin/env python3
"""Times systems and factorisations of matrices through the C interface against NumPy's own, and compares the results.

    BH_PREFIX=DIR benches/factorisations.py [--sizes 100,500,2000] [--threads N] [--runs N] [NAME...]

Both have as many threads. The best of the runs counts, each with its matrix read again; NumPy's time over bh's is the last column.
"""

import argparse
import ctypes
import os
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("names", nargs="*", metavar="NAME", help="solve, lu, cholesky, qr, eigh, svd; else all, the last three up to 500")
parser.add_argument("--sizes", default="100,500,2000")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--runs", type=int, default=5)
args = parser.parse_args()
if "BH_PREFIX" not in os.environ:
    parser.error("BH_PREFIX is not set")
# Before NumPy's library is loaded.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(args.threads)
os.environ["BH_VE_CPU_THREADS"] = str(args.threads)

import numpy as np

F64, I64 = 10, 4
bh = ctypes.CDLL(str(Path(os.environ["BH_PREFIX"]) / "lib/libbh_bridge_c.so"))
bh.bh_error_message.restype = ctypes.c_char_p


def call(name, *arguments):
    if getattr(bh, name)(*arguments):
        sys.exit(f"{name}: {bh.bh_error_message().decode()}")


class Array:
    """An array of bh."""

    def __init__(self, dtype, shape):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.handle = ctypes.c_void_p()
        code = F64 if self.dtype == np.float64 else I64
        extents = (ctypes.c_int64 * len(shape))(*shape)
        call("bh_empty", ctypes.byref(self.handle), None, code, len(shape), extents)

    def write(self, values):
        call("bh_write", self.handle, values.ctypes.data_as(ctypes.c_void_p))
        return self

    def read(self):
        values = np.empty(self.shape, self.dtype)
        call("bh_read", values.ctypes.data_as(ctypes.c_void_p), self.handle)
        return values

    def __del__(self):
        bh.bh_free(self.handle)


def method(name, outputs, inputs):
    handles = [(ctypes.c_void_p * len(arrays))(*[array.handle for array in arrays]) for arrays in (outputs, inputs)]
    call("bh_extmethod", name.encode(), len(outputs), handles[0], len(inputs), handles[1])
    call("bh_sync", None)


def best(run):
    times = []
    for _ in range(args.runs):
        begin = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - begin)
    return min(times), result


def residual(product, matrix):
    return np.abs(product - matrix).max() / np.abs(matrix).max() / len(matrix)


def tests(n):
    """Names, inputs, shapes of outputs, NumPy's function, and how far bh's results are from what they should be."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n))
    b = rng.standard_normal((n, 8))
    spd = a @ a.T + n * np.eye(n)
    symmetric = a + a.T
    square, line = ("f8", (n, n)), ("f8", (n,))

    def lu_residual(factors, order):
        lower = np.tril(factors, -1) + np.eye(n)
        return residual(lower @ np.triu(factors), a[order])

    return {
        "solve": ([a, b], [("f8", (n, 8))], np.linalg.solve, lambda x: residual(a @ x, b)),
        # NumPy has no LU of its own; a system with one right side is little more.
        "lu": ([a], [square, ("i8", (n,))], lambda a: np.linalg.solve(a, b[:, :1]), lu_residual),
        "cholesky": ([spd], [square], np.linalg.cholesky, lambda l: residual(l @ l.T, spd)),
        "qr": ([a], [square, square], np.linalg.qr, lambda q, r: residual(q @ r, a)),
        "eigh": ([symmetric], [line, square], np.linalg.eigh, lambda w, v: residual(v * w @ v.T, symmetric)),
        "svd": ([a], [square, line, square], np.linalg.svd, lambda u, s, v: residual(u * s @ v, a)),
    }


print(f"{'method':10} {'n':>5} {'bh ms':>10} {'NumPy ms':>10} {'NumPy/bh':>9} {'residual':>9}")
failed = False
for n in map(int, args.sizes.split(",")):
    for name, (given, forms, numpy, check) in tests(n).items():
        if args.names and name not in args.names or n > 500 and name in ("eigh", "svd", "qr") and not args.names:
            continue
        inputs = [Array("f8", values.shape).write(np.ascontiguousarray(values)) for values in given]
        outputs = [Array(*form) for form in forms]
        own, _ = best(lambda: method(name, outputs, inputs))
        other, _ = best(lambda: numpy(*given))
        off = check(*[output.read() for output in outputs])
        failed |= not off < 1e-12
        print(f"{name:10} {n:5} {own * 1e3:10.3f} {other * 1e3:10.3f} {other / own:9.2f} {off:9.1e}", flush=True)
sys.exit(failed)

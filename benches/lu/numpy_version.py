"""LU factorisation of an n x n matrix without pivoting, started anew from the same matrix in each iteration."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    return harness.pseudo(n * n, 27, dtype).reshape(n, n) + np.eye(n, dtype=dtype) * n


def lu(a):
    u = a.copy()
    l = np.eye(a.shape[0], dtype=a.dtype)
    for c in range(1, u.shape[0]):
        l[c:, c - 1] = u[c:, c - 1] / u[c - 1, c - 1]
        u[c:, c - 1 :] -= l[c:, c - 1][:, None] * u[c - 1, c - 1 :]
    return l, u


def run(start, iters):
    for _ in range(iters):
        l, u = lu(start)
    return lambda: [harness.checksum(l), harness.checksum(u)]


harness.main("lu", setup, run)

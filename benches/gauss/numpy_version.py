"""Gaussian elimination of an n x n matrix without pivoting, started anew from the same matrix in each iteration."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    return harness.pseudo(n * n, 26, dtype).reshape(n, n) + np.eye(n, dtype=dtype) * n


def gauss(a):
    for c in range(1, a.shape[0]):
        a[c:, c - 1 :] -= (a[c:, c - 1] / a[c - 1, c - 1])[:, None] * a[c - 1, c - 1 :]
    a /= np.diagonal(a)[:, None].copy()
    return a


def run(start, iters):
    for _ in range(iters):
        a = gauss(start.copy())
    return lambda: [harness.checksum(a)]


harness.main("gauss", setup, run)

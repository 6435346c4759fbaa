"""Products of an n x n matrix and of its transpose with vectors, added to others: x1 += A y1, x2 += A^T y2."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    matrix = harness.pseudo(n * n, 40, dtype).reshape(n, n)
    return matrix, *(harness.pseudo(n, seed, dtype) for seed in (41, 42, 43, 44))


def run(state, iters):
    a, x1, x2, y1, y2 = state
    for _ in range(iters):
        x1 += a @ y1
        x2 += a.T @ y2
    return lambda: [harness.checksum(x1), harness.checksum(x2)]


harness.main("mvt", setup, run)

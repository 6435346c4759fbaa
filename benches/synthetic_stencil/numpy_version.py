"""Synthetic stencil of n rows of 1024 elements: new = old + 0.2 * (sum of the four neighbours), nothing else."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

WIDTH = 1024


def setup(n, dtype):
    return harness.pseudo(n * WIDTH, 2, dtype).reshape(n, WIDTH)


def run(full, iters):
    center = full[1:-1, 1:-1]
    up, down = full[:-2, 1:-1], full[2:, 1:-1]
    left, right = full[1:-1, :-2], full[1:-1, 2:]
    work = np.empty_like(center)
    for _ in range(iters):
        work[:] = center
        work += 0.2 * (up + down + left + right)
        center[:] = work
    return lambda: [harness.checksum(full)]


harness.main("synthetic_stencil", setup, run)

"""Dense 81-point stencil on an n x n x n x n grid: the mean of the neighbourhood, with delta = sum |new - old|."""

import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

DIMENSIONS = 4


def setup(n, dtype):
    return harness.pseudo(n**DIMENSIONS, 8, dtype).reshape((n,) * DIMENSIONS)


def run(grid, iters):
    n = grid.shape[0]
    center = grid[(slice(1, -1),) * DIMENSIONS]
    shifts = [
        tuple(slice(d, n - 2 + d) for d in offsets) for offsets in itertools.product(range(3), repeat=DIMENSIONS)
    ]
    for _ in range(iters):
        work = grid[shifts[0]] + grid[shifts[1]]
        for shift in shifts[2:]:
            work += grid[shift]
        work *= 1.0 / 81
        delta = np.sum(np.abs(work - center))
        center[:] = work
    return lambda: [harness.checksum(grid), delta]


harness.main("stencil_4d", setup, run)

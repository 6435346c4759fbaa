"""27-point stencil on an n x n x n grid: the mean of the neighbourhood, without a stopping test."""

import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    return harness.pseudo(n**3, 7, dtype).reshape(n, n, n)


def run(grid, iters):
    n = grid.shape[0]
    shifts = [tuple(slice(d, n - 2 + d) for d in offsets) for offsets in itertools.product(range(3), repeat=3)]
    for _ in range(iters):
        work = grid[shifts[0]] + grid[shifts[1]]
        for shift in shifts[2:]:
            work += grid[shift]
        grid[1:-1, 1:-1, 1:-1] = work * (1.0 / 27)
    return lambda: [harness.checksum(grid)]


harness.main("stencil_27_point", setup, run)

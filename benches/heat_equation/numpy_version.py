"""Heat equation on an n x n grid: Jacobi steps of the 5-point mean with delta = sum |new - old|."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    grid = harness.pseudo(n * n, 1, dtype).reshape(n, n)
    grid[:, 0] = grid[:, -1] = grid[-1, :] = -273.15
    grid[0, :] = 40.0
    return grid


def run(grid, iters):
    center = grid[1:-1, 1:-1]
    north, south = grid[:-2, 1:-1], grid[2:, 1:-1]
    west, east = grid[1:-1, :-2], grid[1:-1, 2:]
    for _ in range(iters):
        work = 0.2 * (center + north + south + west + east)
        delta = np.sum(np.abs(work - center))
        center[:] = work
    return lambda: [harness.checksum(grid), delta]


harness.main("heat_equation", setup, run)

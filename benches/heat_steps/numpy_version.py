"""Heat equation on an n x n grid, Jacobi steps of the 5-point mean that nobody looks at in between."""

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
        center[:] = 0.2 * (center + north + south + west + east)
    return lambda: [harness.checksum(grid)]


harness.main("heat_steps", setup, run)

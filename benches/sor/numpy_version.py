"""Red-black successive over-relaxation of an n x n grid (n even), held as four compact colour grids:

    r0 b0 r0 b0        red points are r0 (even row, even column) and r1 (odd, odd),
    b1 r1 b1 r1        black points are b0 (even, odd) and b1 (odd, even)

Each step relaxes red, then black, and sums |change|.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

OMEGA = 1.5


def setup(n, dtype):
    m = n // 2
    r0, b0, b1, r1 = (harness.pseudo(m * m, seed, dtype).reshape(m, m) for seed in (11, 12, 13, 14))
    r0[:, 0] = b0[:, -1] = b1[:, 0] = r1[:, -1] = -273.15
    b1[-1, :] = r1[-1, :] = -273.15
    r0[0, :] = b0[0, :] = 40.0
    return r0, r1, b0, b1


def relax(point, north, south, west, east):
    """Relaxes the points in place; returns the sum of |change|."""
    value = (1 - OMEGA) * point + OMEGA / 4 * (north + south + west + east)
    change = np.sum(np.abs(value - point))
    point[:] = value
    return change


def run(grids, iters):
    r0, r1, b0, b1 = grids
    for _ in range(iters):
        delta = relax(r0[1:, 1:], b1[:-1, 1:], b1[1:, 1:], b0[1:, :-1], b0[1:, 1:])
        delta += relax(r1[:-1, :-1], b0[:-1, :-1], b0[1:, :-1], b1[:-1, :-1], b1[:-1, 1:])
        delta += relax(b0[1:, :-1], r1[:-1, :-1], r1[1:, :-1], r0[1:, :-1], r0[1:, 1:])
        delta += relax(b1[:-1, 1:], r0[:-1, 1:], r0[1:, 1:], r1[:-1, :-1], r1[:-1, 1:])
    return lambda: [
        harness.checksum(r0) + harness.checksum(r1),
        harness.checksum(b0) + harness.checksum(b1),
        delta,
    ]


harness.main("sor", setup, run)

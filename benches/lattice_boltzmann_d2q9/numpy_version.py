"""Lattice Boltzmann, D2Q9, on n x n cells: flow along the second axis past a round obstacle that bounces it back. The
outermost cells keep their starting values."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

OMEGA = 1.2
STREAM = 0.1
VELOCITIES = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]
OPPOSITE = [0, 3, 4, 1, 2, 7, 8, 5, 6]
WEIGHTS = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4


def setup(n, dtype):
    density = 1 + 0.1 * harness.pseudo(n * n, 36, np.float64).reshape(n, n)
    populations = [
        (w * density * (1 + 3 * ex * STREAM + 4.5 * ex * ex * STREAM**2 - 1.5 * STREAM**2)).astype(dtype)
        for w, (_, ex) in zip(WEIGHTS, VELOCITIES)
    ]
    y, x = np.arange(n)[1:-1, None] - n // 2, np.arange(n)[None, 1:-1] - n // 4
    return populations, y * y + x * x < n * n // 100


def run(state, iters):
    populations, solid = state
    n = populations[0].shape[0]
    for _ in range(iters):
        pulled = [f[1 - ey : n - 1 - ey, 1 - ex : n - 1 - ex] for f, (ey, ex) in zip(populations, VELOCITIES)]
        density = sum(pulled[1:], pulled[0])
        y = (pulled[2] + pulled[5] + pulled[6] - pulled[4] - pulled[7] - pulled[8]) / density
        x = (pulled[1] + pulled[5] + pulled[8] - pulled[3] - pulled[6] - pulled[7]) / density
        still = 1 - 1.5 * (y * y + x * x)
        collided = []
        for f, w, (ey, ex), opposite in zip(pulled, WEIGHTS, VELOCITIES, OPPOSITE):
            along = ey * y + ex * x
            equilibrium = w * density * (still + 3 * along + 4.5 * along**2)
            collided.append(np.where(solid, pulled[opposite], f + OMEGA * (equilibrium - f)))
        for f, new in zip(populations, collided):
            f[1:-1, 1:-1] = new
    return lambda: [sum(map(harness.checksum, populations[half::2])) for half in range(2)]


harness.main("lattice_boltzmann_d2q9", setup, run)

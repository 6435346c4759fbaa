"""Gravity among n bodies, all pairs, softened; velocities then positions advance by one step per iteration."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

DT = 0.0001
SOFTENING = 0.01


def setup(n, dtype):
    mass = 1 + harness.pseudo(n, 15, dtype)
    position = [harness.pseudo(n, 16 + axis, dtype) for axis in range(3)]
    velocity = [np.zeros(n, dtype) for _ in range(3)]
    return mass, position, velocity


def run(state, iters):
    mass, position, velocity = state
    for _ in range(iters):
        dx, dy, dz = (x[None, :] - x[:, None] for x in position)
        square = dx * dx + dy * dy + dz * dz + SOFTENING
        pull = mass[None, :] / (square * np.sqrt(square))
        for v, d in zip(velocity, (dx, dy, dz)):
            v += DT * np.sum(pull * d, axis=1)
        for x, v in zip(position, velocity):
            x += DT * v
    return lambda: [sum(map(harness.checksum, position)), sum(map(harness.checksum, velocity))]


harness.main("nbody", setup, run)

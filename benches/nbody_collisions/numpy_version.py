"""Gravity among n bodies, all pairs, with collisions: bodies that touch push each other apart instead, and are counted."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

DT = 0.0001
SOFTENING = 0.01
STIFFNESS = 100.0


def setup(n, dtype):
    mass = 1 + harness.pseudo(n, 60, dtype)
    radius = 0.05 + 0.1 * harness.pseudo(n, 61, dtype)
    position = [harness.pseudo(n, 62 + axis, dtype) for axis in range(3)]
    return mass, radius, position, [np.zeros(n, dtype) for _ in range(3)]


def run(state, iters):
    mass, radius, position, velocity = state
    reach = radius[None, :] + radius[:, None]
    touched = 0
    for _ in range(iters):
        dx, dy, dz = (x[None, :] - x[:, None] for x in position)
        square = dx * dx + dy * dy + dz * dz
        touching = square < reach * reach
        touched += int(np.sum(touching)) - mass.size
        soft = square + SOFTENING
        push = np.where(touching, -STIFFNESS, mass[None, :] / (soft * np.sqrt(soft)))
        for v, d in zip(velocity, (dx, dy, dz)):
            v += DT * np.sum(push * d, axis=1)
        for x, v in zip(position, velocity):
            x += DT * v
    return lambda: [sum(map(harness.checksum, position)), sum(map(harness.checksum, velocity)), touched]


harness.main("nbody_collisions", setup, run)

"""Forty planets and n massless asteroids: the planets pull each other and the asteroids."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

PLANETS = 40
DT = 0.0001
SOFTENING = 0.01


def setup(n, dtype):
    mass = 1 + harness.pseudo(PLANETS, 19, dtype)
    planets = [harness.pseudo(PLANETS, 20 + axis, dtype) for axis in range(3)]
    asteroids = [harness.pseudo(n, 23 + axis, dtype) for axis in range(3)]
    planet_velocity = [np.zeros(PLANETS, dtype) for _ in range(3)]
    asteroid_velocity = [np.zeros(n, dtype) for _ in range(3)]
    return mass, planets, planet_velocity, asteroids, asteroid_velocity


def accelerate(mass, planets, position, velocity):
    """Adds the pull of the planets to the velocities of the bodies at `position`."""
    dx, dy, dz = (p[:, None] - x[None, :] for p, x in zip(planets, position))
    square = dx * dx + dy * dy + dz * dz + SOFTENING
    force = mass[:, None] / (square * np.sqrt(square))
    for v, d in zip(velocity, (dx, dy, dz)):
        v += DT * np.sum(force * d, axis=0)


def run(state, iters):
    mass, planets, planet_velocity, asteroids, asteroid_velocity = state
    for _ in range(iters):
        accelerate(mass, planets, asteroids, asteroid_velocity)
        accelerate(mass, planets, planets, planet_velocity)
        for position, velocity in ((asteroids, asteroid_velocity), (planets, planet_velocity)):
            for x, v in zip(position, velocity):
                x += DT * v
    return lambda: [sum(map(harness.checksum, group)) for group in (asteroids, asteroid_velocity, planets)]


harness.main("nbody_nice", setup, run)

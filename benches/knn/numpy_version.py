"""The four nearest of n points in three dimensions for each of n / 10 queries; the result is the four squared distances."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

NEAREST = 4


def setup(n, dtype):
    points = [harness.pseudo(n, 28 + axis, dtype) for axis in range(3)]
    queries = [harness.pseudo(n // 10, 31 + 2 * axis, dtype) for axis in range(3)]
    return points, queries


def run(state, iters):
    points, queries = state
    for _ in range(iters):
        distance = sum((p[None, :] - q[:, None]) ** 2 for p, q in zip(points, queries))
        nearest = [np.min(distance, axis=1)]
        for _ in range(NEAREST - 1):
            # Everything up to the last minimum is out of the race.
            distance = np.where(distance <= nearest[-1][:, None], np.inf, distance)
            nearest.append(np.min(distance, axis=1))
    return lambda: [harness.checksum(row) for row in nearest]


harness.main("knn", setup, run)
